"""Signals to runs in other processes, which those read while they run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnRef:
    """A turn of a session."""

    agent_id: str
    session_id: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class ResponseRef:
    """A response."""

    response_id: str


RunRef = TurnRef | ResponseRef


@dataclass(frozen=True, slots=True)
class RunSignals:
    """The signals to a run. `heartbeat_at` is the time of its client's last heartbeat, in milliseconds of the epoch."""

    cancelled: bool = False
    heartbeat_at: int | None = None
