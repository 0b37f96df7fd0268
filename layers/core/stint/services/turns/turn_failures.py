"""Endings of turns that failed or were cancelled."""

import asyncio
import logging

from stint.domain.errors import Cancelled, Interrupted, StintError, StoreUnavailable, Unexpected, rename_param
from stint.domain.inference import AnswerDetails
from stint.domain.llama_stack.events import TerminalEvent, TurnFailed
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.run_events import RunEnded
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.services.turns.turn_log import TurnLog
from stint.services.turns.turn_run import FIELDS, TurnRun, terminal_event

logger = logging.getLogger(__name__)

READ_SECONDS = 2.0
"""Maximum seconds of the read that shows how a turn has ended whose last write failed."""


async def fail_turn(turn: TurnRun, error: StintError) -> TerminalEvent:
    """Store that a turn failed or was cancelled, and return its last event. Nothing is raised.

    A turn whose ending is stored, although the answer to the write was lost, ends as it is stored. If the ending is not
    stored, the turn has failed, since the next one seals it.
    """
    error.turn_id = turn.turn_id
    error.param = rename_param(error.param, FIELDS)
    if isinstance(error, Cancelled):
        ending = turn.run.make_outcome(RunStatus.cancelled)
    else:
        logger.warning("The turn failed", extra={"error_code": error.code, "error": error.message})
        ending = turn.run.make_outcome(RunStatus.failed, ErrorInfo.of(error))
    try:
        await append_failure(turn.log, ending, turn.run.ending_details)
    except Exception as problem:  # nothing may be raised here, whatever is wrong with the store
        logger.warning("The outcome of a turn was not stored", exc_info=True)
        if isinstance(error, Cancelled):
            error = problem if isinstance(problem, StintError) else Unexpected()
            error.turn_id = turn.turn_id
            ending = turn.run.make_outcome(RunStatus.failed, ErrorInfo.of(error))
        turn.log.turn.records.append(TurnRecord(ending=ending))
        await turn.log.keeper.release()
    status = turn.log.turn.status
    if status is not RunStatus.failed:
        return terminal_event(turn, RunEnded(status))
    turn.error = error
    return TurnFailed(error, turn.log.turn.to_turn())


async def append_failure(log: TurnLog, ending: RunOutcome, details: AnswerDetails | None) -> None:
    """Store the ending of a turn that failed or was cancelled, unless the turn's ending is stored.

    Raises:
        Interrupted, StoreUnavailable: the ending cannot be stored.
    """
    if log.turn.ending is not None:
        return
    try:
        await log.append(None, ending, details)
    except (Interrupted, StoreUnavailable):
        async with asyncio.timeout(READ_SECONDS):
            if not await log.read_again():
                raise
        if log.turn.ending is None:
            await log.append(None, ending, details)
