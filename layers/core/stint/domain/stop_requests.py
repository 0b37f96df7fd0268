"""Requests of admins to stop the work of an object, an API key or a tenant, and what they return."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from stint.domain.api_keys import TenantId
from stint.domain.schema import Schema
from stint.domain.stops import StopKind, parse_stop_name


class StopRequest(BaseModel):
    """Stop a session, turn, response, conversation or API key by its id, or a whole tenant."""

    model_config = ConfigDict(extra="forbid")

    kind: StopKind
    id: str | None = Field(default=None, min_length=1, max_length=64, description="Id of what is stopped.")
    tenant: TenantId | None = Field(default=None, description="By default the caller's tenant.")

    @model_validator(mode="after")
    def require_id(self) -> Self:
        if self.kind != "tenant" and self.id is None:
            raise ValueError(f"A stop of a {self.kind} needs its id.")
        if self.kind == "tenant" and self.id is not None:
            raise ValueError("A stop of a tenant has no id. Name another tenant than your own with 'tenant'.")
        return self


class StopObject(Schema):
    """A stop. `id` is that of what is stopped; a stop of a whole tenant has the tenant there.

    A stop that was lifted before has no time.
    """

    object: Literal["stop"] = "stop"
    kind: StopKind
    id: str
    tenant: str
    stopped_at: int | None = Field(description="Time in seconds since 1970. Null if DELETE finds no stop.")

    @classmethod
    def of(cls, tenant: str, name: str, stopped_at: int | None) -> "StopObject":
        """Return a stored stop."""
        kind, identifier = parse_stop_name(name)
        return cls(kind=kind, id=identifier or tenant, tenant=tenant, stopped_at=stopped_at)
