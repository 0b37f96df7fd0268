"""Going on with a turn that waits for its client."""

from stint.domain.errors import Conflict
from stint.domain.schema import now
from stint.domain.steps import InferenceStep, ToolExecutionStep
from stint.domain.stored_turns import PendingCalls, StoredTurn
from stint.domain.tools import ToolResponse
from stint.domain.turns import Turn, TurnEnding
from stint.services.history import Transcript
from stint.services.plans import Plan
from stint.services.runs import Log, Run
from stint.services.turnlog import calls_of_pause


def not_waiting(turn: Turn) -> Conflict:
    """Say why a turn cannot be resumed."""
    return Conflict(
        f"Turn {turn.turn_id} does not wait for tool responses: its status is {turn.status.value}. Only the last turn "
        "of a session can be resumed, while its status is awaiting_input. Begin a new turn.",
        code="turn_not_awaiting_input",
    )


def waiting_calls(turn: StoredTurn, pause: TurnEnding, noted: PendingCalls | None) -> PendingCalls:
    """Give the calls that a paused turn waits for; a note that was read before it paused again is outdated."""
    pending = calls_of_pause(turn.header.turn_id, turn.steps, pause)
    return noted if noted is not None and noted.tool_calls == pending.tool_calls else pending


def answered_step(pending: PendingCalls, responses: list[ToolResponse]) -> ToolExecutionStep:
    """Make the step of the calls that the client has answered; it began when the turn paused."""
    return ToolExecutionStep(
        turn_id=pending.turn_id,
        step_id=pending.step_id,
        started_at=pending.started_at,
        completed_at=now(),
        tool_calls=pending.tool_calls,
        tool_responses=responses,
    )


def resumed_run(turn: StoredTurn, plan: Plan, transcript: Transcript, log: Log, deadline: float) -> Run:
    """Go on where a turn paused: what it has used so far counts."""
    iterations = sum(isinstance(step, InferenceStep) for step in turn.steps)
    usage = turn.ending.usage if turn.ending else None
    return Run(turn.header.turn_id, plan, transcript, log, deadline, iterations=iterations, usage=usage)
