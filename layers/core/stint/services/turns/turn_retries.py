"""Retries of turns: a client's retry finds the turn that its first attempt created.

A retry without an idempotency key is known by the fingerprint of its request, and finds only the running or last turn
of the session. One with a key knows the id of the turn.

| the turn of the earlier attempt                    | the retry                                                    |
|----------------------------------------------------|--------------------------------------------------------------|
| has the lease, but no header yet                   | waits for the header, up to HEADER_SECONDS without a key     |
| runs without a step                                | waits for a step, a renewal of the lease, or its end         |
| runs with a step, or its process renewed the lease | follows it from its first event on                           |
| ended, also as failed after a step                 | replays it                                                   |
| failed before its first step, and may be repeated  | starts a new turn, in whose history the failed one is hidden |
| is unknown, or another request's                   | starts a turn                                                |

Two retries of one count could follow one turn each, and a third request could be lost. So without a key, each turn
answers one retry per count, which claims it with a conditional write. Nothing is sent of a turn before it has shown a
sign of life: after the first byte it could not be run again.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from stint.caller import EarlierRunUnavailable, RequestAttempt
from stint.dataclasses import dataclass, replace
from stint.domain.errors import RETRYABLE_CODES, DeadlineExceeded, NotFound
from stint.domain.llama_stack.events import NumberedEvent, TurnAwaitingInput, TurnComplete, TurnFailed
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import TurnResumeRequest
from stint.domain.run_outcome import RunStatus
from stint.services.agents.interrupted import mark_interrupted, runs
from stint.services.runs.polling_pauses import PollingPauses
from stint.services.turns.resume import is_answer
from stint.services.turns.turn_replay import count_events
from stint.store.sessions import SessionRecord
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.services.turns.turn_tail import TurnTail

HEADER_SECONDS = 5.0
"""Seconds to wait for the header of a turn that has the session's lease. It is written soon after that."""


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """The turn of an earlier attempt. One that `failed` before its first step is to be run again."""

    turn_id: str
    failed: bool


@dataclass(frozen=True, slots=True)
class TurnRetries:
    """Finds and follows the turns of earlier attempts in a tenant's sessions."""

    tenant: str
    store: Store
    tail: "TurnTail"

    async def find_earlier(
        self, agent_id: str, session_id: str, attempt: RequestAttempt, deadline: float
    ) -> AsyncGenerator[NumberedEvent, None] | RequestAttempt:
        """Return the events of the turn of an earlier attempt; if there is none, the attempt that starts a turn.

        A turn that failed before its first step is repeated, under a new id.

        Raises:
            EarlierRunUnavailable: the attempt only follows the turn, which has not begun or has failed.
        """
        find = self.find_keyed if attempt.repeated else self.find
        try:
            found = await find(agent_id, session_id, attempt, deadline)
            if found is not None and not found.failed:
                return await self.follow(agent_id, session_id, found.turn_id, deadline)
        except NotFound:  # starting a turn names the missing object
            found, attempt = None, replace(attempt, repeated=False)
        if attempt.follows:
            raise EarlierRunUnavailable
        if attempt.repeated:
            attempt = await attempt.renewed()
        return attempt if found is None else replace(attempt, retry_of=found.turn_id)

    async def find(self, agent_id: str, session_id: str, attempt: RequestAttempt, deadline: float) -> FoundTurn | None:
        """Return the turn that an earlier attempt of the same request created.

        It is the session's running turn, or its last one. Each turn answers one retry per count. After a turn whose
        process has died, another retry may have run it again.

        Raises:
            NotFound: there is no such session.
        """
        failed: FoundTurn | None = None
        while True:
            turn = await self.read_newest(agent_id, session_id)
            if turn is None or not was_sent_by(turn, attempt):
                return failed
            turn_id, own = turn.header.turn_id, turn.header.fingerprint == attempt.fingerprint
            if own and turn.header.retry_count >= attempt.retry_count:
                return failed
            if not await self.store.retry_claims.put(self.tenant, turn_id, attempt.retry_count):
                return failed
            ran = turn.status is RunStatus.in_progress
            turn = await self.wait_for_progress(agent_id, turn, deadline) if own else turn
            failed = FoundTurn(turn_id, own and failed_before_a_step(turn))
            if not (ran and failed.failed):
                return failed

    async def find_keyed(
        self, agent_id: str, session_id: str, attempt: RequestAttempt, deadline: float
    ) -> FoundTurn | None:
        """Return the turn that an earlier attempt with the same idempotency key created; None if there is none."""
        try:
            turn = await self.wait_for_header(agent_id, session_id, attempt.object_id, deadline)
            turn = await self.wait_for_progress(agent_id, turn, deadline)
        except NotFound:
            return None
        return FoundTurn(turn.header.turn_id, failed_before_a_step(turn))

    async def wait_for_header(self, agent_id: str, session_id: str, turn_id: str, deadline: float) -> StoredTurn:
        """Return a turn, which is waited for while it has the session's lease.

        Raises:
            NotFound: there is no such turn, and its process is dead or has not begun it, or the deadline has passed.
        """
        pauses = PollingPauses(deadline)
        while True:
            try:
                return await self.tail.read(agent_id, session_id, turn_id)
            except NotFound:
                if not runs(await self.store.sessions.get(self.tenant, agent_id, session_id), turn_id):
                    raise
            try:
                await pauses.wait()
            except DeadlineExceeded:
                raise NotFound("Turn", turn_id) from None

    async def wait_for_progress(self, agent_id: str, turn: StoredTurn, deadline: float) -> StoredTurn:
        """Return a turn when it has a record, its process has renewed its lease or is dead, or at the deadline.

        Nothing is sent of it before, so that a turn whose process died before the first step can be run again.

        Raises:
            NotFound: the session was deleted.
        """
        ids, turn_id = (self.tenant, agent_id, turn.header.session_id), turn.header.turn_id
        pauses, seen = PollingPauses(deadline), None
        while not turn.records:
            record = await self.store.sessions.get(*ids)
            seen = seen or record.lease_until
            if runs(record, turn_id) and record.lease_until != seen:
                return turn
            turn = await mark_interrupted(self.store, self.tenant, agent_id, record, turn=turn)
            if not turn.records:
                try:
                    await pauses.wait()
                except DeadlineExceeded:
                    return turn
                turn = await self.store.turns.get(*ids, turn_id)
        return turn

    async def read_newest(self, agent_id: str, session_id: str) -> StoredTurn | None:
        """Return the running or last turn of a session. One that is being started is waited for."""
        pauses = PollingPauses(asyncio.get_running_loop().time() + HEADER_SECONDS)
        while True:
            record = await self.store.sessions.get(self.tenant, agent_id, session_id)
            turn_id = newest_turn(record)
            if turn_id is None:
                return None
            try:
                turn = await self.store.turns.get(self.tenant, agent_id, session_id, turn_id)
            except NotFound:
                if not runs(record, turn_id):
                    return None
            else:
                return await mark_interrupted(self.store, self.tenant, agent_id, record, turn=turn)
            try:
                await pauses.wait()
            except DeadlineExceeded:
                return None

    async def follow(
        self, agent_id: str, session_id: str, turn_id: str, deadline: float
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Return the events of a turn up to its first ending or pause, as in its first stream. Raises NotFound."""
        return until_ending(await self.tail.follow(agent_id, session_id, turn_id, -1, deadline=deadline))

    async def follow_message(
        self, agent_id: str, session_id: str, message_id: str, turn_id: str, deadline: float
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Return the events of the turn that has a message, from its start or the last pause before the message.

        Raises:
            NotFound: there is no such turn.
        """
        turn = await self.tail.read(agent_id, session_id, turn_id)
        before = turn.records[: place_of_message(turn, message_id)]
        paused = max((place for place, record in enumerate(before, 1) if record.ending is not None), default=0)
        after = count_events(StoredTurn(turn.header, before[:paused])) - 1 if paused else -1
        return until_ending(await self.tail.follow(agent_id, session_id, turn_id, after, deadline=deadline))

    async def find_resume(
        self, agent_id: str, session_id: str, turn_id: str, request: TurnResumeRequest, deadline: float
    ) -> AsyncGenerator[NumberedEvent, None] | None:
        """Return the events of the resume that stored exactly the answers of a request, up to the next ending or pause.

        None if no resume stored them, or there is no such turn. A resume that has begun is waited for.
        """
        with suppress(NotFound):
            return await self.follow_resume(agent_id, session_id, turn_id, request, deadline=deadline)
        return None

    async def follow_resume(
        self, agent_id: str, session_id: str, turn_id: str, request: TurnResumeRequest, deadline: float
    ) -> AsyncGenerator[NumberedEvent, None] | None:
        """Return the events as `find_resume`. Raises NotFound."""
        pauses = PollingPauses(asyncio.get_running_loop().time() + HEADER_SECONDS)
        while True:
            turn = await self.tail.read(agent_id, session_id, turn_id)
            place = find_resume(turn, request)
            if place is not None:
                before = count_events(StoredTurn(turn.header, turn.records[:place]))
                return until_ending(
                    await self.tail.follow(agent_id, session_id, turn_id, before - 1, deadline=deadline)
                )
            record = await self.store.sessions.get(self.tenant, agent_id, session_id)
            if not runs(record, turn_id):
                return None
            try:
                await pauses.wait()
            except DeadlineExceeded:
                return None


def find_resume(turn: StoredTurn, request: TurnResumeRequest) -> int | None:
    """Return the index of the record by which a resume stored exactly the answers of a request, the latest one."""
    ended, found = False, None
    for place, record in enumerate(turn.records):
        if record.fence:
            continue
        if ended and is_answer(record, request):
            found = place
        ended = record.ending is not None
    return found


async def until_ending(events: AsyncGenerator[NumberedEvent, None]) -> AsyncGenerator[NumberedEvent, None]:
    async with aclosing(events):
        async for numbered in events:
            yield numbered
            if isinstance(numbered.event, TurnComplete | TurnAwaitingInput | TurnFailed):
                return


def place_of_message(turn: StoredTurn, message_id: str) -> int:
    """Return the index of the record with a message, 0 if the turn was started with it."""
    for place, record in enumerate(turn.records):
        if any(message.message_id == message_id for message in record.merged or ()):
            return place
    return 0


def was_sent_by(turn: StoredTurn, attempt: RequestAttempt) -> bool:
    """Return whether a turn was started by an earlier attempt of a request, or has taken its message."""
    return attempt.fingerprint in {turn.header.fingerprint, *(message.fingerprint for message in turn.merged)}


def newest_turn(record: SessionRecord) -> str | None:
    """Return the running turn of a session, or else its last one. The holder of a lapsed lease may be either."""
    last = record.last.turn_id if record.last else None
    return max(filter(None, (record.lease_turn, last)), default=None)


def failed_before_a_step(turn: StoredTurn) -> bool:
    """Return whether a turn failed before its first step, for a reason that another attempt may not meet."""
    error = turn.ending.error if turn.ending else None
    failed = turn.status is RunStatus.failed and error is not None and error.code in RETRYABLE_CODES
    return failed and not turn.steps
