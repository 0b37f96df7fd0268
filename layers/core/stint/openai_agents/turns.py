"""Conversion of turns to those of OpenAI's Agents API, and of the calls that wait for the client.

Both APIs describe the same turn by other words. What has no equivalent is decided here:

    here                       in the Agents API
    a message in line          a turn with the status `queued`: nothing of it has begun
    an answer that was cut     a failed turn, `max_output_tokens`: the SDK would take it for a complete one
    an error's code            one of the codes that the SDK knows; `server_error` for others
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from stint.domain.inference import Usage
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.run_outcome import ErrorInfo
from stint.domain.tools import ElicitedForm, ToolCall
from stint.openai_agents.schemas.sessions import (
    ApprovalRequestDetails,
    RequiredAction,
    RequiredApproval,
    RequiredFunctionCall,
)
from stint.openai_agents.schemas.turns import (
    AgentTurnError,
    AgentTurnObject,
    AgentUsage,
    CachedTokens,
    PublicTurnStatus,
    ReasoningTokens,
    TurnErrorCode,
)
from stint.openai_agents.tool_labels import ServerLabels

STATUSES: dict[TurnStatus, PublicTurnStatus] = {
    TurnStatus.in_progress: "in_progress",
    TurnStatus.awaiting_input: "waiting",
    TurnStatus.completed: "completed",
    TurnStatus.failed: "failed",
    TurnStatus.cancelled: "cancelled",
}
CODES: dict[str, TurnErrorCode] = {
    "context_length_exceeded": "context_length_exceeded",
    "deadline_exceeded": "request_timeout",
    "forbidden": "authentication_error",
    "insufficient_quota": "usage_limit_exceeded",
    "internal_error": "internal_error",
    "interrupted": "internal_error",
    "model_overloaded": "server_overloaded",
    "model_unauthorized": "authentication_error",
    "model_unreachable": "connection_failed",
    "rate_limit_exceeded": "rate_limit_exceeded",
    "shield_failed": "internal_error",
    "store_unavailable": "internal_error",
    "unauthorized": "authentication_error",
}
"""Codes of turn errors by those of this server."""

CUT = AgentTurnError(
    code="max_output_tokens",
    message="The model reached its limit of output tokens. The items of the turn have the text so far.",
)


def from_turn(turn: Turn, agent_id: str, *, queued: bool = False) -> AgentTurnObject:
    """Convert a turn. A `queued` one has not started yet. One whose answer is cut has failed, as at OpenAI."""
    cut = turn.status is TurnStatus.completed and turn.output_message.stop_reason == "out_of_tokens"
    status: PublicTurnStatus = "queued" if queued else STATUSES[TurnStatus.failed if cut else turn.status]
    ended = status in ("completed", "failed", "cancelled")
    return AgentTurnObject(
        id=turn.turn_id,
        session_id=turn.session_id,
        agent_id=agent_id,
        status=status,
        created_at=seconds_of(turn.started_at),
        started_at=None if queued else seconds_of(turn.started_at),
        completed_at=seconds_of(turn.completed_at) if ended and turn.completed_at else None,
        error=(CUT if cut else from_error(turn.error)) if status == "failed" else None,
        usage=from_usage(turn.usage),
    )


def seconds_of(moment: datetime) -> int:
    """Return a time as whole Unix seconds."""
    return int(moment.timestamp())


def from_usage(usage: Usage | None) -> AgentUsage | None:
    """Convert token counts; None if the provider counted nothing."""
    if usage is None:
        return None
    return AgentUsage(
        input_tokens=usage.input_tokens,
        input_tokens_details=CachedTokens(cached_tokens=usage.cached_tokens),
        output_tokens=usage.output_tokens,
        output_tokens_details=ReasoningTokens(reasoning_tokens=usage.reasoning_tokens),
        total_tokens=usage.total_tokens,
    )


def from_error(error: ErrorInfo | None) -> AgentTurnError:
    """Convert the error of a failed turn."""
    if error is None:
        return AgentTurnError(code="internal_error", message="The turn failed.")
    return AgentTurnError(code=to_code(error), message=error.message)


def to_code(error: ErrorInfo) -> TurnErrorCode:
    """Return the code of an error among those of the API."""
    if (code := CODES.get(error.code)) is not None:
        return code
    if error.code.endswith("not_found"):
        return "resource_not_found"
    return "invalid_request" if error.type == "invalid_request_error" else "server_error"


def effective_arguments(call: ToolCall, fixed: dict[str, Any] | None) -> dict[str, Any] | str:
    """Return the arguments with which a call runs: the model's, and in place of these the `fixed` ones."""
    return {**call.arguments, **fixed} if fixed and isinstance(call.arguments, dict) else call.arguments


def ask_for(call: ToolCall, label: str) -> str:
    return f"The agent wants to call {call.tool_name} of {label}. Approve or deny it."


def question_of(forms: Mapping[str, ElicitedForm]) -> str:
    """Return the texts of a server that asks."""
    return "\n\n".join(form.message for form in forms.values())


def required_actions(turn: Turn, labels: ServerLabels, approvals: Collection[str] = ()) -> list[RequiredAction]:
    """Return what a turn waits for. `approvals` are the ids of the calls that wait for the client's approval.

    The id of such a call is that of its request, too.
    """
    if turn.status is not TurnStatus.awaiting_input:
        return []
    found: list[RequiredAction] = []
    for call in turn.output_message.tool_calls:
        if call.call_id in approvals:
            label = labels(call.tool_name) or ""
            forms = (turn.pending_inputs or {}).get(call.call_id)
            request = ApprovalRequestDetails(
                server_label=label,
                name=call.tool_name,
                arguments=effective_arguments(call, (turn.pending_arguments or {}).get(call.call_id)),
                message=question_of(forms) if forms else ask_for(call, label),
                forms=forms,
            )
            found.append(RequiredApproval(request_id=call.call_id, turn_id=turn.turn_id, request=request))
        else:
            found.append(
                RequiredFunctionCall(
                    turn_id=turn.turn_id, call_id=call.call_id, name=call.tool_name, arguments=call.arguments
                )
            )
    return found
