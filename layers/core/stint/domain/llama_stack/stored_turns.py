"""Stored turns: a header and an append-only log of records, from which all that is known of a turn is derived.

A turn has no record with its state. Readers fold the log, so a step and the status that it implies are one write, and
no reader sees one without the other. Writers never change a record; a writer that lost the session finds the next key
occupied (the fence of `TurnRecord`).

    the last record that is no fence    the turn
    none, or one without an ending      runs, or its process died: the lease tells which
    ending awaiting_input               waits for the client; further records follow when it is resumed
    ending completed                    is complete; a resume may append to it, too
    ending failed, cancelled            is over: no record follows
"""

from typing import Annotated, Any

from pydantic import Field, ValidationError

from stint.dataclasses import dataclass, field
from stint.domain.content import DocumentText
from stint.domain.fields import Omitted, is_unset
from stint.domain.ids import time_of
from stint.domain.inference import AnswerDetails, Reasoning, Usage
from stint.domain.llama_stack.turns import Attachment, ToolApproval, Turn, TurnOverrides, TurnStatus, UnfinishedStep
from stint.domain.messages import InputMessage
from stint.domain.partial_steps import PartialStep
from stint.domain.receipts import Consumption, Receipt
from stint.domain.run_events import TakenMessage
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.schema import Schema, Timestamp
from stint.domain.steps import (
    CompletionMessage,
    InferenceStep,
    SafetyViolation,
    ShieldCallStep,
    Step,
    ToolExecutionStep,
    without_images,
)
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import AskedInput, ElicitedForm, ToolCall, ToolResponse


class TurnHeader(Schema):
    """The first record of a turn. It is written once, before the turn's first event, and never changed."""

    turn_id: str
    session_id: str
    input_messages: list[InputMessage]
    documents: list[DocumentText] = Field(default_factory=list)
    """The texts of the documents of the request."""
    started_at: Timestamp
    overrides: TurnOverrides
    """The settings of the request that differ from the agent's."""
    fingerprint: Annotated[str, Field(exclude_if=is_unset)] = ""
    """That of the attempt that created the turn; empty without an idempotency key."""
    retry_count: Annotated[int, Field(exclude_if=is_unset)] = 0
    """The number of the attempt that created the turn, as its client counts."""
    retry_of: Annotated[str, Field(exclude_if=is_unset)] = ""
    """A failed turn that this one repeats, so that the model sees the input once."""
    call_depth: Annotated[int, Field(exclude_if=is_unset)] = 0
    """How many calls of agents have led to the turn (`domain/call_depth.py`). It keeps them when it is resumed."""
    servers: Omitted[dict[str, list[str]]] = None
    """The names of the tools of each MCP server by its label, if the configuration alone does not tell them."""
    message_ids: Omitted[list[str]] = None
    """The client's ids of the input messages, one each, if its protocol has such ids."""


class MergedMessage(TakenMessage):
    """A message that the running turn has taken. `fingerprint` is that of the attempt that sent it."""

    fingerprint: Annotated[str, Field(exclude_if=is_unset)] = ""


class TurnRecord(Schema):
    """One entry of a turn's log: a step, an ending, or the last step with the ending.

    A record without any of them is a fence. It changes nothing, and occupies the key of the next record of a writer
    that lost the session.
    """

    step: Step | None = None
    ending: RunOutcome | None = None
    text_lengths: str | None = None
    """The lengths of the streamed pieces of the step's text; see `stint.domain.text_lengths`."""
    reasoning: Reasoning | None = None
    """The reasoning of the step's answer, if its provider needs it in later calls."""
    early: list[ToolExecutionStep | ShieldCallStep] | None = None
    """The steps of calls whose results arrived before those of earlier calls, with their checks. They are appended
    later, in the model's order."""
    unsent: list[str] | None = None
    """The ids of an answer's calls that the server does not run, or had not started when the turn ended."""
    unfinished: PartialStep | None = None
    """The unfinished step of a turn that failed or was cancelled, with its ending, for readers who rejoin the
    stream."""
    unannounced: bool | None = None
    """The step was stored right before such an ending, and is not in the stream."""
    merged: list[MergedMessage] | None = None
    """Messages that the turn took before its next model call."""
    compaction: CompactedHistory | None = None
    """A compaction. The step of the record shows its summary."""
    unapproved: list[str] | None = None
    """The ids of the calls that wait for the client's approval, with the ending of a pause."""
    asked_tools: dict[str, str] | None = None
    """The fingerprints of the tools of these calls, by the tools' names. What is approved is a call of this tool."""
    asked_args: dict[str, dict[str, Any]] | None = None
    """The args of these tools that come before the model's arguments, without credentials, by the tools' names."""
    asked_inputs: dict[str, AskedInput] | None = None
    """What the servers of tools ask, by the ids of these calls, which wait for the client's input, not for approval."""
    approvals: list[ToolApproval] | None = None
    """The client's answers to such calls. The step of the record, if there is one, has its results, and those of the
    denied calls. The approved calls may have been sent from then on."""
    spent: str | None = None
    """The totals of a session with a budget (`SessionLedger.pack`), as of this record."""

    def without_images(self) -> "TurnRecord | None":
        """Return the record as models get it; None if it has no large image."""
        changed = without_images(self.step, self.early)
        return self.model_copy(update=changed) if changed else None

    @property
    def fence(self) -> bool:
        has_steps = self.step is not None or self.early is not None
        return not has_steps and self.ending is None and self.merged is None and self.approvals is None

    @property
    def completes(self) -> bool:
        return self.ending is not None and self.ending.status is RunStatus.completed

    @property
    def final(self) -> bool:
        return self.ending is not None and self.ending.status is not RunStatus.awaiting_input


class PendingCalls(Schema):
    """The client tool calls that a paused turn waits for. Their results become the step with this id."""

    turn_id: str
    step_id: str
    started_at: Timestamp
    tool_calls: list[ToolCall]


@dataclass(slots=True)
class StoredTurn:
    """A turn as it is stored. No record follows a failed or cancelled ending."""

    header: TurnHeader
    records: list[TurnRecord] = field(default_factory=list)
    size: int = 0
    """Bytes of JSON."""
    skipped: int = 0
    """Bytes of `size` before the turn's last compaction, which later model calls do not need."""

    @property
    def ending(self) -> RunOutcome | None:
        """Return the ending of the turn, or of its part before a pause; None while it runs."""
        for record in reversed(self.records):
            if record.ending is not None or not record.fence:
                return record.ending
        return None

    @property
    def status(self) -> RunStatus:
        return ending.status if (ending := self.ending) else RunStatus.in_progress

    @property
    def steps(self) -> list[Any]:
        return steps_of(self.records)

    @property
    def entries(self) -> list[Any]:
        """Return steps, compactions in place of theirs, and messages merged before them, in the model's order."""
        entries: list[Any] = []
        appended = 0
        for record in self.records:
            shown = record.compaction or record.step
            entries += [*(record.merged or ()), *([shown] if shown is not None else [])]
            appended += record.step is not None
        return [*entries, *self.steps[appended:]]

    @property
    def details(self) -> dict[str, AnswerDetails]:
        """Return what the model needs besides the steps, by their ids."""
        found = [(each.step, each.reasoning) for each in self.records if each.step and each.reasoning]
        return {step.step_id: AnswerDetails(reasoning=reasoning) for step, reasoning in found}

    @property
    def compactions(self) -> list[CompactedHistory]:
        return [record.compaction for record in self.records if record.compaction is not None]

    @property
    def spent(self) -> str | None:
        """Return the newest totals of the session in the turn's log; None if it has none."""
        return next((record.spent for record in reversed(self.records) if record.spent is not None), None)

    @property
    def merged(self) -> list[MergedMessage]:
        """Return the messages that the turn took while it ran."""
        return [message for record in self.records for message in record.merged or ()]

    @property
    def usage(self) -> Usage | None:
        """Return the usage of the last ending that has one. A resumed turn has none until it ends again."""
        endings = (record.ending for record in reversed(self.records) if record.ending is not None)
        return next((ending.usage for ending in endings if ending.usage is not None), None)

    @property
    def usage_of_last_run(self) -> Usage | None:
        """Return the usage since the turn was resumed, or of all of it; None if its last ending has none."""
        endings = [record.ending for record in self.records if record.ending is not None]
        if not endings or endings[-1].usage is None:
            return None
        before = next((ending.usage for ending in reversed(endings[:-1]) if ending.usage is not None), None)
        return endings[-1].usage if before is None else endings[-1].usage - before

    @property
    def consumption(self) -> Consumption | None:
        """Return what the turn has consumed, as in the last ending."""
        endings = (record.ending for record in reversed(self.records) if record.ending is not None)
        return next((ending.consumption for ending in endings), None)

    @property
    def output_message(self) -> CompletionMessage:
        """Derive the output message.

        A completed turn that is resumed keeps its answer until it ends again, also if it then fails.
        """
        return self._output_message(self.steps, self.status)

    def _output_message(self, steps: list[Any], status: RunStatus) -> CompletionMessage:
        if status in (RunStatus.awaiting_input, RunStatus.completed):
            return output_message_of(steps, status)
        complete = [place for place, record in enumerate(self.records, 1) if record.completes]
        return output_message_of(steps_of(self.records[: max(complete, default=0)]), RunStatus.completed)

    def to_turn(self) -> Turn:
        """Derive the API's turn from the log."""
        ending, steps = self.ending, self.steps
        status = ending.status if ending else RunStatus.in_progress
        return Turn(
            turn_id=self.header.turn_id,
            session_id=self.header.session_id,
            input_messages=[*self.header.input_messages, *(each for one in self.merged for each in one.input_messages)],
            steps=steps,
            output_message=self._output_message(steps, status),
            output_attachments=attachments_of(steps),
            started_at=self.header.started_at,
            completed_at=ending.completed_at if ending else None,
            status=TurnStatus(status),
            usage=self.usage,
            error=ending.error if ending else None,
            receipt=Receipt.of(ending.consumption) if ending and ending.consumption else None,
            unfinished_step=self.unfinished_step if ending else None,
            pending_approvals=self.unapproved if status is RunStatus.awaiting_input else None,
            pending_arguments=self.pending_arguments if status is RunStatus.awaiting_input else None,
            pending_inputs=self.pending_inputs if status is RunStatus.awaiting_input else None,
        )

    @property
    def unapproved(self) -> list[str] | None:
        """Return the ids of the calls whose approval the turn waits for, or waited for; None if there are none."""
        return next((record.unapproved for record in reversed(self.records) if record.ending is not None), None)

    @property
    def asked_inputs(self) -> dict[str, AskedInput]:
        """Return what the servers of tools ask or asked at the last pause, by the ids of the calls."""
        return next((each.asked_inputs for each in reversed(self.records) if each.ending is not None), None) or {}

    @property
    def pending_inputs(self) -> dict[str, dict[str, ElicitedForm]] | None:
        """Return the forms of these calls, without the states of their servers."""
        return {call_id: asked.forms for call_id, asked in self.asked_inputs.items()} or None

    @property
    def pending_arguments(self) -> dict[str, dict[str, Any]] | None:
        """Return the args that come before the model's arguments, by the ids of the calls that wait for approval."""
        args = next((record.asked_args for record in reversed(self.records) if record.ending is not None), None)
        if not args:
            return None
        asked = [call for call in unanswered_calls(self.steps) if call.call_id in (self.unapproved or ())]
        return {call.call_id: args[call.tool_name] for call in asked if call.tool_name in args} or None

    @property
    def asked_last(self) -> list[str]:
        """Return the ids of the calls that waited for approval at the last pause, also if the turn ended since."""
        pauses = (each for each in reversed(self.records) if each.ending is not None and not each.final)
        return next((record.unapproved or [] for record in pauses if not record.completes), [])

    @property
    def asked_tools(self) -> dict[str, str]:
        """Return the fingerprints of the tools of these calls, by the tools' names. Older turns have none."""
        found = (record.asked_tools for record in reversed(self.records) if record.ending is not None)
        return next(found, None) or {}

    @property
    def unfinished_step(self) -> UnfinishedStep | None:
        """Return the step in which the turn failed or was cancelled; None if that was between two steps."""
        step = self.records[-1].unfinished
        if step is None:
            return None
        return UnfinishedStep(step_type=step.step_type, step_id=step.step_id, started_at=time_of(step.step_id))


def steps_of(records: list[TurnRecord]) -> list[Any]:
    """Return the steps of records. Early ones that were not appended before the turn broke off come last."""
    steps = [record.step for record in records if record.step is not None]
    early = [step for record in records for step in record.early or ()]
    if not early:
        return steps
    known = {step.step_id for step in steps}
    return [*steps, *(step for step in early if step.step_id not in known)]


def unanswered_calls(steps: list[Step]) -> list[ToolCall]:
    """Return the tool calls of the last inference that no later tool execution answers."""
    calls: dict[str, ToolCall] = {}
    for step in steps:
        if isinstance(step, InferenceStep):
            calls = {call.call_id: call for call in step.model_response.tool_calls}
        elif isinstance(step, ToolExecutionStep):
            for response in step.tool_responses:
                calls.pop(response.call_id, None)
    return list(calls.values())


def attachments_of(steps: list[Step]) -> list[Attachment]:
    """Return what the turn's tools produced: the `attachments` in their responses' metadata, and generated images."""
    responses = [response for step in steps if isinstance(step, ToolExecutionStep) for response in step.tool_responses]
    items = [item for response in responses for item in listed_in(response)]
    return [attachment for item in items if (attachment := attachment_of(item)) is not None]


def listed_in(response: ToolResponse) -> list[Any]:
    """Return what may be attachments of a result."""
    listed = (response.metadata or {}).get("attachments")
    found = list(listed) if isinstance(listed, list) else []
    if (image := response.generated_image) is not None:
        media_type = response.image_properties.get("media_type", "image/png")
        found.append({"content": {"uri": f"data:{media_type};base64,{image}"}, "mime_type": media_type})
    return found


def attachment_of(item: Any) -> Attachment | None:
    """Read an attachment; None if it is not one, because metadata from tools and clients has any form."""
    try:
        return Attachment.model_validate(item)
    except ValidationError:
        return None


def output_message_of(steps: list[Step], status: RunStatus) -> CompletionMessage:
    """Derive a turn's output message: a shield's message, or else the last answer.

    It has tool calls only while they wait for the client.
    """
    match steps[-1:]:
        case [ShieldCallStep(violation=SafetyViolation() as found, metadata=None)] if status is RunStatus.completed:
            return CompletionMessage(content=found.user_message or "")
    answers = [step.model_response for step in steps if isinstance(step, InferenceStep)]
    if not answers or status not in (RunStatus.awaiting_input, RunStatus.completed):
        return CompletionMessage()
    answer = answers[-1]
    if status is RunStatus.awaiting_input:
        calls = unanswered_calls(steps)
        return CompletionMessage(content=answer.content, stop_reason="end_of_message", tool_calls=calls)
    reason = "out_of_tokens" if answer.stop_reason == "out_of_tokens" else "end_of_turn"
    return CompletionMessage(content=answer.content, stop_reason=reason)
