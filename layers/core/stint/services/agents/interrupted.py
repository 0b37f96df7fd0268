"""Turns whose process died: their detection by readers, and their ending.

A process that dies writes no ending. Its lease lapses, and the next run of the session seals the log. Until then, a
reader must not show the turn as running. It only says so and writes nothing: a write would need the lease.

    ending in the log   lease held for the turn     shown as
    yes                 -                           it ended
    no                  yes                         in progress
    no                  no, and the log has grown   looked at again
    no                  no, and has not grown       failed: interrupted
"""

import time
from datetime import datetime

from stint.domain.errors import Interrupted
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnRecord
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.store.sessions import SessionRecord
from stint.store.store import Store

INTERRUPTED = "The process that ran this turn ended before the turn did. Finished steps are stored."


def interrupted_ending(at: datetime) -> RunOutcome:
    """Return the ending of a turn whose process died."""
    return RunOutcome(status=RunStatus.failed, completed_at=at, error=ErrorInfo.of(Interrupted(INTERRUPTED)))


async def mark_interrupted(
    store: Store, tenant: str, agent_id: str, record: SessionRecord, turn: StoredTurn
) -> StoredTurn:
    """Return a turn for a reader. One whose process died is failed, even before the next turn seals it.

    `record` and `turn` may have been read concurrently, so a turn that seems dead is read again: its process is dead if
    its log has not grown, and no lease was held for it in between. Its time of completion is the last time in its log.

    Raises:
        NotFound: the session was deleted in the meantime.
    """
    ids = (tenant, agent_id, record.session_id)
    while turn.status is RunStatus.in_progress and not runs(record, turn.header.turn_id):
        record = await store.sessions.get(*ids)
        seen, turn = turn, await store.turns.get(*ids, turn.header.turn_id)
        # A turn that has grown was alive in between: the loop looks at it again.
        if len(turn.records) == len(seen.records) and not runs(record, turn.header.turn_id):
            turn.records.append(TurnRecord(ending=interrupted_ending(last_activity(turn))))
    return turn


def runs(record: SessionRecord, turn_id: str) -> bool:
    """Return whether a session's lease is held for a turn."""
    held = record.lease_until is not None and record.lease_until > time.time() * 1000
    return held and record.lease_turn == turn_id


def last_activity(turn: StoredTurn) -> datetime:
    completed = [step.completed_at for step in turn.steps if step.completed_at is not None]
    return max(completed, default=turn.header.started_at)
