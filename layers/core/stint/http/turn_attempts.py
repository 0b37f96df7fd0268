"""Retries of turns over HTTP: their answer is that of the turn that the first attempt created."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from stint.apis.agents import AgentsServices
from stint.caller import EarlierRunUnavailable, find_attempt, renew_object_id, set_attempt
from stint.dataclasses import dataclass, replace
from stint.domain.errors import Conflict, DeadlineExceeded, NotFound, StintError, StoreUnavailable
from stint.domain.llama_stack.events import NumberedEvent, TurnFailed
from stint.domain.llama_stack.turns import TurnResumeRequest
from stint.http.streaming import encode_last_frame

logger = logging.getLogger(__name__)

T = TypeVar("T")

TurnIds = tuple[str, str, str]
"""The ids of an agent, a session and a turn."""


@dataclass(slots=True)
class FollowedTurn:
    """The turn of an earlier attempt. `error` is set once it has failed."""

    events: AsyncGenerator[NumberedEvent, None]
    error: StintError | None = None

    async def read_events(self) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events of the turn."""
        async for numbered in self.events:
            if isinstance(numbered.event, TurnFailed):
                self.error = numbered.event.error
            yield numbered


async def find_earlier_turn(
    services: AgentsServices, agent_id: str, session_id: str, deadline: float
) -> FollowedTurn | None:
    """Return the turn of an earlier attempt of the current request, if there is one.

    A turn that failed before its first step is repeated by the current attempt. One that runs is returned when it has a
    step, or its process has renewed its lease.

    Raises:
        EarlierRunUnavailable: the current attempt only follows the turn, which has not begun or has failed.
    """
    attempt = find_attempt()
    if not attempt.repeated and not (attempt.fingerprint and attempt.retry_count):
        return None
    retries = services.make_turn_retries()
    find = retries.find_keyed if attempt.repeated else retries.find
    try:
        found = await find(agent_id, session_id, attempt, deadline)
        if found is not None and not found.failed:
            return FollowedTurn(await retries.follow(agent_id, session_id, found.turn_id, deadline))
    except NotFound:  # starting a turn names the missing object
        found, attempt = None, replace(attempt, repeated=False)
    if attempt.follows:
        raise EarlierRunUnavailable
    if attempt.repeated:
        await renew_object_id(attempt)
    if found is not None:
        set_attempt(replace(find_attempt(), retry_of=found.turn_id))
    return None


async def find_waiting(services: AgentsServices, agent_id: str, session_id: str) -> str | None:
    """Return the message of an earlier attempt of the current request that waited for the session, if there is one."""
    attempt = find_attempt()
    if attempt.repeated:
        return await services.make_turn_admission(agent_id, session_id).find_accepted(attempt.object_id)
    if attempt.fingerprint and attempt.retry_count:
        admission = services.make_turn_admission(agent_id, session_id)
        return await admission.find_retried(attempt.fingerprint, attempt.retry_count)
    return None


async def use_run(services: AgentsServices, ids: TurnIds, use: Callable[[TurnIds], Awaitable[T]]) -> T:
    """Return the result of `use` for a turn, or for the one that has the message with its id.

    Raises as `use` does.
    """
    try:
        return await use(ids)
    except (NotFound, Conflict) as error:
        if isinstance(error, Conflict) and error.code != "turn_not_awaiting_input":
            raise
        agent_id, session_id, turn_id = ids
        found = (await services.turns.get(agent_id, session_id, turn_id)).turn_id
        if found == turn_id:
            raise
    return await use((agent_id, session_id, found))


async def follow_run(
    services: AgentsServices, ids: TurnIds, after: int, deadline: float
) -> AsyncGenerator[NumberedEvent, None]:
    """Return the events after a number of a turn, or of the one that has the message with its id, once it has started.

    Raises:
        NotFound: there is no such turn or message.
        InvalidRequest: the turn has ended, and has no event with that number.
    """
    follow = services.make_turn_tail().follow
    try:
        return await follow(*ids, after, deadline)
    except NotFound:
        found = await services.turns.get(*ids)
    if found.turn_id == ids[2]:
        return follow_message(services, ids, after, deadline)
    return await follow(*ids[:2], found.turn_id, after, deadline)


async def follow_message(
    services: AgentsServices, ids: TurnIds, after: int, deadline: float
) -> AsyncGenerator[NumberedEvent, None]:
    """Yield the events after a number of the turn that has a message, once it has started.

    Raises StintError if it is not started, or as `follow_run`.
    """
    agent_id, session_id, message_id = ids
    started = await services.make_turn_admission(agent_id, session_id).admission.wait_for_start(message_id, deadline)
    events = await services.make_turn_tail().follow(agent_id, session_id, started.run_id, after, deadline)
    async with aclosing(events):
        async for numbered in events:
            yield numbered


async def note_turn(turn_id: str) -> None:
    """Record the id of a turn that did not get that of its request's idempotency key, before the turn is stored."""
    attempt = find_attempt()
    if attempt.rename is not None and turn_id != attempt.object_id:
        await attempt.rename(turn_id)


async def follow_resume(
    services: AgentsServices, ids: TurnIds, body: TurnResumeRequest, deadline: float
) -> FollowedTurn | None:
    """Return the turn, from its resume on, if the current attempt only follows the first one; otherwise None.

    Raises:
        EarlierRunUnavailable: the first attempt has stored nothing.
    """
    if not find_attempt().follows:
        return None
    found = await find_earlier_resume(services, ids, body, deadline)
    if found is None:
        raise EarlierRunUnavailable
    return found


async def find_earlier_resume(
    services: AgentsServices, ids: TurnIds, body: TurnResumeRequest, deadline: float
) -> FollowedTurn | None:
    """Return the turn, from its resume on, if it has exactly the request's tool responses.

    A turn that was resumed with others, or that does not exist, has none.
    """
    try:
        events = await services.make_turn_retries().follow_resume(*ids, body.tool_responses, deadline)
    except NotFound:
        return None
    return FollowedTurn(events) if events is not None else None


def encode_tail_error(error: Exception) -> tuple[bytes, ...]:
    """Write the error of a turn that no longer exists, and nothing otherwise, so that the client reconnects."""
    if isinstance(error, DeadlineExceeded | StoreUnavailable):
        logger.info("A stream was closed before its end", extra={"error_code": error.code})
        return ()
    return encode_last_frame(error)
