"""Turns as the model's messages (Llama Stack's mapping, with tool results bound to their calls)."""

from collections.abc import Iterable

from stint.documents.marker import mark_document
from stint.domain.content import TextContentItem, items_of
from stint.domain.errors import Interrupted, InvalidRequest, ModelError, ModelOverloaded
from stint.domain.inference import ModelMessage, ToolResult, UserInput
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader
from stint.domain.run_outcome import RunStatus
from stint.domain.steps import MemoryRetrievalStep, ShieldCallStep, ToolExecutionStep
from stint.domain.tools import ToolResponseMessage
from stint.loop.transcript import Transcript

REFUSALS = (InvalidRequest.type, ModelError.type)
"""Types of errors for messages that a model, or the code that writes its request, refuses."""


def transcribe(turns: Iterable[StoredTurn]) -> Transcript:
    """Add stored turns to the model's messages.

    Messages that made a turn fail are omitted, because they would make every later turn fail, too: all of a turn that
    failed before the model's first answer, and results that the model refused. The user's messages of a turn whose
    process died are kept.
    """
    transcript = Transcript()
    for turn in turns:
        add_turn(transcript, turn)
    return transcript


def add_turn(transcript: Transcript, turn: StoredTurn) -> None:
    """Append the messages of a stored turn, except those that made it fail."""
    if failed_before_answer(turn):
        return
    add_input(transcript, turn.header)
    for step in turn.steps:
        transcript.add_step(step)
    if was_refused(turn):
        transcript.leave_out_results()


def add_input(transcript: Transcript, header: TurnHeader) -> None:
    """Append the user's input: results of open calls, then documents, then all other messages."""
    transcript.answered = False
    rest: list[ModelMessage] = []
    for message in header.input_messages:
        if not isinstance(message, ToolResponseMessage):
            rest.append(UserInput(message.content))
        elif call := transcript.open.get(message.call_id):
            transcript.append_message(ToolResult(message.call_id, call.tool_name, message.content))
        else:
            note = TextContentItem(text=f"Result of tool call {message.call_id}:")
            rest.append(UserInput([note, *items_of(message.content)]))
    for document in header.documents:
        transcript.append_message(UserInput(mark_document(document.text, document.mime_type)))
    for other in rest:
        transcript.append_message(other)


def failed_before_answer(turn: StoredTurn) -> bool:
    """Return whether a turn failed before the model's first answer, and its caller got the error."""
    error = turn.ending.error if turn.ending else None
    told = turn.status is RunStatus.failed and error is not None and error.code != Interrupted.code
    return told and all(isinstance(step, ShieldCallStep | MemoryRetrievalStep) for step in turn.steps)


def was_refused(turn: StoredTurn) -> bool:
    """Return whether a turn probably failed because the model refused the results of its tools."""
    error = turn.ending.error if turn.ending else None
    refused = error is not None and error.type in REFUSALS and error.code != ModelOverloaded.code
    return refused and isinstance(turn.steps[-1], ToolExecutionStep)
