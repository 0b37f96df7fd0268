"""Stops: a session, an API key or a whole tenant whose work is not allowed until the stop is lifted."""

from typing import Literal

from pydantic import Field

from stint.domain.schema import Schema

StopKind = Literal["session", "key", "tenant"]

MAX_STOPS = 50
"""Maximum stops of a tenant, so that a read of all costs half a unit. That of the whole tenant does not count."""

WHOLE_TENANT = "tenant"
"""The name of the stop of a whole tenant."""


def stop_name(kind: StopKind, identifier: str) -> str:
    """Return the name of a stop among those of its tenant."""
    return WHOLE_TENANT if kind == "tenant" else f"{kind}:{identifier}"


def describe_stop(name: str) -> str:
    """Return what a stop means, for a message."""
    kind, _, identifier = name.partition(":")
    return {"session": f"Session {identifier}", "key": f"The API key {identifier}"}.get(kind, "This tenant")


class StopObject(Schema):
    """A stop. `id` is that of the session or key, or the tenant."""

    object: Literal["stop"] = "stop"
    kind: StopKind
    id: str
    tenant: str
    stopped_at: int = Field(description="Time in seconds of the epoch.")


def read_stop(tenant: str, name: str, stopped_at: int) -> StopObject:
    """Return a stored stop."""
    kind, _, identifier = name.partition(":")
    kinds: dict[str, StopKind] = {"session": "session", "key": "key"}
    return StopObject(kind=kinds.get(kind, "tenant"), id=identifier or tenant, tenant=tenant, stopped_at=stopped_at)
