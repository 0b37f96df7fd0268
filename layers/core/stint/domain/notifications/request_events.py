"""Events that request a turn or a response from the worker (docs/events.md)."""

from json import JSONDecodeError
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from stint.domain.fields import invalid
from stint.domain.ids import TENANT, TenantName
from stint.domain.json_text import check_value
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.schema import Request

EventId = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9._:/@+=-]+$")]
ObjectId = Annotated[str, Field(min_length=1)]


class TurnRequested(TurnCreateRequest):
    """The detail of an event that requests a turn: the body of POST .../turn, with the agent and the session."""

    agent_id: ObjectId
    session_id: ObjectId


class ResponseRequested(CreateResponse):
    """The detail of an event that requests a response: the body of POST /v1/responses. It runs in the background."""

    @model_validator(mode="before")
    @classmethod
    def put_in_background(cls, data: Any) -> Any:
        return data | {"background": True} if isinstance(data, dict) else data


class EventEnvelope(Request):
    """An event as the rule of the stack's event bus passes it on. A direct invocation has the same form.

    The rule sets `tenant`; `detail` has none. An event with a known `id` starts nothing new. A direct invocation may
    omit both.
    """

    tenant: TenantName = TENANT
    id: EventId | None = None


class TurnRequestEvent(EventEnvelope):
    detail_type: Annotated[Literal["Stint Turn Requested"], Field(alias="detail-type")]
    detail: TurnRequested


class ResponseRequestEvent(EventEnvelope):
    detail_type: Annotated[Literal["Stint Response Requested"], Field(alias="detail-type")]
    detail: ResponseRequested


def check_event(event: Any) -> Any:
    """Check a parsed event by the rules of request bodies. Lambda's runtime accepts values that cannot be stored."""
    try:
        check_value(event)
    except JSONDecodeError as error:
        raise invalid(f"The event cannot be read: {error.msg}") from None
    return event


RequestEvent = Annotated[
    TurnRequestEvent | ResponseRequestEvent, Field(discriminator="detail_type"), BeforeValidator(check_event)
]
REQUEST_EVENT: TypeAdapter[RequestEvent] = TypeAdapter(RequestEvent, config=ConfigDict(defer_build=True))
