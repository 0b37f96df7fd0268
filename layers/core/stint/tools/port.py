"""The port every provider of server-side tools implements."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from stint.domain.content import Content
from stint.domain.inference import ToolSignature

ProviderData = Mapping[str, Any]
"""The caller's keys for tools (X-LlamaStack-Provider-Data): never stored, never logged."""
NO_PROVIDER_DATA: ProviderData = {}

ATTACHMENTS = "attachments"
"""Key of an outcome's metadata: what the tool produced for the user rather than for the model.

A list of `{"content": {"uri": ...}, "mime_type": ...}`: each is an `Attachment` of a turn. Metadata is stored with the
step, so a turn's `output_attachments` can be told from its steps at any time."""

MODEL_NAMES = {"web_search": "brave_search"}
"""Tools whose name in the registry is not the one that models and steps know: Llama Stack presents `web_search` as
`brave_search`, whichever provider searches. The provider answers to both names."""

SEARCH_PROVIDERS = frozenset({"brave-search", "tavily-search"})
"""The providers whose tools MODEL_NAMES renames: a tool that another one calls so keeps its name."""


@dataclass(frozen=True, slots=True)
class Toolgroup:
    """A registered toolgroup, as its provider needs it.

    `config` is the `args` of the registration. It configures the provider and is no argument of a call; the `args` that
    an agent or a turn gives with a toolgroup are, and come in `Invocation.arguments`.
    """

    toolgroup_id: str
    provider_id: str
    mcp_endpoint: str | None = None
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call.

    `call_id` is the model's id of the call, and travels as the idempotency key. Some models number their calls anew in
    each answer: `key` tells those apart, as no other call of any turn or response has it, and the same call has it
    again when a run that broke off is taken up. `provider_data` bears the caller's keys, never stored or logged.
    `fixed` names the arguments that come from the args of the agent or the turn, not from the model.
    """

    tool_name: str
    arguments: dict[str, Any]
    call_id: str
    provider_data: dict[str, Any] = field(default_factory=dict, repr=False)
    key: str = ""
    fixed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call: the content for the model, whole; metadata for the step; whether the tool failed."""

    content: Content
    metadata: dict[str, Any] = field(default_factory=dict)
    error: bool = False


class ToolProvider(Protocol):
    """Lists and runs the tools of toolgroups of one kind."""

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check what a registration says before it is made; asks no server for its tools.

        Raises:
            InvalidRequest: it is malformed, or a URL in it may not be called.
        """
        ...

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature] | None:
        """List a toolgroup's tools as far as nobody need be asked; None when somebody would have to be.

        Raises:
            InvalidRequest: the registration or the provider data is malformed.
        """
        ...

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List a toolgroup's tools, their JSON schemas as their maker wrote them.

        Raises:
            ToolUnavailable: the provider cannot be reached, or refuses the caller's credentials.
            InvalidRequest: the registration or the provider data is malformed, or a URL in it may not be called.
        """
        ...

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Run a tool. A failure of the tool, its time-out too, is an outcome with `error`, in words for the model.

        Cancelled, it ends within half a second, or is left behind.

        Raises:
            ToolUnavailable: the provider cannot be reached, or refuses the caller's credentials.
            InvalidRequest: the registration or the provider data is malformed, or a URL in it may not be called.
        """
        ...
