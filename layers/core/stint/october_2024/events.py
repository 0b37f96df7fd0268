"""Conversion of the events of a turn to those of October 2024."""

from stint.domain.llama_stack.events import Event, TurnAwaitingInput, TurnComplete, TurnFailed, TurnStart
from stint.domain.llama_stack.turns import Turn
from stint.domain.run_events import (
    ImageDelta,
    ReasoningEnded,
    ReasoningProgress,
    StepComplete,
    StepProgress,
    StepStart,
    TextDelta,
    ToolCallDelta,
)
from stint.october_2024.contents import from_call
from stint.october_2024.schemas.turns import (
    OctoberPayload,
    OctoberStepComplete,
    OctoberStepProgress,
    OctoberStepStart,
    OctoberToolCallDelta,
    OctoberTurnChunk,
    OctoberTurnComplete,
    OctoberTurnEvent,
    OctoberTurnStart,
)
from stint.october_2024.turns import from_step, from_turn, name_turn


def to_chunk(event: Event, session_id: str) -> OctoberTurnChunk | TurnFailed:
    """Convert an event of a turn in a session. A failure has no form of October 2024."""
    if isinstance(event, TurnFailed):
        return event
    if isinstance(event, ReasoningProgress | ReasoningEnded):
        raise TypeError("No request of this API shows reasoning.")
    return OctoberTurnChunk(event=OctoberTurnEvent(payload=to_payload(event, session_id)))


def to_payload(
    event: TurnStart | StepStart | StepProgress | StepComplete | TurnComplete | TurnAwaitingInput, session_id: str
) -> OctoberPayload:
    match event:
        case TurnStart():
            return OctoberTurnStart(turn_id=name_turn(session_id, event.turn_id))
        case StepStart():
            return OctoberStepStart(step_type=event.step_type, step_id=event.step_id, metadata=event.metadata)
        case StepProgress():
            return to_progress(event)
        case StepComplete():
            details = from_step(event.step_details, name_turn(session_id, event.step_details.turn_id))
            return OctoberStepComplete(step_type=event.step_type, step_details=details)
        case _:
            return OctoberTurnComplete(turn=from_turn(event.turn))


def to_progress(event: StepProgress) -> OctoberStepProgress:
    """Convert the progress of a step. That of a tool is empty, as in the original."""
    progress = OctoberStepProgress(step_type=event.step_type, step_id=event.step_id)
    if event.step_type != "inference" or isinstance(event.delta, ImageDelta):
        return progress
    if isinstance(event.delta, TextDelta):
        return progress.model_copy(update={"model_response_text_delta": event.delta.text})
    delta = to_call_delta(event.delta)
    return progress.model_copy(update={"model_response_text_delta": "", "tool_call_delta": delta})


def to_call_delta(delta: ToolCallDelta) -> OctoberToolCallDelta:
    """Convert a piece of a tool call."""
    content = delta.tool_call if isinstance(delta.tool_call, str) else from_call(delta.tool_call)
    match delta.parse_status:
        case "succeeded":
            return OctoberToolCallDelta(content=content, parse_status="success")
        case "failed":
            return OctoberToolCallDelta(content=content, parse_status="failure")
        case status:
            return OctoberToolCallDelta(content=content, parse_status=status)


def whole_turn(turn: Turn) -> OctoberTurnChunk:
    """Return the response of a turn that is not streamed: its last event."""
    return OctoberTurnChunk(event=OctoberTurnEvent(payload=OctoberTurnComplete(turn=from_turn(turn))))
