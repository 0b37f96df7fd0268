"""Webhooks: their endpoints, and the events that are sent to them, in the shapes of OpenAI's API.

An endpoint gets the events of its tenant whose types it names. Its signing secret is in an answer twice: when it is
made, at the creation and at each rotation. In its record it is encrypted.

    state       its events                                       it becomes
    enabled     are sent                                         disabled after 410, or after days of failures
    failing     are sent, each less often                        enabled with the next success
    disabled    are dropped                                      enabled by an update

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from stint.domain.fields import Omitted, refusal
from stint.domain.schema import Request, Schema

WebhookEventType = Literal[
    "response.completed",
    "response.failed",
    "response.cancelled",
    "response.incomplete",
    "agent.session.created",
    "agent.session.action_required",
    "agent.session.in_progress",
    "agent.session.idle",
    "agent.session.failed",
    "agent.session.turn.completed",
    "agent.session.turn.failed",
    "agent.session.turn.cancelled",
]
"""The types of events. OpenAI has no webhooks of turns."""

EVENT_TYPES: tuple[WebhookEventType, ...] = get_args(WebhookEventType)

MOST_ENDPOINTS = 10
"""Maximum endpoints of a tenant. All are read with its registrations."""

LONGEST_URL, LONGEST_NAME = 2_048, 256

EndpointName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f\x7f]*$")
]
EndpointURL = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL, pattern=r"^[\x21-\x7e]+$")]


def check_types(values: list[str]) -> list[str]:
    """Return event types without repetitions. Refuse those that never occur here, by name."""
    for value in values:
        if value not in EVENT_TYPES:
            raise refusal(
                f"The event type {value[:80]!r} is not supported. The supported ones are {', '.join(EVENT_TYPES)}."
            )
    return list(dict.fromkeys(values))


EventTypes = Annotated[list[str], Field(min_length=1, max_length=100), AfterValidator(check_types)]


class CreateWebhookEndpoint(Request):
    """A new endpoint. Unknown fields are refused, because a misspelled one would have no effect."""

    model_config = ConfigDict(extra="forbid")

    name: EndpointName
    url: EndpointURL
    event_types: EventTypes


class UpdateWebhookEndpoint(Request):
    """Changes of an endpoint. Any update of a disabled endpoint enables it, unless it sets `status`."""

    model_config = ConfigDict(extra="forbid")

    name: EndpointName | None = None
    url: EndpointURL | None = None
    event_types: EventTypes | None = None
    status: Literal["enabled", "disabled"] = "enabled"


class RotateWebhookSecret(Request):
    """The rotation of a signing secret. By default, the previous one is invalid at once."""

    model_config = ConfigDict(extra="forbid")

    keep_old_secret_active_for_24_hours: bool = False


class SendTestEvent(Request):
    """A sample event to send now."""

    model_config = ConfigDict(extra="forbid")

    event_type: Annotated[str, AfterValidator(lambda value: check_types([value])[0])]


class WebhookEndpoint(Schema):
    """An endpoint without its secret, of which `signing_secret_hint` has the end. Times are in seconds since 1970.

    `failing_since` is the first failure after the last success.
    """

    id: str
    object: Literal["webhook_endpoint"] = "webhook_endpoint"
    created_at: int
    updated_at: int
    name: str
    url: str
    event_types: list[str]
    signing_secret_hint: str
    status: Literal["enabled", "disabled"] = "enabled"
    failing_since: int | None = None


class WebhookEndpointWithSecret(WebhookEndpoint):
    """An endpoint that was just created, or whose secret was just rotated."""

    signing_secret: str = Field(repr=False)


class DeletedWebhookEndpoint(Schema):
    id: str
    object: Literal["webhook_endpoint.deleted"] = "webhook_endpoint.deleted"
    deleted: bool = True


class WebhookEndpointTestResult(Schema):
    """The status with which an endpoint has answered a sample event."""

    object: Literal["webhook_endpoint.test"] = "webhook_endpoint.test"
    webhook_endpoint_id: str
    event_type: str
    status_code: int
    success: Literal[True] = True


class WebhookEventTypeList(Schema):
    object: Literal["list"] = "list"
    data: list[str]


class StoredWebhookEndpoint(Schema):
    """The record of an endpoint. `sealed` has the encrypted secret, `previous_sealed` the one before a rotation.

    That one is in use until `previous_until`, in seconds since 1970.
    """

    resource: WebhookEndpoint
    sealed: str
    previous_sealed: Omitted[str] = None
    previous_until: int = 0

    @property
    def is_enabled(self) -> bool:
        return self.resource.status == "enabled"
