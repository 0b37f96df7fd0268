"""Automations of OpenAI's Agents API: sessions that begin, or get a message, at times of a schedule.

These are the models of the store and the services. The API's own objects have the fields of an agent, which only its
function knows: the target of a new session is kept as the JSON of the API's request, and is read again at each run.

    status        its schedule    it becomes
    active        exists          paused by a request or a reason; completed after the only run of `once`
    paused        is deleted      active again by a request
    completed     is deleted      nothing

An invocation is one delivery. `completed` means that the session has the input, not that the agent has done its work.
"""

import time
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, JsonValue, model_validator

from stint.domain.errors import TooLarge
from stint.domain.fields import Metadata, Omitted, is_unset
from stint.domain.schema import Request, Schema

MOST_AUTOMATIONS = 100
"""Maximum automations of a tenant."""

MAX_AUTOMATION = 65_536
"""Maximum bytes of the JSON of an automation. Each of its invocations has a copy, and a page of a list has 100."""

OVERDUE_SECONDS = 86_400
"""Seconds after which a run that no delivery has ended is over: the task was delivered in vain, or is lost.

A task that an operator moves back from the dead-letter queue still ends it.
"""

MAX_NAME = 256
"""Maximum characters of a name."""

AutomationType = Literal["periodic", "once"]
AutomationStatus = Literal["active", "paused", "completed"]
InvocationStatus = Literal["queued", "completed", "failed", "skipped"]

PauseReason = Literal[
    "target_session_failed",
    "target_agent_deleted",
    "creator_key_revoked",
    "creator_key_expired",
    "creator_key_stopped",
    "creator_key_insufficient_scope",
    "stopped",
]
"""Why the server paused an automation. The API has the first one only."""

PAUSE_REASONS: tuple[PauseReason, ...] = get_args(PauseReason)

AutomationName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Expression = Annotated[str, Field(min_length=1, max_length=256)]
TimezoneName = Annotated[str, Field(min_length=1, max_length=50)]
RunAt = Annotated[int, Field(ge=0, le=253_402_300_799)]
"""Seconds since 1970, up to the end of the year 9999."""


class NewSessionTarget(Schema):
    """A session to create at each run. `request` is the JSON of the API's request to create it."""

    type: Literal["new_session"] = "new_session"
    request: dict[str, JsonValue]


class ExistingSessionTarget(Schema):
    """A session that gets a message at each run."""

    type: Literal["existing_session"] = "existing_session"
    session_id: str
    instructions: str


AutomationTarget = Annotated[NewSessionTarget | ExistingSessionTarget, Field(discriminator="type")]


class NewAutomation(Request):
    """An automation to create, once the API's request is read. `run_at` is that of `once`, in seconds since 1970."""

    type: AutomationType
    name: AutomationName
    expression: Expression | None = None
    timezone: TimezoneName | None = None
    run_at: RunAt | None = None
    target: AutomationTarget
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def require_times(self) -> Self:
        periodic = self.expression is not None and self.timezone is not None
        if not (periodic if self.type == "periodic" else self.run_at is not None):
            raise ValueError("A periodic automation has an expression and a timezone; one that runs once has run_at.")
        return self


class AutomationChanges(Request):
    """The changed fields of an automation: `model_fields_set` has their names."""

    name: AutomationName | None = None
    expression: Expression | None = None
    timezone: TimezoneName | None = None
    run_at: RunAt | None = None
    target: AutomationTarget | None = None
    metadata: Metadata = Field(default_factory=dict)


class Automation(Schema):
    """An automation as it is now. Times are in seconds since 1970.

    `periodic` has an expression of cron and a time zone, `once` has `run_at`.
    """

    id: str
    type: AutomationType
    name: str
    created_at: int
    expression: Omitted[str] = None
    timezone: Omitted[str] = None
    run_at: Omitted[int] = None
    target: AutomationTarget
    metadata: dict[str, str] = Field(default_factory=dict)
    status: AutomationStatus = "active"
    pause_reason: Omitted[PauseReason] = None

    @property
    def is_overdue(self) -> bool:
        """Return whether the only run was due so long ago that it will not happen any more."""
        return self.status == "active" and self.run_at is not None and self.run_at + OVERDUE_SECONDS <= time.time()

    def require_size(self) -> None:
        """Refuse an automation that is too large. Raises TooLarge."""
        size = len(self.to_json())
        if size > MAX_AUTOMATION:
            raise TooLarge(
                f"The automation has {size:,} bytes of JSON, more than {MAX_AUTOMATION:,}. Shorten its input, or let "
                "the agent get long texts from a file or a tool."
            )


class StoredAutomation(Schema):
    """The record of an automation.

    `schedule` is the name of its only schedule; it is empty unless the automation is active. Runs act for the API key
    `key_id`, empty in a stack without authentication, and for the end user to whom the automation belongs. They have
    the call depth of the request that made that key the creator.
    """

    resource: Automation
    schedule: str = ""
    key_id: str = ""
    end_user: Omitted[str] = None
    call_depth: Annotated[int, Field(exclude_if=is_unset)] = 0

    def changed(
        self, *, schedule: str | None = None, key_id: str | None = None, call_depth: int | None = None, **fields: object
    ) -> "StoredAutomation":
        """Return the record with other fields of its automation."""
        return StoredAutomation(
            resource=self.resource.model_copy(update=fields),
            schedule=self.schedule if schedule is None else schedule,
            key_id=self.key_id if key_id is None else key_id,
            end_user=self.end_user,
            call_depth=self.call_depth if call_depth is None else call_depth,
        )


class InvocationError(Schema):
    """Why an invocation has failed for good."""

    code: str
    message: str


class InvocationOutcome(Schema):
    """How an invocation has ended. `pending_id` is the message for which a skipped one makes way."""

    status: Literal["completed", "failed", "skipped"]
    session_id: Omitted[str] = None
    pending_id: Omitted[str] = None
    error: Omitted[InvocationError] = None

    @classmethod
    def failed(cls, code: str, message: str) -> "InvocationOutcome":
        return cls(status="failed", error=InvocationError(code=code, message=message))


class InvocationSource(Schema):
    """The origin of an invocation, with the automation as it was then: a schedule, or a request with its caller.

    `caller` is the caller's principal as in the context of a request, without a credential.
    """

    created_at: int
    scheduled_at: Omitted[int] = None
    automation: Omitted[Automation] = None
    caller: Omitted[dict[str, str]] = None


class AutomationInvocation(Schema):
    """One delivery of an automation. Times are in seconds since 1970.

    `automation` is what the automation was at a scheduled time; None if a request asked for the delivery.
    """

    id: str
    automation_id: str
    created_at: int
    scheduled_at: int | None = None
    session_id: str | None = None
    automation: Automation | None = None
    status: InvocationStatus = "queued"
    skip_reason: Literal["pending_delivery"] | None = None
    error: InvocationError | None = None
