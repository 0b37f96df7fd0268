"""The port every provider of server-side tools implements.

The loop knows a tool only by its signature and its provider. A provider serves all toolgroups of its kind and keeps
no credentials of one call for another; what it needs is passed to each call:

    Toolgroup        the registration: where the tools are, and how this system authenticates there
    ProviderData     the caller's own keys. Never stored, never logged
    Invocation       the call: arguments, the key by which a server recognizes a repetition, the session

Two wrappers are providers themselves: one puts secrets into their places (`secret_references.py`), the other redacts
them in whatever comes back (`redaction.py`). So a provider can use credentials as plain text.

What a tool says is an outcome, also a failure. An error is raised if another call would fail, too.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from stint.dataclasses import dataclass, field
from stint.domain.content import Content
from stint.domain.inference import ToolSignature
from stint.domain.json_text import make_storable, storable_text
from stint.domain.tools import AskedInput, OfferedVaults

if TYPE_CHECKING:  # few calls ask
    from stint.domain.elicitations import AnsweredInput

ProviderData = Mapping[str, Any]
"""The caller's keys for tools (X-LlamaStack-Provider-Data): never stored, never logged."""
NO_PROVIDER_DATA: ProviderData = {}

ATTACHMENTS = "attachments"
"""Key of an outcome's metadata for the output that the tool produced for the user.

It is a list of `{"content": {"uri": ...}, "mime_type": ...}`, each an `Attachment` of a turn. Metadata is stored with
the step, so that a turn's `output_attachments` can be derived from its steps."""

IMAGE_MODELS = "image-generation"
"""The provider of image generation."""

IMAGE_GENERATION = "image_generation"
"""The models' name of the image generation in a response. Llama Stack's is `photogen`."""

FILE_SEARCH = "file_search"
"""The models' name of the search of vector stores in a response. Llama Stack's is `knowledge_search`."""

KNOWLEDGE_SEARCH = "knowledge_search"
"""The name of the search in vector dbs."""

RESULTS = "results"
"""Key of an outcome's metadata for what a file search found. The texts are in the content, after its first item, each
from its second line on."""

CODE_PROVIDER = "code-interpreter"
"""The provider of the code interpreter of agents."""

CODE_INTERPRETER = "code_interpreter"
"""The models' name of the code interpreter."""

CONTAINER_FILES = "container_files"
"""Key of an outcome's metadata for the ids of the files that code wrote into a container, by their names."""

IMAGES = "images"
"""Key of an outcome's metadata for the data URLs of the images that code wrote."""

MODEL_NAMES = {"web_search": "brave_search"}
"""Tools that models and steps know by another name than the registry, as in Llama Stack, whichever provider searches.
A model may call them by either name."""

SEARCH_PROVIDERS = frozenset({"brave-search", "tavily-search"})
"""The providers whose tools MODEL_NAMES renames. Tools of other providers keep their names, and have no other."""


BUILT_IN = "builtin::"
"""How the identifiers of built-in toolgroups begin."""

REMOTE_EXECUTION = "builtin::remote_execution"
"""The toolgroup of HTTP endpoints that an agent or a turn defines itself, in its args."""

WEB_SEARCH_GROUP = "builtin::websearch"
"""The toolgroup of the web search."""

MCP_SERVER = "builtin::mcp"
"""The toolgroup of an MCP server that an agent or a turn names itself, in its args."""

MCP = "model-context-protocol"
"""The provider of MCP servers' tools."""

SERVER_REFUSED = "mcp_server_refused"
"""The code of the error of an MCP server that refuses to begin a session."""

MEMORY_BANKS = "memory_banks"
"""The argument of an agent's search in vector dbs that makes it a retrieval from memory banks."""

QUERY_GENERATOR = "query_generator_config"
"""The argument of such a retrieval that says who writes its query."""

RAG = "builtin::rag"
"""The toolgroup of the search in vector dbs."""


CODE_GROUP = "builtin::code_interpreter"
"""The toolgroup of the code interpreter."""

IMAGE_GROUP = "builtin::photogen"
"""The toolgroup of the image generation."""

RAG_RUNTIME = "rag-runtime"
"""The provider of the search in vector dbs. The `retrieve` argument of its toolgroups has effect before tools run."""


@dataclass(frozen=True, slots=True)
class Toolgroup:
    """A registered toolgroup, as its provider uses it.

    `config` has the `args` of the registration, which configure the provider. The `args` of an agent or a turn are
    arguments of a call, in `Invocation.arguments`. `sealed` has the encrypted credentials whose places are masked.
    Only `registered` ones may name secrets: others come from callers who may not register any. `vaults` are those of
    the session, in which an MCP server without an authorization of its own may have a credential.
    """

    toolgroup_id: str
    provider_id: str
    mcp_endpoint: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    sealed: str = ""
    registered: bool = False
    vaults: OfferedVaults | None = None


ReadSessionFiles = Callable[[], Awaitable[Mapping[str, bytes]]]
WriteSessionFiles = Callable[[Mapping[str, bytes], Sequence[str]], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class CallerSession:
    """The session of a turn that calls a tool.

    `vector_db_id` is the session's own vector db, if it has one. `read_files` returns the files for the session's code
    by their names. It raises StoreUnavailable, and NotFound if the session was deleted. `write_files` stores files that
    code wrote, and removes others, for later calls. It returns the names of those that do not fit, and raises
    Interrupted and StoreUnavailable.
    """

    agent_id: str
    session_id: str
    vector_db_id: str | None = None
    read_files: ReadSessionFiles | None = field(default=None, repr=False, compare=False)
    write_files: WriteSessionFiles | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call."""

    tool_name: str
    arguments: dict[str, Any]
    """Those of the model and of the agent or the turn, which come before the model's."""
    call_id: str
    """The model's id of the call. Some models restart their numbering in each answer."""
    provider_data: dict[str, Any] = field(default_factory=dict, repr=False)
    """The caller's keys, which are never stored or logged."""
    key: str = ""
    """Unique among the calls of all turns and responses, and the same if an interrupted run is resumed.

    It is empty outside a run, where the call's id is unique.
    """
    fixed: frozenset[str] = frozenset()
    """The names of the arguments that come from the agent or the turn, not from the model."""
    session: CallerSession | None = None
    """None outside a turn of the Agents API."""
    answered: "AnsweredInput | None" = None
    """The client's answers to what the call has asked before."""

    @property
    def idempotency_key(self) -> str:
        """Return the unique key of the call, by which a server recognizes a repetition."""
        return self.key or self.call_id


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of a call: the whole content for the model, metadata for the step, and whether the tool failed.

    `refused` are bytes that count for the limit of a run's results, but are not in the content: those that were
    received and dropped. With `asks`, the call is not finished: its server asks the client, and the content has the
    texts of the question.
    """

    content: Content
    metadata: dict[str, Any] = field(default_factory=dict)
    error: bool = False
    refused: int = 0
    asks: AskedInput | None = None

    def __post_init__(self) -> None:
        """Make what the tool said storable. The texts of items are, because pydantic refuses others."""
        if isinstance(self.content, str):
            object.__setattr__(self, "content", storable_text(self.content))
        object.__setattr__(self, "metadata", make_storable(self.metadata))


class ToolProvider(Protocol):
    """Lists and runs the tools of toolgroups of one kind."""

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check a registration before it is stored, without contacting a server.

        Raises:
            InvalidRequest: it is malformed, or one of its URLs is not allowed.
        """
        ...

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature] | None:
        """Return a toolgroup's tools without a request; None if a server would have to be contacted.

        Raises:
            InvalidRequest: the registration or the provider data is malformed.
        """
        ...

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List a toolgroup's tools, with unchanged JSON schemas.

        Raises:
            ToolUnavailable: the provider cannot be reached, or refuses the caller's credentials.
            InvalidRequest: the registration or the provider data is malformed, a URL in it may not be called, or its
                server speaks another protocol.
        """
        ...

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Run a tool. A failure or timeout of the tool is an outcome with `error`, a message for the model.

        When cancelled, it ends within half a second, or is abandoned.

        Raises:
            ToolUnavailable: the provider cannot be reached, or refuses the caller's credentials.
            InvalidRequest: the registration or the provider data is malformed, or a URL in it may not be called.
        """
        ...
