"""Tasks of the worker, which its queue delivers.

The queue delivers a task at least once, in any order, and perhaps to another version of the code. So a task is a hint
to look, never an order: it names an object, and the record in the table decides what is done. A repeated or late task
finds nothing to do.

    task            sent                                       does something if
    DeletionTask    before the mark, and delivered after it    the object is marked as deleted, or has expired
      `orphan`      before the creation, delivered 15 min on   the object has no record
    ResponseTask    with a background response                 the response is stored and has not ended
    IngestionTask   with documents of a vector store           the documents are in progress
    WaitingTask     with a waiting message, and repeated       its request died, or it has none (`unattended`)
    ResumeTask      with the result of a client's tool         the turn waits, and all its calls have results
    WebhookTask     after an outcome is stored, and repeated   its endpoint exists and is enabled
    AutomationTask  by a schedule, or with an invocation       the automation has that schedule, or the invocation
                                                               has not ended
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, Self, cast

from pydantic import ConfigDict, Field, TypeAdapter, model_validator

from stint.domain.fields import Omitted, is_unset
from stint.domain.ids import TenantName
from stint.domain.principals import Principal
from stint.domain.schema import Schema

ObjectKind = Literal[
    "agent",
    "session",
    "response",
    "conversation",
    "chat_completion",
    "file",
    "upload",
    "vector_store",
    "store_document",
    "store_contents",
    "container",
    "vault",
    "automation",
]
"""The kinds of objects that a task can delete."""

IDS: dict[ObjectKind, tuple[str, ...]] = {
    "agent": ("agent_id",),
    "session": ("agent_id", "session_id"),
    "response": ("response_id",),
    "conversation": ("conversation_id",),
    "chat_completion": ("chat_completion_id",),
    "file": ("file_id",),
    "upload": ("upload_id",),
    "vector_store": ("vector_store_id",),
    "store_document": ("vector_store_id", "document"),
    "store_contents": ("vector_store_id",),
    "container": ("container_id",),
    "vault": ("vault_id",),
    "automation": ("automation_id",),
}
"""The fields of a task that name an object of each kind, its parent's first."""


UPLOAD_DELAY = 900
"""Seconds between two checks of an upload or a container, the longest delay of SQS."""

MARK_DELAY = 60
"""Seconds after which the task of a deletion arrives. It is sent before the mark, which no request sets later."""

WAITING_DELAY = 30
"""Seconds after which it is checked whether a waiting message still has a request, and again after each check."""

UNATTENDED_DELAY = 2
"""Seconds after which the worker looks at input that no request waits for, unless an open stream takes it before."""

Delay = Annotated[int, Field(exclude=True, ge=0, le=900)]
"""Seconds until a task is delivered, at most those of SQS. They are not in the message."""


class DeletionTask(Schema):
    """Finish the deletion of an object that is marked as deleted, or delete the contents of an expired vector store.

    The task of an upload or a container is delivered after UPLOAD_DELAY: it is deleted if it has expired by then.
    """

    kind: Literal[
        "delete",
        "delete_response",
        "delete_conversation",
        "delete_chat_completion",
        "delete_file",
        "delete_upload",
        "delete_vector_store",
        "delete_store_document",
        "delete_store_contents",
        "delete_container",
        "delete_vault",
        "delete_automation",
    ] = "delete"
    """With the ids, the format of the queue: during a deployment one version reads the messages of another."""
    tenant: TenantName
    agent_id: Omitted[str] = None
    session_id: Omitted[str] = None
    response_id: Omitted[str] = None
    conversation_id: Omitted[str] = None
    chat_completion_id: Omitted[str] = None
    file_id: Omitted[str] = None
    upload_id: Omitted[str] = None
    vector_store_id: Omitted[str] = None
    document: Omitted[str] = None
    """The key of a document in its vector store."""
    container_id: Omitted[str] = None
    vault_id: Omitted[str] = None
    automation_id: Omitted[str] = None
    orphan: Annotated[bool, Field(exclude_if=is_unset)] = False
    """Delete what the creation of an object has left if that object has no record."""
    delay_seconds: Delay = 0

    @model_validator(mode="after")
    def require_ids(self) -> Self:
        if None in self._named:
            raise ValueError(f"A task of kind {self.kind} needs the id of its {self.object_kind}.")
        if self.object_kind in ("upload", "container"):
            self.delay_seconds = UPLOAD_DELAY
        return self

    @property
    def object_kind(self) -> ObjectKind:
        if self.kind == "delete":
            return "agent" if self.session_id is None else "session"
        return cast("ObjectKind", self.kind.removeprefix("delete_"))

    def before_mark(self) -> Self:
        """Return the task to send before the object is marked. It is dropped if the object has no mark by then."""
        return self.model_copy(update={"delay_seconds": max(self.delay_seconds, MARK_DELAY)})

    def before_creation(self) -> Self:
        """Return the task to send before the object is created.

        It arrives when no function runs that was running before, and is dropped if the object has a record by then. For
        a fork whose process died before the check of its source, it makes that check.
        """
        return self.model_copy(update={"orphan": True, "delay_seconds": UPLOAD_DELAY})

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the object, its parent's first."""
        return tuple(each for each in self._named if each is not None)

    @property
    def _named(self) -> tuple[str | None, ...]:
        return tuple(getattr(self, field) for field in IDS[self.object_kind])


class ResponseTask(Schema):
    """Run a background response that is stored; with `unstarted_only`, if no worker has started it."""

    kind: Literal["response"] = "response"
    tenant: TenantName
    response_id: str
    unstarted_only: Annotated[bool, Field(exclude_if=is_unset)] = False
    delay_seconds: Delay = 0


class IngestionTask(Schema):
    """Ingest documents of a vector store that are in progress."""

    kind: Literal["ingest"] = "ingest"
    tenant: TenantName
    vector_store_id: str
    documents: list[str]
    """The keys of the documents."""
    creator: Omitted[dict[str, str]] = None
    """The principal whose request sent the task, as in the context of a request, without a credential."""
    unstarted_only: Annotated[bool, Field(exclude_if=is_unset)] = False
    """Only those that no worker has begun."""
    delay_seconds: Delay = 0

    @model_validator(mode="after")
    def require_creator_of_tenant(self) -> Self:
        if self.principal is not None and self.principal.tenant != self.tenant:
            raise ValueError("The creator of a task must belong to its tenant.")
        return self

    @property
    def principal(self) -> Principal | None:
        """Return the principal whose request sent the task; None if an event did."""
        return None if self.creator is None else Principal.from_context(self.creator)


class WaitingTask(Schema):
    """Start the run of a message that waits for a session or a conversation, if its request died."""

    kind: Literal["waiting"] = "waiting"
    tenant: TenantName
    agent_id: Omitted[str] = None
    session_id: Omitted[str] = None
    conversation_id: Omitted[str] = None
    message_id: str
    unattended: Annotated[bool, Field(exclude_if=is_unset)] = False
    """No request waits for the message: it was accepted, and whoever has time starts it."""
    looked_before: Annotated[bool, Field(exclude_if=is_unset)] = False
    """A delivery before this one has not found the message in line."""
    delay_seconds: Delay = WAITING_DELAY

    @model_validator(mode="after")
    def require_place(self) -> Self:
        if (self.conversation_id is None) == (self.agent_id is None or self.session_id is None):
            raise ValueError("A waiting message needs either a session or a conversation.")
        return self


class ResumeTask(Schema):
    """Resume a turn with the results of its client's tools, which were stored one by one."""

    kind: Literal["resume"] = "resume"
    tenant: TenantName
    agent_id: str
    session_id: str
    turn_id: str
    delay_seconds: Delay = UNATTENDED_DELAY


class WebhookTask(Schema):
    """Send an event to an endpoint at `due_at` (seconds since 1970), after `attempt` failed attempts.

    The event is here, because it has only ids and statuses, and its object may be deleted before it is sent. It is not
    sent before `due_at`: SQS delays a message by 15 minutes at most.
    """

    kind: Literal["webhook"] = "webhook"
    tenant: TenantName
    endpoint_id: str
    event_id: str
    type: str
    created_at: int
    data: dict[str, str | dict[str, str]]
    attempt: Annotated[int, Field(ge=0)] = 0
    due_at: Annotated[float, Field(exclude_if=is_unset)] = 0
    delay_seconds: Delay = 0


class AutomationTask(Schema):
    """Run an automation: for the time of a schedule, or for the invocation that a request has stored.

    A schedule has it as its payload, in which Scheduler replaces `scheduled_at` by a time (ISO 8601).
    """

    kind: Literal["automation"] = "automation"
    tenant: TenantName
    automation_id: str
    schedule: Annotated[str, Field(exclude_if=is_unset)] = ""
    scheduled_at: Omitted[str] = None
    invocation_id: Omitted[str] = None
    delay_seconds: Delay = 0

    @model_validator(mode="after")
    def require_source(self) -> Self:
        # An automation without a schedule has an empty name of it, which no task may name.
        scheduled = self.scheduled_at is not None and bool(self.schedule)
        if scheduled == (self.invocation_id is not None):
            raise ValueError("A run of an automation needs either a schedule with a time or an invocation.")
        return self


AnyTask = Annotated[
    DeletionTask | ResponseTask | IngestionTask | WaitingTask | ResumeTask | WebhookTask | AutomationTask,
    Field(discriminator="kind"),
]
TASK: TypeAdapter[AnyTask] = TypeAdapter(AnyTask, config=ConfigDict(defer_build=True))
"""Reads a message. A message alone deletes nothing: in the table, the object must be marked as deleted, or expired."""


SentTask = DeletionTask | IngestionTask | WaitingTask | ResumeTask | WebhookTask | AutomationTask

SendTask = Callable[[SentTask], Awaitable[None]]
"""A function that sends a task to the worker's queue, which delivers it at least once. Raises StoreUnavailable."""
