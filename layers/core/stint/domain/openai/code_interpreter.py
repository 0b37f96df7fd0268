"""The tool that runs Python code in a container: its settings, its calls, and their outputs."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from stint.domain.approvals import ApprovalMode, ApprovalRequestId
from stint.domain.fields import LONG_TEXT, Nothing, Omitted, SupportedValues, UnsupportedField
from stint.domain.limits import MAX_CODE_BYTES, MAX_CODE_FILES
from stint.domain.schema import Request

MAX_CONTAINER_FILES = MAX_CODE_FILES
"""Maximum files of a container."""

MAX_CONTAINER_BYTES = MAX_CODE_BYTES
"""Maximum bytes of a container's files together."""

MAX_OUTPUTS = 100
NO_MEMORY = "The memory of a container cannot be chosen. Remove memory_limit"
NO_NETWORK = "Code has no network. Remove network_policy, or set its type to disabled"

ContainerId = Annotated[str, Field(min_length=1, max_length=200)]
ContainerFileIds = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=MAX_CONTAINER_FILES)
]
MemoryLimit = Annotated[Omitted[str], SupportedValues(("1g",), NO_MEMORY), Field(exclude=True)]


class NoNetwork(Request):
    """The network policy of all containers."""

    type: Annotated[str, SupportedValues(("disabled",), NO_NETWORK, kept=True)]


class AutoContainer(Request):
    """A container of the response itself, with copies of these files."""

    type: Literal["auto"] = "auto"
    file_ids: Omitted[ContainerFileIds] = None
    memory_limit: MemoryLimit = None
    network_policy: Annotated[Omitted[NoNetwork], Field(exclude=True)] = None
    skills: Annotated[Nothing, UnsupportedField("Skills are not supported. Remove them")] = None


def form_of_container(value: object) -> str:
    return "id" if isinstance(value, str) else "auto"


class CodeInterpreterTool(Request):
    """Runs Python code in a container: one that exists, by its id, or one of the response itself."""

    type: Literal["code_interpreter"] = "code_interpreter"
    container: Annotated[
        Annotated[ContainerId, Tag("id")] | Annotated[AutoContainer, Tag("auto")], Discriminator(form_of_container)
    ]
    allowed_callers: Annotated[
        Omitted[list[str]],
        SupportedValues(
            (["direct"],), "Programmatic tool calling is not supported. The model calls its tools directly"
        ),
        Field(exclude=True),
    ] = None
    require_approval: ApprovalMode = None


class CodeInterpreterChoice(Request):
    """The model must run code."""

    type: Literal["code_interpreter"] = "code_interpreter"


class CodeLogs(Request):
    """The output that the code printed."""

    type: Literal["logs"] = "logs"
    logs: Annotated[str, Field(max_length=LONG_TEXT)]


class CodeImage(Request):
    """An image that the code wrote, as a data URL."""

    type: Literal["image"] = "image"
    url: Annotated[str, Field(max_length=LONG_TEXT)]


CodeOutput = Annotated[CodeLogs | CodeImage, Field(discriminator="type")]


class CodeInterpreterCall(Request):
    """A run of code. `outputs` are returned if the request includes `code_interpreter_call.outputs`."""

    type: Literal["code_interpreter_call"] = "code_interpreter_call"
    id: str = ""
    status: Literal["in_progress", "interpreting", "completed", "incomplete", "failed"] = "completed"
    code: Annotated[str, Field(max_length=LONG_TEXT)] | None = None
    container_id: Annotated[str, Field(max_length=200)]
    outputs: Annotated[list[CodeOutput], Field(max_length=MAX_OUTPUTS)] | None = None
    approval_request_id: ApprovalRequestId = None
