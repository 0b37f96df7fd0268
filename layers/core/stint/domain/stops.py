"""Stops of work that is not allowed until the stop is lifted: of one object, an API key or a whole tenant."""

from typing import Literal

StopKind = Literal["session", "turn", "response", "conversation", "key", "tenant"]

WORDS: dict[StopKind, str] = {
    "session": "Session",
    "turn": "Turn",
    "response": "Response",
    "conversation": "Conversation",
    "key": "The API key",
}

MAX_STOPS = 50
"""Maximum stops of a tenant, so that a read of all costs half a unit. That of the whole tenant does not count."""

WHOLE_TENANT = "tenant"
"""The name of the stop of a whole tenant."""


def stop_name(kind: StopKind, identifier: str) -> str:
    """Return the name of a stop among those of its tenant."""
    return WHOLE_TENANT if kind == "tenant" else f"{kind}:{identifier}"


def describe_stop(name: str) -> str:
    """Return what a stop means, for a message."""
    kind, identifier = parse_stop_name(name)
    return "This tenant" if kind == "tenant" else f"{WORDS[kind]} {identifier}"


def parse_stop_name(name: str) -> tuple[StopKind, str]:
    """Return the kind of a stop, and the id of what it stops; it is empty for the whole tenant."""
    kind, _, identifier = name.partition(":")
    return kind if kind in WORDS else "tenant", identifier
