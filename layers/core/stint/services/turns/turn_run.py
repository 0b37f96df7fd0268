"""A started turn, with its header and its terminal event.

`fail_turn` stores the endings of turns that failed or were cancelled.
"""

import asyncio
import logging

from stint.caller import find_call_depth
from stint.dataclasses import dataclass
from stint.domain.content import DocumentText
from stint.domain.errors import Cancelled, Interrupted, StintError, StoreUnavailable, Unexpected, rename_param
from stint.domain.inference import AnswerDetails, Usage
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.events import TerminalEvent, TurnAwaitingInput, TurnComplete, TurnFailed, TurnStart
from stint.domain.llama_stack.stored_turns import TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import InputMessage
from stint.domain.run_events import RunEnded, StepComplete
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.domain.schema import now
from stint.loop.run import Run
from stint.loop.toolbox import Toolbox
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.session_opener import OpenSession
from stint.services.turns.turn_log import TurnLog

FIELDS = {
    "messages": "messages",
    "response_format": "response_format",
    "tools": "tools",
    "tool_choice": "tool_config.tool_choice",
    **dict.fromkeys(("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop"), "sampling_params"),
}
"""The Agents API's names of the fields that a model's provider may refuse."""

logger = logging.getLogger(__name__)

READ_SECONDS = 2.0
"""Maximum seconds of the read that shows how a turn has ended whose last write failed."""


@dataclass(slots=True)
class TurnRun:
    """A started turn. Its start event is the first one, and the loop's events follow.

    A turn that is resumed with approvals alone has no `announcement`.

    `config` is the agent's; `used` is the usage of a resumed turn before the pause; `error` is the turn's error.
    """

    run: Run
    log: TurnLog
    announcement: TurnStart | StepComplete | None
    config: AgentConfig
    used: Usage | None = None
    error: StintError | None = None

    @property
    def turn_id(self) -> str:
        return self.run.run_id

    @property
    def first_event(self) -> int:
        """Return the number of the start event among all events of the turn, before the run begins."""
        if isinstance(self.announcement, TurnStart):
            return 0
        from stint.services.turns.turn_replay import count_events  # noqa: PLC0415 - few turns are resumed

        return count_events(self.log.turn) - (self.announcement is not None)


def terminal_event(turn: TurnRun, end: RunEnded) -> TerminalEvent:
    """Convert the end of a run to the turn's terminal event."""
    shown = turn.log.turn.to_turn()
    if end.status is RunStatus.awaiting_input:
        return TurnAwaitingInput(turn=shown)
    return TurnComplete(turn=shown)


def make_header(
    session: OpenSession,
    messages: list[InputMessage],
    documents: list[DocumentText],
    overrides: TurnOverrides,
    context: RequestContext,
    toolbox: Toolbox,
) -> TurnHeader:
    """Return the first record of a turn, which runs with a `toolbox`."""
    lease, attempt = session.keeper.lease, context.attempt
    return TurnHeader(
        turn_id=lease.turn_id,
        session_id=lease.session_id,
        input_messages=messages,
        documents=documents,
        started_at=now(),
        overrides=overrides,
        fingerprint=attempt.fingerprint,
        retry_count=attempt.retry_count,
        retry_of=attempt.retry_of,
        call_depth=find_call_depth(),
        servers=list_servers(toolbox) if toolbox.server else None,
        message_ids=[*context.message_ids] or None,
    )


def list_servers(toolbox: Toolbox) -> dict[str, list[str]] | None:
    from stint.services.turns.tool_servers import name_servers  # noqa: PLC0415 - many turns have no tools of servers

    return name_servers(toolbox)


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
