"""A turn that was begun, and how it begins and ends."""

from dataclasses import dataclass

from stint.domain.content import DocumentText
from stint.domain.errors import StintError
from stint.domain.inference import Usage
from stint.domain.llama_stack.events import TerminalEvent, TurnAwaitingInput, TurnComplete, TurnStart
from stint.domain.llama_stack.stored_turns import TurnHeader
from stint.domain.llama_stack.turns import TurnCreateRequest, TurnOverrides
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
"""What the Agents API calls the fields that a model's provider may refuse."""


@dataclass(slots=True)
class TurnRun:
    """A turn that was begun: its announcement is the first event, the loop's events follow.

    `used` is what a resumed turn had used before; `error` is what the turn failed with.
    """

    run: Run
    log: TurnLog
    announcement: TurnStart | StepComplete
    used: Usage | None = None
    error: StintError | None = None

    @property
    def turn_id(self) -> str:
        return self.run.run_id


def terminal_event(turn: TurnRun, end: RunEnded) -> TerminalEvent:
    """Give the end of a run as the end of its turn."""
    shown = turn.log.turn.to_turn()
    if end.status is RunStatus.awaiting_input:
        return TurnAwaitingInput(turn=shown)
    return TurnComplete(turn=shown)


def make_header(
    opening: OpenSession, request: TurnCreateRequest, documents: list[DocumentText], overrides: TurnOverrides
) -> TurnHeader:
    """Make the first record of a turn."""
    lease = opening.keeper.lease
    return TurnHeader(
        turn_id=lease.turn_id,
        session_id=lease.session_id,
        input_messages=request.messages,
        documents=documents,
        started_at=now(),
        overrides=overrides,
    )
