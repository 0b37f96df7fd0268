"""Events for the webhooks of a tenant: which there are, and the tasks that send them.

An outcome is announced by the process that stores it, after it is stored. All APIs store outcomes in the same places,
so these announce, and routes do not:

    stored                                                   announced by
    a new session                                            `Sessions.create`
    a turn's header, or the results that resume it           `Turns`
    a turn's ending                                          `TurnLog`; whoever seals a turn
    the ending of a response in the foreground               `ResponseLog`; whoever seals it
    the ending of a response in the background               the worker, with its completion event, also if it repeats

The endpoints are a part of the registrations, which each run reads anyway. So a tenant without endpoints pays nothing,
and one with endpoints one message for each event and endpoint that names its type. The id of an event is derived from
its object and outcome: a repeated announcement has the same one.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Protocol

from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.domain.run_outcome import RunStatus
from stint.domain.schema import Schema
from stint.domain.tasks import SendTask, WebhookTask

logger = logging.getLogger(__name__)

Data = dict[str, str | dict[str, str]]
"""What a body says: ids and statuses."""

TURN_ENDINGS = {
    RunStatus.completed: "agent.session.turn.completed",
    RunStatus.failed: "agent.session.turn.failed",
    RunStatus.cancelled: "agent.session.turn.cancelled",
}


class FindEndpoints(Protocol):
    """A function that returns the JSON of the tenant's endpoints, as this process has read them lately."""

    def __call__(self, *, current: bool = False) -> Awaitable[Mapping[str, bytes]]: ...


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """A turn, its session and its agent."""

    agent_id: str
    session_id: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class WebhookEvents:
    """Announces events of a tenant. Only `announce` raises: no run fails because a webhook cannot be sent.

    `knows_none` tells a run, which has read the registrations, at once that there are no endpoints.
    """

    tenant: str
    knows_none: Callable[[], bool]
    find_endpoints: FindEndpoints
    send: SendTask

    async def prepare(self) -> None:
        """Read the endpoints, for an outcome whose request reads no registrations. A failure is not raised."""
        with suppress(StintError):
            await self.find_endpoints(current=True)

    async def session_created(self, session_id: str) -> None:
        """Announce a new session."""
        await self.try_to_announce({"agent.session.created": of_session(session_id)}, session_id)

    async def turn_started(self, turn: TurnPlace, records: int) -> None:
        """Announce that a turn runs, which has this number of records."""
        await self.try_to_announce(
            {"agent.session.in_progress": of_session(turn.session_id)}, f"{turn.turn_id}:{records}"
        )

    async def turn_ended(self, turn: TurnPlace, status: RunStatus, records: int, *, asks: bool = False) -> None:
        """Announce how a turn ended, or that it waits for its client; with `asks`, for an approval first."""
        if status is RunStatus.awaiting_input:
            action = "mcp_approval_request" if asks else "function_call"
            needed: Data = {"id": turn.session_id, "required_action": {"type": action}}
            events = {"agent.session.action_required": needed}
        else:
            of_turn: Data = {
                "id": turn.turn_id,
                "session_id": turn.session_id,
                "agent_id": turn.agent_id,
                "status": status.value,
            }
            events = {TURN_ENDINGS[status]: of_turn, "agent.session.idle": of_session(turn.session_id)}
        await self.try_to_announce(events, f"{turn.turn_id}:{records}")

    async def response_ended(self, response_id: str, status: str, *, raises: bool = False) -> None:
        """Announce how a response ended. With `raises`, StoreUnavailable is raised if the queue takes no message."""
        announce = self.announce if raises else self.try_to_announce
        await announce({f"response.{status}": {"id": response_id}}, response_id)

    async def try_to_announce(self, events: Mapping[str, Data], name: str) -> None:
        """Announce events as `announce`. A failure is only logged: what they tell is stored."""
        try:
            await self.announce(events, name)
        except StintError as error:
            logger.warning("The webhooks of an outcome were not sent", extra={"error": error.message})

    async def announce(self, events: Mapping[str, Data], name: str) -> None:
        """Send a task for each event and each endpoint that wants it. `name` is that of the outcome.

        Raises StoreUnavailable.
        """
        endpoints = await self.find_endpoints()
        if not endpoints:
            return
        from stint.services.runs.wanted_events import read_wanted  # noqa: PLC0415 - few tenants have endpoints

        now = int(time.time())
        tasks = [
            WebhookTask(
                tenant=self.tenant,
                endpoint_id=endpoint_id,
                event_id=event_id(self.tenant, kind, name),
                type=kind,
                created_at=now,
                data=data,
            )
            for kind, data in events.items()
            for endpoint_id in read_wanted(endpoints, kind)
        ]
        await asyncio.gather(*map(self.send, tasks))


async def find_none(*, current: bool = False) -> Mapping[str, bytes]:  # noqa: ARG001 - of the protocol
    """Return no endpoints."""
    return {}


async def send_nothing(_: Schema) -> None:
    """Send no task."""


NO_WEBHOOKS = WebhookEvents("", lambda: True, find_none, send_nothing)
"""Announces nothing."""


def of_session(session_id: str) -> Data:
    """Return what a body says of a session. Sessions have no environment here."""
    return {"id": session_id, "environment_type": "none"}


def event_id(tenant: str, kind: str, name: str) -> str:
    """Return the id of an event, always the same one for an outcome."""
    return f"evt_{sha256(f'{tenant}:{kind}:{name}'.encode()).hexdigest()[:32]}"
