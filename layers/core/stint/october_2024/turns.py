"""Conversion of turns, steps and sessions to those of October 2024.

The clients of October read a turn by its id alone, without its session, so its id here has both. They have no turn that
waits: one with calls for the client has ended, with the calls in its output message, and the client sends the results
as the messages of the next turn. The store has that turn as `awaiting_input`, and as `cancelled` once the next one has
begun; both are shown as complete.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from stint.domain.content import URL
from stint.domain.errors import NotFound
from stint.domain.llama_stack.stored_turns import unanswered_calls
from stint.domain.llama_stack.turns import Attachment, Turn, TurnCreateRequest, TurnStatus
from stint.domain.steps import (
    CompletionMessage,
    InferenceStep,
    MemoryRetrievalStep,
    ShieldCallStep,
    Step,
    StopReason,
)
from stint.domain.tools import ToolResponse
from stint.october_2024.attachments import add_images, find_images, to_documents
from stint.october_2024.contents import from_call, from_content, from_message, to_messages
from stint.october_2024.schemas.messages import OctoberAnswer
from stint.october_2024.schemas.turns import (
    OctoberAttachment,
    OctoberInferenceStep,
    OctoberMemoryRetrievalStep,
    OctoberShieldCallStep,
    OctoberStep,
    OctoberToolExecutionStep,
    OctoberToolResponse,
    OctoberTurn,
    OctoberTurnCreateRequest,
)


def name_turn(session_id: str, turn_id: str) -> str:
    """Return the id of a turn, which has the id of its session."""
    return f"{session_id}:{turn_id}"


def split_name(name: str) -> tuple[str, str]:
    """Return the ids of a session and its turn. Raises NotFound if the name is not one of October 2024."""
    session_id, found, turn_id = name.partition(":")
    if not found:
        raise NotFound("Turn", name)
    return session_id, turn_id


def to_turn_request(request: OctoberTurnCreateRequest) -> TurnCreateRequest:
    """Convert the request of a turn. Attachments become its documents, images a part of the user's last message.

    Raises InvalidRequest if there is an image, but no message of the user.
    """
    messages = add_images(to_messages(request.messages), find_images(request.attachments))
    documents = to_documents(request.attachments)
    return TurnCreateRequest(messages=messages, documents=documents, stream=request.stream, when_busy="reject")


def from_turn(turn: Turn, tools: Mapping[str, str] | None = None) -> OctoberTurn:
    """Convert a turn. `tools` has the names of tools by the ids of their calls in the turns before it."""
    name = name_turn(turn.session_id, turn.turn_id)
    return OctoberTurn(
        turn_id=name,
        session_id=turn.session_id,
        input_messages=[from_message(message, tools or {}) for message in turn.input_messages],
        steps=[from_step(step, name) for step in turn.steps],
        output_message=from_answer(output_of(turn)),
        output_attachments=[from_attachment(attachment) for attachment in turn.output_attachments],
        started_at=turn.started_at,
        completed_at=completion_of(turn),
    )


def from_turns(turns: Sequence[Turn], tools: dict[str, str]) -> list[OctoberTurn]:
    """Convert successive turns of a session, and add the names of the tools that they call to `tools`."""
    converted = []
    for turn in turns:
        converted.append(from_turn(turn, tools))
        steps = (step for step in turn.steps if isinstance(step, InferenceStep))
        tools.update({call.call_id: call.tool_name for step in steps for call in step.model_response.tool_calls})
    return converted


def output_of(turn: Turn) -> CompletionMessage:
    """Return the output of a turn, with the calls for the client.

    The next turn answers the calls, and thereby cancels a turn that waited for the answers.
    """
    calls = unanswered_calls(turn.steps) if turn.status is TurnStatus.cancelled else []
    if not calls:
        return turn.output_message
    content = next(step.model_response.content for step in reversed(turn.steps) if isinstance(step, InferenceStep))
    return CompletionMessage(content=content, tool_calls=calls)


def completion_of(turn: Turn) -> datetime | None:
    """Return when a turn completed. One with calls for the client did so with its last step, not with the next turn."""
    waits = turn.status in (TurnStatus.awaiting_input, TurnStatus.cancelled) and unanswered_calls(turn.steps)
    return turn.steps[-1].completed_at if waits else turn.completed_at


def from_answer(message: CompletionMessage) -> OctoberAnswer:
    """Convert an answer. One with tool calls ends the turn, too."""
    reason: StopReason = "out_of_tokens" if message.stop_reason == "out_of_tokens" else "end_of_turn"
    calls = [from_call(call) for call in message.tool_calls]
    return OctoberAnswer(content=from_content(message.content), stop_reason=reason, tool_calls=calls)


def from_step(step: Step, turn_name: str) -> OctoberStep:
    """Convert a step of a turn, whose id is `turn_name`."""
    match step:
        case InferenceStep():
            return OctoberInferenceStep(
                turn_id=turn_name,
                step_id=step.step_id,
                started_at=step.started_at,
                completed_at=step.completed_at,
                model_response=from_answer(step.model_response),
            )
        case ShieldCallStep():
            return OctoberShieldCallStep(
                turn_id=turn_name,
                step_id=step.step_id,
                started_at=step.started_at,
                completed_at=step.completed_at,
                violation=step.violation,
            )
        case MemoryRetrievalStep():
            return OctoberMemoryRetrievalStep(
                turn_id=turn_name,
                step_id=step.step_id,
                started_at=step.started_at,
                completed_at=step.completed_at,
                memory_bank_ids=step.vector_db_ids.split(",") if step.vector_db_ids else [],
                inserted_context=from_content(step.inserted_context),
            )
        case _:
            return OctoberToolExecutionStep(
                turn_id=turn_name,
                step_id=step.step_id,
                started_at=step.started_at,
                completed_at=step.completed_at,
                tool_calls=[from_call(call) for call in step.tool_calls],
                tool_responses=[from_response(response) for response in step.tool_responses],
            )


def from_response(response: ToolResponse) -> OctoberToolResponse:
    return OctoberToolResponse(
        call_id=response.call_id, tool_name=response.tool_name, content=from_content(response.content)
    )


def from_attachment(attachment: Attachment) -> OctoberAttachment:
    """Convert an attachment. A URL is a string, because the client's type has no other form of it."""
    content = attachment.content
    converted = content.uri if isinstance(content, URL) else from_content(content)
    return OctoberAttachment(content=converted, mime_type=attachment.mime_type)
