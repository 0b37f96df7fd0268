"""Conversion of the events of a turn to those of AG-UI.

    TurnStart           none: the run has started before
    StepStart           STEP_STARTED
    ReasoningProgress   REASONING_MESSAGE_CONTENT, which the first one opens; only while the run is live
    StepProgress        TEXT_MESSAGE_CONTENT, which the first one opens; or a whole call
    StepComplete        what its pieces have not shown: texts, calls, results of tools; STEP_FINISHED
    TurnAwaitingInput   RUN_FINISHED: as success with the calls of frontend tools, or with interrupts for approvals
    TurnComplete        RUN_FINISHED: as success, or cancelled
    TurnFailed          RUN_ERROR

Clients refuse a run that finishes while a message or a step is open, so what a dead process has left open is closed.
Names of steps that are open at once must differ.
"""

from collections.abc import Collection, Mapping
from typing import Any

from stint.ag_ui.contents import show_arguments, show_result
from stint.ag_ui.schemas.events import (
    CancelledOutcome,
    Interrupt,
    InterruptingCall,
    InterruptOutcome,
    Outcome,
    ReasoningContentEvent,
    ReasoningSpanEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunMetadata,
    RunUsage,
    StepEvent,
    SuccessOutcome,
    TextContentEvent,
    TextEndEvent,
    TextStartEvent,
    ToolArgsEvent,
    ToolCallResultEvent,
    ToolEndEvent,
    ToolStartEvent,
    TurnPartEvent,
)
from stint.ag_ui.snapshots import result_id
from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.errors import StintError
from stint.domain.inference import Usage
from stint.domain.llama_stack.events import Event, TurnAwaitingInput, TurnComplete, TurnFailed
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.run_events import (
    ReasoningEnded,
    ReasoningProgress,
    StepComplete,
    StepProgress,
    StepStart,
    TextDelta,
    ToolCallDelta,
)
from stint.domain.steps import InferenceStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.tools import ElicitedForm, ToolCall

APPROVAL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""The schema of the answer to an interrupt."""


@dataclass(frozen=True, slots=True)
class RunNames:
    """The ids of a run: those that its client chose, and its session."""

    thread_id: str
    run_id: str
    session_id: str

    def metadata_of(self, turn_id: str | None) -> RunMetadata:
        return RunMetadata(session_id=self.session_id, turn_id=turn_id)


class RunEvents:
    """Makes the events of a run. The client has the results of the calls `answered`, and the turn the usage `used`."""

    def __init__(self, names: RunNames, answered: Collection[str] = (), used: Usage | None = None) -> None:
        self.names = names
        self.answered = {*answered}
        self.used = used
        self.steps: dict[str, str] = {}
        self.text = ""
        self.reasoning = ""
        self.texts: set[str] = set()
        self.calls: set[tuple[str, str]] = set()

    def convert(self, event: Event) -> list[TurnPartEvent]:
        """Return the events that an event of the turn becomes: often none."""
        match event:
            case StepStart():
                return [*self.close_step(event.step_id), *self.open_step(event)]
            case ReasoningProgress():
                return self.add_reasoning(event.step_id, event.text)
            case ReasoningEnded():
                return self.close_reasoning()
            case StepProgress(step_type="inference", delta=TextDelta(text=text)):
                return self.add_text(event.step_id, text)
            case StepProgress(step_type="inference", delta=ToolCallDelta(tool_call=ToolCall() as call)):
                return [*self.close_message(), *self.show_call(event.step_id, call)]
            case StepComplete():
                return self.finish_step(event.step_details)
            case TurnAwaitingInput() | TurnComplete():
                return [*self.close_all(), *self.show_refusal(event.turn), self.finish(event.turn)]
            case TurnFailed():
                return [*self.close_all(), self.fail(event.error, event.turn)]
            case _:
                return []

    def open_step(self, event: StepStart) -> list[TurnPartEvent]:
        name, number = str(event.step_type), 1
        while name in self.steps.values():
            number += 1
            name = f"{event.step_type} {number}"
        self.steps[event.step_id] = name
        return [StepEvent(type="STEP_STARTED", step_name=name)]

    def close_step(self, step_id: str) -> list[TurnPartEvent]:
        name = self.steps.pop(step_id, None)
        return [] if name is None else [StepEvent(type="STEP_FINISHED", step_name=name)]

    def add_reasoning(self, step_id: str, text: str) -> list[TurnPartEvent]:
        opened: list[TurnPartEvent] = []
        name = f"{step_id}-reasoning"
        if self.reasoning != name:
            opened = [*self.close_message(), ReasoningSpanEvent(type="REASONING_START", message_id=name)]
            opened.append(ReasoningStartEvent(message_id=name))
            self.reasoning = name
        return [*opened, ReasoningContentEvent(message_id=name, delta=text)]

    def close_reasoning(self) -> list[TurnPartEvent]:
        name, self.reasoning = self.reasoning, ""
        if not name:
            return []
        return [
            ReasoningSpanEvent(type="REASONING_MESSAGE_END", message_id=name),
            ReasoningSpanEvent(type="REASONING_END", message_id=name),
        ]

    def add_text(self, step_id: str, text: str) -> list[TurnPartEvent]:
        if not text:
            return []
        opened: list[TurnPartEvent] = []
        if self.text != step_id:
            opened = [*self.close_message(), TextStartEvent(message_id=step_id)]
            self.text = step_id
            self.texts.add(step_id)
        return [*opened, TextContentEvent(message_id=step_id, delta=text)]

    def close_message(self) -> list[TurnPartEvent]:
        """Close the text and the reasoning that are open."""
        name, self.text = self.text, ""
        closed: list[TurnPartEvent] = [TextEndEvent(message_id=name)] if name else []
        return [*self.close_reasoning(), *closed]

    def show_call(self, step_id: str, call: ToolCall) -> list[TurnPartEvent]:
        """Return the events of a call, unless it was shown before."""
        if (step_id, call.call_id) in self.calls:
            return []
        self.calls.add((step_id, call.call_id))
        call_id = call.call_id
        return [
            ToolStartEvent(tool_call_id=call_id, tool_call_name=call.tool_name, parent_message_id=step_id),
            ToolArgsEvent(tool_call_id=call_id, delta=show_arguments(call)),
            ToolEndEvent(tool_call_id=call_id),
        ]

    def finish_step(self, step: Step) -> list[TurnPartEvent]:
        """Return what the pieces of a step have not shown, and its end."""
        events: list[TurnPartEvent] = []
        if isinstance(step, InferenceStep):
            answer = step.model_response
            if step.step_id not in self.texts:
                events += self.add_text(step.step_id, text_of(answer.content))
            events += self.close_message()
            for call in answer.tool_calls:
                events += self.show_call(step.step_id, call)
        elif isinstance(step, ToolExecutionStep):
            events += self.show_results(step)
        return [*events, *self.close_step(step.step_id)]

    def show_results(self, step: ToolExecutionStep) -> list[TurnPartEvent]:
        """Return the results of tools, except those that the client sent."""
        events: list[TurnPartEvent] = []
        for place, response in enumerate(step.tool_responses):
            if response.call_id in self.answered:
                self.answered.discard(response.call_id)
                continue
            name, content = result_id(step, place), show_result(response.content)
            events.append(ToolCallResultEvent(message_id=name, tool_call_id=response.call_id, content=content))
        return events

    def show_refusal(self, turn: Turn) -> list[TurnPartEvent]:
        """Return the message of a shield that has ended a turn."""
        match turn.steps[-1:]:
            case [ShieldCallStep(violation=violation, metadata=None) as step] if (
                violation is not None and turn.status is TurnStatus.completed and step.step_id not in self.texts
            ):
                return [*self.add_text(step.step_id, violation.user_message or ""), *self.close_message()]
            case _:
                return []

    def close_all(self) -> list[TurnPartEvent]:
        return [*self.close_message(), *(each for step_id in [*self.steps] for each in self.close_step(step_id))]

    def finish(self, turn: Turn) -> RunFinishedEvent:
        """Return the end of a run that has not failed."""
        return RunFinishedEvent(
            thread_id=self.names.thread_id,
            run_id=self.names.run_id,
            outcome=outcome_of(turn),
            usage=self.usage_of(turn),
            metadata=self.names.metadata_of(turn.turn_id).model_copy(
                update={"pending_tool_call_ids": calls_beside_interrupts(turn)}
            ),
        )

    def fail(self, error: StintError, turn: Turn) -> RunErrorEvent:
        metadata = self.names.metadata_of(turn.turn_id)
        return RunErrorEvent(message=error.message, code=error.code, usage=self.usage_of(turn), metadata=metadata)

    def usage_of(self, turn: Turn) -> list[RunUsage] | None:
        """Return the token counts of this run alone."""
        if turn.usage is None:
            return None
        used = turn.usage if self.used is None else turn.usage - self.used
        if not used.total_tokens:
            return None
        return [
            RunUsage(
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                total_tokens=used.total_tokens,
                reasoning_tokens=used.reasoning_tokens,
                cached_input_tokens=used.cached_tokens,
                cache_write_input_tokens=used.cache_write_tokens,
            )
        ]


def outcome_of(turn: Turn) -> Outcome:
    """Return why a run has ended that has not failed."""
    if turn.status is TurnStatus.cancelled:
        return CancelledOutcome()
    if turn.status is not TurnStatus.awaiting_input:
        return SuccessOutcome()
    waiting, approvals = turn.output_message.tool_calls, turn.pending_approvals or ()
    asked = [show_interrupt(turn, call) for call in waiting if call.call_id in approvals]
    if asked:
        return InterruptOutcome(interrupts=asked)
    return SuccessOutcome(pending_tool_call_ids=[call.call_id for call in waiting])


def calls_beside_interrupts(turn: Turn) -> list[str] | None:
    """Return the ids of the calls whose results must be sent with the decisions about others, if there are any."""
    approvals = turn.pending_approvals or ()
    if turn.status is not TurnStatus.awaiting_input or not approvals:
        return None
    return [call.call_id for call in turn.output_message.tool_calls if call.call_id not in approvals] or None


def show_interrupt(turn: Turn, call: ToolCall) -> Interrupt:
    """Return the interrupt for a call, whose arguments may be replaced by those of the agent."""
    fixed, arguments = (turn.pending_arguments or {}).get(call.call_id), call.arguments
    if fixed and isinstance(arguments, dict):
        arguments = {**arguments, **fixed}
    forms = (turn.pending_inputs or {}).get(call.call_id)
    asks = f"The agent wants to call {call.tool_name}. Approve or deny it."
    return Interrupt(
        id=interrupt_id(turn.steps, call.call_id),
        message=describe_forms(call.tool_name, forms) if forms else asks,
        tool_call_id=call.call_id,
        response_schema=schema_of(forms) if forms else APPROVAL_SCHEMA,
        metadata=InterruptingCall(tool_name=call.tool_name, arguments=arguments),
    )


def describe_forms(tool_name: str, forms: Mapping[str, ElicitedForm]) -> str:
    return "\n".join(f"The tool {tool_name} asks: {form.message}" for form in forms.values())


def schema_of(forms: Mapping[str, ElicitedForm]) -> dict[str, Any]:
    """Return the schema of the answer to the forms of a call. Several ones are filled in by their keys."""
    schemas = {key: form.requested_schema for key, form in forms.items()}
    filled = next(iter(schemas.values())) if len(schemas) == 1 else {"type": "object", "properties": schemas}
    return {**APPROVAL_SCHEMA, "properties": {**APPROVAL_SCHEMA["properties"], "input": filled}}


def interrupt_id(steps: list[Step], call_id: str) -> str:
    """Return the id of the interrupt for a waiting call: with its step, because models repeat the ids of calls."""
    step_id = next((step.step_id for step in reversed(steps) if isinstance(step, InferenceStep)), "")
    return f"{step_id}:{call_id}"
