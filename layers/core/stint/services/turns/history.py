"""Turns as the model's messages (Llama Stack's mapping, with tool results bound to their calls)."""

from collections.abc import Iterable

from stint.documents.marker import mark_document
from stint.domain.content import TextContentItem, items_of
from stint.domain.errors import Interrupted, InvalidRequest, ModelError, ModelOverloaded
from stint.domain.inference import ModelMessage, ToolResult, UserInput
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader
from stint.domain.run_outcome import RunStatus
from stint.domain.steps import ShieldCallStep, ToolExecutionStep
from stint.domain.tools import ToolResponseMessage
from stint.loop.transcript import Transcript

REFUSALS = (InvalidRequest.type, ModelError.type)
"""Types of the errors by which a model, or what puts its request together, refuses what it is to read."""


def transcribe(turns: Iterable[StoredTurn]) -> Transcript:
    """Put stored turns into the model's messages.

    What made a turn fail is not said again, as it would fail every later turn too: nothing of a turn that failed before
    the model said anything, and of another one no results that the model refused. A turn whose process died was refused
    by nobody: what the user said in it stays.
    """
    transcript = Transcript()
    for turn in turns:
        if came_to_nothing(turn):
            continue
        add_input(transcript, turn.header)
        for step in turn.steps:
            transcript.add_step(step)
        if was_refused(turn):
            transcript.leave_out_results()
    return transcript


def add_input(transcript: Transcript, header: TurnHeader) -> None:
    """Append what the user sent: results of open calls, then documents, then all else."""
    transcript.answered = False
    rest: list[ModelMessage] = []
    for message in header.input_messages:
        if not isinstance(message, ToolResponseMessage):
            rest.append(UserInput(message.content))
        elif call := transcript.open.get(message.call_id):
            transcript.add(ToolResult(message.call_id, call.tool_name, message.content))
        else:
            note = TextContentItem(text=f"Result of tool call {message.call_id}:")
            rest.append(UserInput([note, *items_of(message.content)]))
    for document in header.documents:
        transcript.add(UserInput(mark_document(document.text, document.mime_type)))
    for other in rest:
        transcript.add(other)


def came_to_nothing(turn: StoredTurn) -> bool:
    """Tell whether a turn failed before the model had said anything, and its caller was told so."""
    error = turn.ending.error if turn.ending else None
    told = turn.status is RunStatus.failed and error is not None and error.code != Interrupted.code
    return told and all(isinstance(step, ShieldCallStep) for step in turn.steps)


def was_refused(turn: StoredTurn) -> bool:
    """Tell whether a turn failed, as far as can be told, because the model did not take the results of its tools."""
    error = turn.ending.error if turn.ending else None
    refused = error is not None and error.type in REFUSALS and error.code != ModelOverloaded.code
    return refused and isinstance(turn.steps[-1], ToolExecutionStep)
