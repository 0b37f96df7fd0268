"""Signals to runs in other processes, which those read while they run."""

from typing import Literal

from stint.dataclasses import dataclass
from stint.domain.schema import Schema

OnDisconnect = Literal["continue", "cancel"]
"""Run to the end without the client, or cancel the run once its client has sent heartbeats and stops doing so."""

HEARTBEAT_SECONDS = 5
"""Seconds between two heartbeats of a client."""

HEARTBEAT_TIMEOUT_SECONDS = 3 * HEARTBEAT_SECONDS
"""Seconds without a heartbeat after which a client is gone."""


class HeartbeatReceived(Schema):
    """The answer to a heartbeat: when the next one is due, and after how long without one the run is cancelled."""

    interval_seconds: int = HEARTBEAT_SECONDS
    timeout_seconds: int = HEARTBEAT_TIMEOUT_SECONDS


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
