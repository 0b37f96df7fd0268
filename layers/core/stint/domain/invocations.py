"""Events that ask the worker for a turn or a response (docs/events.md)."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, model_validator

from stint.domain.ids import TENANT, TenantName
from stint.domain.response_requests import CreateResponse
from stint.domain.schema import Request
from stint.domain.turns import TurnCreateRequest

EventId = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9._:/@+=-]+$")]
ObjectId = Annotated[str, Field(min_length=1)]


class TurnRequested(TurnCreateRequest):
    """The detail of an event that asks for a turn: what POST .../turn takes, and where."""

    agent_id: ObjectId
    session_id: ObjectId


class ResponseRequested(CreateResponse):
    """The detail of an event that asks for a response: what POST /v1/responses takes. It runs in the background."""

    @model_validator(mode="before")
    @classmethod
    def put_in_background(cls, data: Any) -> Any:
        return data | {"background": True} if isinstance(data, dict) else data


class Asked(Request):
    """An event as the rule of the stack's event bus passes it on; a direct invocation has the same form.

    The rule sets `tenant`: nothing in `detail` names one. The same `id` asks for the same thing: what comes again
    begins nothing. A direct invocation may leave out both.
    """

    tenant: TenantName = TENANT
    id: EventId | None = None


class TurnAsked(Asked):
    detail_type: Annotated[Literal["Stint Turn Requested"], Field(alias="detail-type")]
    detail: TurnRequested


class ResponseAsked(Asked):
    detail_type: Annotated[Literal["Stint Response Requested"], Field(alias="detail-type")]
    detail: ResponseRequested


AnyAsked = Annotated[TurnAsked | ResponseAsked, Field(discriminator="detail_type")]
ASKED: TypeAdapter[AnyAsked] = TypeAdapter(AnyAsked)
