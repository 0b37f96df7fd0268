"""Results of calls: what a turn that has ended, or waits, is as the result of a tool.

A turn that failed is a result with `isError`, which the calling model reads and can react to. Only what is refused
before a turn begins is an error of the protocol.
"""

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.errors import StintError
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.mcp_server.call_states import CallStates
from stint.mcp_server.pending_input import list_asked, to_forms, to_text
from stint.mcp_server.schemas import (
    CallOutcome,
    CallUsage,
    InputRequiredResult,
    ServedResult,
    TextBlock,
    ToolCallResult,
)

CANCELLED = "The turn was cancelled."
UNANSWERED = "The turn has ended without an answer."


@dataclass(frozen=True, slots=True)
class ResultWriter:
    """Writes the results of calls of one agent. `elicits`: the client can ask its user for input."""

    states: CallStates
    agent_id: str
    elicits: bool

    async def write(self, turn: Turn) -> ServedResult:
        """Return the result of a turn that has ended, or waits for its client."""
        match turn.status:
            case TurnStatus.awaiting_input if self.elicits:
                state = await self.states.write(self.agent_id, turn.session_id, turn.turn_id, list_asked(turn))
                return InputRequiredResult(
                    result_type="input_required", input_requests={**to_forms(turn)}, request_state=state
                )
            case TurnStatus.awaiting_input:
                return result_of(turn, to_text(self.agent_id, turn))
            case TurnStatus.completed:
                return result_of(turn, text_of(turn.output_message.content))
            case TurnStatus.cancelled:
                return result_of(turn, CANCELLED, is_error=True)
        return result_of(turn, turn.error.message if turn.error else UNANSWERED, is_error=True)

    def write_undecided(self, turn: Turn) -> ServedResult:
        """Return the result of a call whose user has not decided."""
        return result_of(turn, to_text(self.agent_id, turn, dismissed=True), is_error=True)


def result_of(turn: Turn, text: str, *, is_error: bool = False) -> ToolCallResult:
    usage = turn.usage and CallUsage(**{name: getattr(turn.usage, name) for name in CallUsage.model_fields})
    outcome = CallOutcome(session_id=turn.session_id, turn_id=turn.turn_id, usage=usage)
    return ToolCallResult(content=[TextBlock(text=text)], structured_content=outcome, is_error=is_error)


def failed_result(error: StintError, session_id: str) -> ToolCallResult:
    """Return the result of a turn that failed with its first event."""
    outcome = CallOutcome(session_id=session_id, turn_id=error.turn_id or "")
    return ToolCallResult(content=[TextBlock(text=error.message)], structured_content=outcome, is_error=True)
