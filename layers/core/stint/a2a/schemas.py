"""Objects of A2A 1.0 on the wire, in the JSON form of its protocol buffers.

names            camelCase; requests may also have the names of the definition (snake_case), as ProtoJSON allows
enums            the names of their values
one of several   the field that is there decides, such as `text` or `raw` of a part
unknown fields   ignored, and null is the same as no field
bytes            base64
times            UTC, with milliseconds
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, PlainSerializer, StrictBool
from pydantic.alias_generators import to_camel

from stint.domain.fields import Omitted
from stint.domain.limits import MAX_PARTS
from stint.domain.schema import Request, Schema

CAMEL = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)
MOST_MODES, LONGEST_TEXT_ID, MOST_REFERENCES = 100, 512, 100
MOST_TASKS = 100
"""Maximum tasks of a page."""

ShortText = Annotated[str, Field(max_length=LONGEST_TEXT_ID)]
Length = Annotated[int, Field(ge=0, le=2**31 - 1)]


def format_milliseconds(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


TaskTime = Annotated[datetime, PlainSerializer(format_milliseconds, return_type=str, when_used="json")]


class TaskState(StrEnum):
    submitted = "TASK_STATE_SUBMITTED"
    working = "TASK_STATE_WORKING"
    completed = "TASK_STATE_COMPLETED"
    failed = "TASK_STATE_FAILED"
    canceled = "TASK_STATE_CANCELED"
    input_required = "TASK_STATE_INPUT_REQUIRED"
    rejected = "TASK_STATE_REJECTED"
    auth_required = "TASK_STATE_AUTH_REQUIRED"
    unspecified = "TASK_STATE_UNSPECIFIED"


ENDED = frozenset({TaskState.completed, TaskState.failed, TaskState.canceled, TaskState.rejected})
"""The states in which a task stays."""

Role = Literal["ROLE_USER", "ROLE_AGENT"]


class A2AObject(Schema):
    """An object of an answer."""

    model_config = CAMEL


class A2ARequest(Request):
    """An object of a request."""

    model_config = CAMEL


class A2APart(A2AObject):
    """A part of an answer: a text, bytes, a URL, or any JSON."""

    text: Omitted[str] = None
    raw: Omitted[str] = None
    url: Omitted[str] = None
    data: Omitted[Any] = None
    metadata: Omitted[dict[str, Any]] = None
    filename: Omitted[str] = None
    media_type: Omitted[str] = None


class A2AMessage(A2AObject):
    message_id: str
    context_id: str
    task_id: str
    role: Role
    parts: list[A2APart]


class A2AArtifact(A2AObject):
    """An output of a task."""

    artifact_id: str
    name: str
    parts: list[A2APart]
    metadata: Omitted[dict[str, Any]] = None


class A2ATaskStatus(A2AObject):
    state: TaskState
    message: Omitted[A2AMessage] = None
    timestamp: TaskTime


class A2ATask(A2AObject):
    """A turn. `artifacts` are absent from lists that do not ask for them, and `history` if nobody wants any."""

    id: str
    context_id: str
    status: A2ATaskStatus
    artifacts: Omitted[list[A2AArtifact]] = None
    history: Omitted[list[A2AMessage]] = None
    metadata: Omitted[dict[str, Any]] = None


class StatusUpdate(A2AObject):
    task_id: str
    context_id: str
    status: A2ATaskStatus
    metadata: Omitted[dict[str, Any]] = None


class ArtifactUpdate(A2AObject):
    """A piece of an artifact. With `append`, it follows the pieces before it, otherwise it replaces them."""

    task_id: str
    context_id: str
    artifact: A2AArtifact
    append: bool = False
    last_chunk: bool = False


class SendMessageResult(A2AObject):
    task: A2ATask


class StreamItem(A2AObject):
    """The result in an event of a stream: one of its fields."""

    task: Omitted[A2ATask] = None
    status_update: Omitted[StatusUpdate] = None
    artifact_update: Omitted[ArtifactUpdate] = None


class TaskPage(A2AObject):
    """A page of tasks, those of the last change first. `next_page_token` is empty at the end."""

    tasks: list[A2ATask]
    next_page_token: str
    page_size: int
    total_size: int


class SentPart(A2ARequest):
    """A part of a message to the agent."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: Any | None = None
    metadata: dict[str, Any] | None = None
    filename: ShortText = ""
    media_type: ShortText = ""


class SentMessage(A2ARequest):
    message_id: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT_ID)]
    context_id: ShortText = ""
    task_id: ShortText = ""
    role: Role
    parts: Annotated[list[SentPart], Field(min_length=1, max_length=MAX_PARTS)]
    metadata: dict[str, Any] | None = None
    extensions: Annotated[list[str], Field(max_length=MOST_REFERENCES)] = Field(default_factory=list)
    reference_task_ids: Annotated[list[str], Field(max_length=MOST_REFERENCES)] = Field(default_factory=list)


class SendConfiguration(A2ARequest):
    accepted_output_modes: Annotated[list[ShortText], Field(max_length=MOST_MODES)] = Field(default_factory=list)
    task_push_notification_config: dict[str, Any] | None = None
    history_length: Length | None = None
    return_immediately: StrictBool = False


class SendMessageParams(A2ARequest):
    tenant: ShortText = ""
    message: SentMessage
    configuration: SendConfiguration = Field(default_factory=SendConfiguration)
    metadata: dict[str, Any] | None = None


class TaskParams(A2ARequest):
    """The parameters of GetTask, CancelTask and SubscribeToTask."""

    tenant: ShortText = ""
    id: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT_ID)]
    history_length: Length | None = None
    metadata: dict[str, Any] | None = None


class ListTasksParams(A2ARequest):
    tenant: ShortText = ""
    context_id: ShortText = ""
    status: TaskState = TaskState.unspecified
    page_size: Annotated[int, Field(ge=1, le=MOST_TASKS)] = 50
    page_token: ShortText = ""
    history_length: Length | None = None
    status_timestamp_after: AwareDatetime | None = None
    include_artifacts: StrictBool = False


class TaskCallAnswer(A2ARequest):
    """The answer to a call that a task waits for, as the `data` of a part: a result, an error, or a decision."""

    call_id: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT_ID)]
    result: Any = None
    error: str | None = None
    approve: StrictBool | None = None
    reason: str | None = None
    input: dict[str, Any] | None = None
