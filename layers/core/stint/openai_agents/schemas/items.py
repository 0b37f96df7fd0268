"""Items of OpenAI's Agents API: what a turn got and produced, in the model's order.

The items after `web_search_call` are this server's own.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from stint.domain.fields import Omitted
from stint.domain.openai.code_interpreter import CodeOutput
from stint.domain.openai.file_search import FileSearchResult
from stint.domain.openai.items import Phase
from stint.domain.openai.lists import ListObject
from stint.domain.schema import Schema
from stint.domain.steps import SafetyViolation
from stint.openai_agents.schemas.contents import AgentInputImage, AgentInputText, AgentOutputText, form_of_output

OutputStatus = Literal["in_progress", "completed", "incomplete"]
CallStatus = Literal["in_progress", "completed", "incomplete", "failed"]

ItemInputPart = Annotated[AgentInputText | AgentInputImage, Field(discriminator="type")]
ItemPart = Annotated[AgentInputText | AgentInputImage | AgentOutputText, Field(discriminator="type")]
ItemOutput = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[ItemInputPart], Tag("parts")], Discriminator(form_of_output)
]


class AgentItemCommon(Schema):
    id: str
    turn_id: str


class AgentMessageItem(AgentItemCommon):
    """A message of the user, or of the model. `phase` is null until the model's message is complete."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant"]
    status: OutputStatus = "completed"
    content: list[ItemPart]
    phase: Phase | None = None


class AgentFunctionCall(AgentItemCommon):
    """A call that the client runs. `arguments` is an object, or the text of what is none."""

    type: Literal["function_call"] = "function_call"
    call_id: str
    name: str
    arguments: dict[str, Any] | str
    status: CallStatus = "completed"


class AgentFunctionCallOutput(AgentItemCommon):
    """The result of such a call: an output, or an error."""

    type: Literal["function_call_output"] = "function_call_output"
    call_id: str
    output: ItemOutput | None = None
    error: str | None = None
    status: CallStatus = "completed"


class AgentMcpCall(AgentItemCommon):
    """A call that this server runs: of an MCP server's tool, or of a toolgroup's, whose name is then the label."""

    type: Literal["mcp_call"] = "mcp_call"
    server_label: str
    name: str
    arguments: dict[str, Any] | str
    output: ItemOutput | None = None
    error: str | None = None
    status: CallStatus = "in_progress"


class AgentSearchAction(Schema):
    type: Literal["search"] = "search"
    query: str | None = None
    queries: list[str] | None = None


class AgentWebSearchCall(AgentItemCommon):
    """A web search. A failed one is `incomplete`, because it has no status of its own."""

    type: Literal["web_search_call"] = "web_search_call"
    status: OutputStatus = "in_progress"
    action: AgentSearchAction | None = None


class AgentFileSearchCall(AgentItemCommon):
    """A search of vector stores."""

    type: Literal["file_search_call"] = "file_search_call"
    status: CallStatus = "in_progress"
    queries: list[str] = Field(default_factory=list)
    results: list[FileSearchResult] | None = None


class AgentCodeCall(AgentItemCommon):
    """A run of Python code."""

    type: Literal["code_interpreter_call"] = "code_interpreter_call"
    status: CallStatus = "in_progress"
    code: str | None = None
    outputs: list[CodeOutput] | None = None


class AgentImageCall(AgentItemCommon):
    """A generated image. `result` is its base64, and `revised_prompt` what it was drawn from."""

    type: Literal["image_generation_call"] = "image_generation_call"
    status: CallStatus = "in_progress"
    result: str | None = None
    revised_prompt: Omitted[str] = None
    output_format: Omitted[Literal["png", "webp", "jpeg", "gif"]] = None


class AgentShieldCall(AgentItemCommon):
    """A violation that a shield found."""

    type: Literal["shield_call"] = "shield_call"
    status: Literal["completed"] = "completed"
    violation: SafetyViolation


AgentItem = Annotated[
    AgentMessageItem
    | AgentFunctionCall
    | AgentFunctionCallOutput
    | AgentMcpCall
    | AgentWebSearchCall
    | AgentFileSearchCall
    | AgentCodeCall
    | AgentImageCall
    | AgentShieldCall,
    Field(discriminator="type"),
]


class AgentItemList(ListObject[AgentItem]):
    """A page of items."""
