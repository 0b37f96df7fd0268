"""A started turn, with its header and its terminal event."""

from stint.caller import RequestAttempt
from stint.dataclasses import dataclass
from stint.domain.content import DocumentText
from stint.domain.errors import StintError
from stint.domain.inference import Usage
from stint.domain.llama_stack.events import TerminalEvent, TurnAwaitingInput, TurnComplete, TurnStart
from stint.domain.llama_stack.stored_turns import TurnHeader
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import InputMessage
from stint.domain.run_events import RunEnded, StepComplete
from stint.domain.run_outcome import RunStatus
from stint.domain.schema import now
from stint.loop.run import Run
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


@dataclass(slots=True)
class TurnRun:
    """A started turn. Its start event is the first one, and the loop's events follow.

    `used` is the usage of a resumed turn before the pause; `error` is the turn's error.
    """

    run: Run
    log: TurnLog
    announcement: TurnStart | StepComplete
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

        return count_events(self.log.turn) - 1


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
    attempt: RequestAttempt,
) -> TurnHeader:
    """Return the first record of a turn."""
    lease = session.keeper.lease
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
    )
