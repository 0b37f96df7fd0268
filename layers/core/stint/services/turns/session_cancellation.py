"""Cancellation of what a session does, which a request names by the session alone: so a repetition could end more.

A first attempt may have ended a turn before its process died or its answer was lost. Until its repetition arrives, the
next turn may run. So a repetition looks for what has happened since the first attempt, and no attempt writes anything
for it:

    since the first attempt                       a repetition cancels
    a turn or a message in line was cancelled     nothing, whoever has cancelled it
    none was, and a turn runs that began before   this turn
    none was, and a later turn runs               nothing

With an idempotency key, the time of the first attempt is that of the id in the key's record. Without one, it is not
known: a retry looks at the last RETRY_SECONDS, and cannot tell a later turn from an earlier one.
"""

import time
from datetime import UTC, datetime

from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.domain.ids import time_of
from stint.domain.llama_stack.turns import Turn
from stint.domain.run_outcome import RunStatus
from stint.services.turns.session_input import SessionInput
from stint.store.waiting_line import MAX_WAITING

RETRY_SECONDS = 10.0
"""Seconds between the effect of an attempt and its retry, at most. The SDK waits for 8 s at most."""


async def cancel_session(session: SessionInput, attempt: RequestAttempt = NO_ATTEMPT) -> Turn | None:
    """Cancel the turn that runs or waits for its client, or else the first message in line, and return it.

    Raises as `TurnCancellation.cancel`.
    """
    if attempt.is_retry and await was_cancelled(session, first_time(attempt)):
        return None
    admission = session.requests.make_admission(session.agent_id, session.session_id, attended=False)
    turn_id = await admission.kind.find_running()
    if turn_id is None:
        places = [place for place in await session.line.read() if not place.alive]
        turn_id = places[0].message_id if places else None
    if turn_id is None or (attempt.repeated and turn_id > attempt.object_id):
        return None
    return await session.requests.cancellation.cancel(session.agent_id, session.session_id, turn_id)


def first_time(attempt: RequestAttempt) -> datetime:
    """Return the time of the first attempt of a request, or a time before it."""
    if attempt.repeated:
        return time_of(attempt.object_id)
    return datetime.fromtimestamp(time.time() - RETRY_SECONDS, UTC)


async def was_cancelled(session: SessionInput, since: datetime) -> bool:
    """Return whether a turn, or a message in line, was cancelled since a time."""
    if await session.line.was_cancelled(since.timestamp()):
        return True
    # At most MAX_WAITING messages were in line at that time. Others begin later, and are not cancelled with a key.
    turns, _ = await session.turns.store.turns.page(*session.ids, limit=MAX_WAITING)
    endings = [turn.ending for turn in turns if turn.status is RunStatus.cancelled]
    return any(ending is not None and ending.completed_at >= since for ending in endings)
