"""Turns as the model's messages (Llama Stack's mapping, with tool results bound to their calls).

What a session's model sees depends on the stored turns alone, so each process derives the same messages:

| the stored turn                                  | its messages                                               |
|--------------------------------------------------|------------------------------------------------------------|
| completed, or waits for its client               | its input, and its steps in the model's order              |
| failed or cancelled                              | the same, with results in place of calls without an answer |
| failed because the model refused its input       | none: they would make every later turn fail, too           |
| failed because the model refused a tool's result | the same, without these results                            |
| compacted the turns before it                    | its summary in place of all before, then its own           |
"""

from collections.abc import Iterable

from stint.documents.marker import mark_document
from stint.domain.content import TextContentItem, items_of
from stint.domain.errors import InvalidRequest, ShieldFailed
from stint.domain.inference import ModelMessage, ToolResult, UserInput
from stint.domain.llama_stack.stored_turns import MergedMessage, StoredTurn, TurnHeader
from stint.domain.run_outcome import RunStatus
from stint.domain.steps import InferenceStep, MemoryRetrievalStep, ShieldCallStep, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import ToolResponseMessage
from stint.loop.transcript import Transcript
from stint.store.log import CLOSING


def transcribe(turns: Iterable[StoredTurn]) -> Transcript:
    """Add stored turns to the model's messages.

    Messages that a model refused are omitted, because they would make every later turn fail, too: the input of a turn
    that failed before the model's first answer, and results of tools. What failed for another reason is kept.
    """
    transcript = Transcript()
    for turn in turns:
        add_turn(transcript, turn)
    return transcript


def add_turn(transcript: Transcript, turn: StoredTurn) -> None:
    """Append the messages of a stored turn, except those that the model refused."""
    if has_refused_input(turn):
        add_compactions(transcript, turn)
        return
    add_input(transcript, turn.header)
    details = turn.details
    for entry in turn.entries:
        if isinstance(entry, MergedMessage):
            add_merged(transcript, entry)
        elif isinstance(entry, CompactedHistory):
            transcript.compact(entry)
        else:
            transcript.add_step(entry, details.get(entry.step_id))
    if turn.status in CLOSING:
        transcript.close_sent(sent_calls(turn))
    if was_refused(turn):
        transcript.remove_results()


def add_compactions(transcript: Transcript, turn: StoredTurn) -> None:
    """Replace the messages of earlier turns by the summary of a turn whose own messages are left out, if it has one."""
    for compaction in turn.compactions[-1:]:
        transcript.compact(compaction, follows=False)


def add_input(transcript: Transcript, header: TurnHeader) -> None:
    """Append the user's input: results of open calls, then documents, then all other messages.

    A result with an empty call id is that of the first open call.
    """
    transcript.begin_run()
    transcript.answered = False
    rest: list[ModelMessage] = []
    for message in header.input_messages:
        if not isinstance(message, ToolResponseMessage):
            rest.append(UserInput(message.content))
        elif call := transcript.open.get(message.call_id or next(iter(transcript.open), "")):
            transcript.append_message(ToolResult(call.call_id, call.tool_name, message.content))
        else:
            rest.append(unbound_result(message))
    for document in header.documents:
        transcript.append_message(UserInput(mark_document(document.text, document.mime_type)))
    for other in rest:
        transcript.append_message(other)


def add_merged(transcript: Transcript, merged: MergedMessage) -> None:
    """Append a message that was sent while its turn ran."""
    transcript.answered = False
    for message in merged.input_messages:
        added = unbound_result(message) if isinstance(message, ToolResponseMessage) else UserInput(message.content)
        transcript.append_message(added)


def unbound_result(message: ToolResponseMessage) -> UserInput:
    """Return the result of a call that is not open."""
    note = TextContentItem(text=f"Result of tool call {message.call_id}:")
    return UserInput([note, *items_of(message.content)])


def sent_calls(turn: StoredTurn) -> set[str]:
    """Return the ids of the last answer's calls that were sent to their tools.

    These are all but the client's, those that it has not approved, and those that had not started when the turn ended.
    """
    sent: set[str] = set()
    for record in turn.records:
        if isinstance(record.step, InferenceStep):
            sent = {call.call_id for call in record.step.model_response.tool_calls}
        if record.approvals:
            sent = {each.call_id for each in record.approvals if each.approve}
        sent -= {*(record.unsent or ())}
        if record.ending is not None and record.ending.status is RunStatus.awaiting_input:
            sent = set()
    return sent


def has_refused_input(turn: StoredTurn) -> bool:
    """Return whether a turn failed before the model's first answer because of its input.

    Input without a verdict of the shields counts as refused: it was not checked, and the same may happen again.
    """
    error = ending.error if (ending := turn.ending) else None
    refused = error is not None and (error.type == InvalidRequest.type or error.code == ShieldFailed.code)
    return refused and all(isinstance(step, ShieldCallStep | MemoryRetrievalStep) for step in turn.steps)


def was_refused(turn: StoredTurn) -> bool:
    """Return whether a turn failed because the model refused the results of its tools."""
    error = ending.error if (ending := turn.ending) else None
    if error is None or error.type != InvalidRequest.type:
        return False
    steps = [step for step in turn.steps if not (isinstance(step, ShieldCallStep) and step.metadata)]
    return bool(steps) and isinstance(steps[-1], ToolExecutionStep)
