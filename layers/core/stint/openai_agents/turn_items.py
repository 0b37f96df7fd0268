"""The growing items of a turn. The list of items and the stream are both made here, so that they have the same items.

Ids are derived from those of messages and steps: every reader of a turn finds the same ones. The place of an item is
that in the model's order, also if it appears later:

    item                    appears                              is final
    message of the user     when the turn takes it               at once
    message of the model    with its first text                  when its answer is stored, or the turn ends
    function call           when the turn waits for the client   at once
    its output              with the result                      at once
    call of the server      when its answer is stored            with its result, or the turn ends
    violation of a shield   when its check is stored             at once

A function call does not appear with its answer, because clients run a function as soon as they see its call, and the
turn takes its result only when it waits: calls of the server may run first, or the call may be refused. One that never
waits appears with its output, or at the end of the turn.
"""

from collections.abc import Iterable, Sequence

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.ids import item_name
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnRecord, steps_of
from stint.domain.messages import InputMessage, UserMessage
from stint.domain.run_outcome import RunStatus
from stint.domain.steps import InferenceStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse
from stint.openai_agents.contents import from_content, from_result
from stint.openai_agents.schemas.contents import AgentOutputText
from stint.openai_agents.schemas.items import (
    AgentFunctionCall,
    AgentFunctionCallOutput,
    AgentItem,
    AgentMessageItem,
    AgentShieldCall,
)
from stint.openai_agents.server_calls import ServerCall, finish_call, is_failed, open_call
from stint.openai_agents.tool_labels import ServerLabels


@dataclass(slots=True)
class ItemSlot:
    """The place of an item. `index` is that in the model's output; input has none. `item` is None until it appears."""

    index: int | None
    item: AgentItem | None = None
    name: str = ""
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class AgentItemChange:
    """An item that appears (`added`), or that is final (`done`), or both."""

    item: AgentItem
    index: int | None
    added: bool
    done: bool


class TurnItems:
    """The items of a turn so far."""

    def __init__(self, turn_id: str, labels: ServerLabels) -> None:
        self.turn_id = turn_id
        self.labels = labels
        self.slots: list[ItemSlot] = []
        self.outputs = 0
        self.messages: dict[str, ItemSlot] = {}
        self.calls: dict[str, ItemSlot] = {}
        self.unanswered: dict[str, ItemSlot] = {}
        self.seen: set[str] = set()

    @property
    def items(self) -> list[AgentItem]:
        """Return the items that have appeared, in the model's order."""
        return [slot.item for slot in self.slots if slot.item is not None]

    def add_slot(self, *, output: bool = True) -> ItemSlot:
        slot = ItemSlot(self.outputs if output else None)
        self.outputs += output
        self.slots.append(slot)
        return slot

    def add_input(self, name: str, messages: Iterable[InputMessage]) -> list[AgentItemChange]:
        """Add messages that the turn takes. `name` is the id of the turn, or of a message to the running turn."""
        return [self.add_message(name, place, message) for place, message in enumerate(messages)]

    def add_message(self, name: str, place: int, message: InputMessage) -> AgentItemChange:
        if isinstance(message, UserMessage):
            content = from_content(message.content)
            identifier = item_name("msg", name, place)
            item = AgentMessageItem(id=identifier, turn_id=self.turn_id, role="user", content=[*content])
            return self.show(self.add_slot(output=False), item)
        response = ToolResponse(call_id=message.call_id, tool_name="", content=message.content)
        return self.add_output(item_name("fco", name, place), response)

    def open_message(self, step_id: str) -> AgentItemChange:
        """Add the message of an answer that has begun."""
        slot = self.messages[step_id] = self.add_slot()
        identifier = item_name("msg", step_id, 1)
        opened = AgentMessageItem(
            id=identifier, turn_id=self.turn_id, role="assistant", status="in_progress", content=[]
        )
        return self.show(slot, opened, done=False)

    def finish_incomplete(self, step_id: str, text: str) -> list[AgentItemChange]:
        """Finish the message of an answer that was not stored."""
        changes = [] if step_id in self.messages else [self.open_message(step_id)]
        return [*changes, self.finish_message(step_id, text, {"status": "incomplete"})]

    def finish_message(self, step_id: str, text: str, fields: dict[str, object]) -> AgentItemChange:
        slot = self.messages.pop(step_id)
        message = slot.item
        assert message is not None  # noqa: S101 - only messages that were opened are there
        return self.show(slot, message.model_copy(update={"content": [AgentOutputText(text=text)], **fields}))

    def add_step(self, step: Step) -> list[AgentItemChange]:
        """Add the items of a stored step."""
        self.seen.add(step.step_id)
        match step:
            case InferenceStep():
                return self.add_answer(step)
            case ToolExecutionStep():
                return self.add_results(step)
            case ShieldCallStep(violation=found) if found is not None:
                identifier = item_name("sh", step.step_id, 0)
                violation = AgentShieldCall(id=identifier, turn_id=self.turn_id, violation=found)
                return [self.show(self.add_slot(), violation)]
            case _:
                return []

    def add_answer(self, step: InferenceStep) -> list[AgentItemChange]:
        """Add the message and the calls of an answer. One that is cut has no calls."""
        answer = step.model_response
        cut = answer.stop_reason == "out_of_tokens"
        text, calls = text_of(answer.content), [] if cut else answer.tool_calls
        changes: list[AgentItemChange] = []
        if text and step.step_id not in self.messages:
            changes.append(self.open_message(step.step_id))
        if step.step_id in self.messages:
            fields = {
                "status": "incomplete" if cut else "completed",
                "phase": "commentary" if calls else "final_answer",
            }
            changes.append(self.finish_message(step.step_id, text, {**fields}))
        for place, call in enumerate(calls, 2):
            changes += self.add_call(step.step_id, place, call)
        return changes

    def add_call(self, step_id: str, place: int, call: ToolCall) -> list[AgentItemChange]:
        slot = self.add_slot()
        slot.call = call
        self.calls[call.call_id] = self.unanswered[call.call_id] = slot
        label = self.labels(call.tool_name)
        if label is None:
            slot.name = item_name("fc", step_id, place)
            return []
        return [self.show(slot, open_call(call, label, self.turn_id, step_id, place), done=False)]

    def add_results(self, step: ToolExecutionStep) -> list[AgentItemChange]:
        """Finish the calls that a step answers."""
        changes: list[AgentItemChange] = []
        for place, response in enumerate(step.tool_responses):
            self.unanswered.pop(response.call_id, None)
            slot = self.calls.get(response.call_id)
            if slot is not None and slot.call is not None and isinstance(slot.item, ServerCall):
                changes.append(self.show(slot, finish_call(slot.item, slot.call, response)))
                continue
            if slot is not None and slot.item is None:
                changes.append(self.show_call(slot, added=False))
            changes.append(self.add_output(item_name("fco", step.step_id, place), response))
        return changes

    def add_output(self, name: str, response: ToolResponse) -> AgentItemChange:
        """Add the result of a function."""
        failed = is_failed(response)
        item = AgentFunctionCallOutput(
            id=name,
            turn_id=self.turn_id,
            call_id=response.call_id,
            output=None if failed else from_result(response.content),
            error=(text_of(response.content) or None) if failed else None,
            status="failed" if failed else "completed",
        )
        return self.show(self.add_slot(output=False), item)

    def show_waiting_calls(self) -> list[AgentItemChange]:
        """Add the function calls that now wait for the client."""
        waiting = [slot for slot in self.unanswered.values() if slot.item is None]
        return [self.show_call(slot) for slot in waiting]

    def show_call(self, slot: ItemSlot, *, complete: bool = True, added: bool = True) -> AgentItemChange:
        call = slot.call
        assert call is not None  # noqa: S101 - only slots of function calls have no item
        item = AgentFunctionCall(
            id=slot.name,
            turn_id=self.turn_id,
            call_id=call.call_id,
            name=call.tool_name,
            arguments=call.arguments,
            status="completed" if complete else "incomplete",
        )
        return self.show(slot, item, added=added)

    def end(self, status: RunStatus, steps: Sequence[Step]) -> list[AgentItemChange]:
        """Finish the items of a turn that has ended. `steps` has all its steps, also those that were not announced."""
        changes = [change for step in steps if step.step_id not in self.seen for change in self.add_step(step)]
        if status is RunStatus.completed and (text := blocked_text(steps)):
            changes += [
                self.open_message(steps[-1].step_id),
                self.finish_message(steps[-1].step_id, text, {"status": "completed", "phase": "final_answer"}),
            ]
        unanswered, self.unanswered = list(self.unanswered.values()), {}
        for slot in unanswered:
            if slot.item is None:
                changes.append(self.show_call(slot, complete=False, added=False))
            elif isinstance(slot.item, ServerCall):
                changes.append(self.show(slot, slot.item.model_copy(update={"status": "incomplete"})))
        return changes

    def show(self, slot: ItemSlot, item: AgentItem, *, added: bool | None = None, done: bool = True) -> AgentItemChange:
        """Set the item of a slot. It appears now unless it was there before."""
        appears = slot.item is None if added is None else added
        slot.item = item
        return AgentItemChange(item, slot.index, appears, done)


def blocked_text(steps: Sequence[Step]) -> str:
    """Return what the user reads in place of an answer that a shield has blocked, at the end of a complete turn."""
    last = steps[-1] if steps else None
    if isinstance(last, ShieldCallStep) and last.violation is not None and last.metadata is None:
        return last.violation.user_message or ""
    return ""


def to_items(turn: StoredTurn, labels: ServerLabels) -> list[AgentItem]:
    """Return the items of a turn in the model's order; those so far if it runs."""
    items = TurnItems(turn.header.turn_id, labels)
    items.add_input(turn.header.turn_id, turn.header.input_messages)
    for place, record in enumerate(turn.records, 1):
        add_record(items, record, turn.records[:place] if record.final else [])
    return items.items


def add_record(items: TurnItems, record: TurnRecord, records: list[TurnRecord]) -> None:
    """Add a record of the log. `records` are those up to the end of the turn."""
    for message in record.merged or ():
        items.add_input(message.message_id, message.input_messages)
    if record.step is not None:
        items.add_step(record.step)
    if record.ending is None:
        return
    if (partial := record.unfinished) is not None and partial.step_type == "inference" and partial.text:
        items.finish_incomplete(partial.step_id, partial.text)
    if record.ending.status is RunStatus.awaiting_input:
        items.show_waiting_calls()
    else:
        items.end(record.ending.status, steps_of(records))
