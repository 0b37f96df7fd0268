"""Conversion of the events of a turn to those of the stream of OpenAI's Agents API.

One `TurnEvents` gets all events of a turn from its start, also those before a pause: items and their indexes go on. A
live run and a replay of its log give it the same events, and so the stream has the same ones.

    TurnStart           turn.created, the user's messages, turn.in_progress
    StepStart           the messages that the turn takes before the step; what a dead process left open is incomplete
    StepProgress        a piece of the message, which the first one opens
    StepComplete        the items of the stored step
    TurnAwaitingInput   the function calls, which the client can answer now
    the other endings   what is still open is incomplete; turn.completed, turn.failed or turn.cancelled

Events of the session, the ids of events and their padding are not made here.
"""

from collections.abc import Iterable
from typing import Literal

from stint.domain.llama_stack.events import Event, TurnAwaitingInput, TurnComplete, TurnFailed, TurnStart
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader
from stint.domain.llama_stack.turns import Turn
from stint.domain.openai.item_events import padding_of
from stint.domain.run_events import StepComplete, StepProgress, StepStart, StepStartWithInput, TextDelta
from stint.domain.run_outcome import RunStatus
from stint.openai_agents.schemas.contents import AgentOutputText
from stint.openai_agents.schemas.items import AgentMessageItem
from stint.openai_agents.schemas.stream_events import (
    AgentPartEvent,
    AgentStreamEvent,
    AgentTextDeltaEvent,
    AgentTextDoneEvent,
    AgentTurnEvent,
    ItemAddedEvent,
    ItemDoneEvent,
    TurnEndedEvent,
    TurnProgressEvent,
)
from stint.openai_agents.tool_labels import ServerLabels
from stint.openai_agents.turn_items import AgentItemChange, TurnItems
from stint.openai_agents.turns import from_turn

EndType = Literal["agent.session.turn.completed", "agent.session.turn.failed", "agent.session.turn.cancelled"]


class TurnEvents:
    """Makes the events of a turn."""

    def __init__(self, header: TurnHeader, agent_id: str, labels: ServerLabels) -> None:
        self.header = header
        self.agent_id = agent_id
        self.items = TurnItems(header.turn_id, labels)
        self.texts: dict[str, list[str]] = {}
        self.streamed: set[str] = set()

    def convert(self, event: Event) -> list[AgentTurnEvent]:
        """Return the events that an event of the turn becomes: often none."""
        match event:
            case TurnStart():
                return self.start()
            case StepStart():
                return self.start_step(event)
            case StepProgress(step_type="inference", delta=TextDelta(text=text)):
                return self.add_text(event.step_id, text)
            case StepComplete():
                return self.show_all(self.items.add_step(event.step_details))
            case TurnAwaitingInput():
                return self.show_all(self.items.show_waiting_calls())
            case TurnComplete() | TurnFailed():
                return self.end(event.turn)
            case _:
                return []

    def start(self) -> list[AgentTurnEvent]:
        turn = from_turn(StoredTurn(self.header).to_turn(), self.agent_id)
        created = TurnProgressEvent(type="agent.session.turn.created", turn=turn, **self.names)
        running = TurnProgressEvent(type="agent.session.turn.in_progress", turn=turn, **self.names)
        added = self.items.add_input(self.header.turn_id, self.header.input_messages)
        return [created, *self.show_all(added), running]

    def start_step(self, event: StepStart) -> list[AgentTurnEvent]:
        """Add the messages that the turn has taken, and finish the message of an answer that another one replaces."""
        changes = self.finish_incomplete_messages() if event.step_type == "inference" else []
        for message in event.taken if isinstance(event, StepStartWithInput) else ():
            changes += self.items.add_input(message.message_id, message.input_messages)
        return self.show_all(changes)

    def add_text(self, step_id: str, text: str) -> list[AgentTurnEvent]:
        events: list[AgentTurnEvent] = []
        if step_id not in self.items.messages:
            events += self.show_all([self.items.open_message(step_id)])
        slot = self.items.messages[step_id]
        self.texts.setdefault(step_id, []).append(text)
        if slot.item is not None and slot.index is not None and text:
            self.streamed.add(slot.item.id)
            events.append(AgentTextDeltaEvent(item_id=slot.item.id, output_index=slot.index, delta=text, **self.names))
        return events

    def finish_incomplete_messages(self) -> list[AgentItemChange]:
        """Finish the messages of answers that were not stored."""
        texts = {step_id: "".join(self.texts.get(step_id, ())) for step_id in self.items.messages}
        return [change for step_id, text in texts.items() for change in self.items.finish_incomplete(step_id, text)]

    def end(self, turn: Turn) -> list[AgentTurnEvent]:
        changes = [*self.finish_incomplete_messages(), *self.items.end(RunStatus(turn.status), turn.steps)]
        shown = from_turn(turn, self.agent_id)
        kinds: dict[str, EndType] = {
            "failed": "agent.session.turn.failed",
            "cancelled": "agent.session.turn.cancelled",
        }
        kind = kinds.get(shown.status, "agent.session.turn.completed")
        return [*self.show_all(changes), TurnEndedEvent(type=kind, turn=shown, usage=shown.usage, **self.names)]

    def show_all(self, changes: Iterable[AgentItemChange]) -> list[AgentTurnEvent]:
        return [event for change in changes for event in self.show(change)]

    def show(self, change: AgentItemChange) -> list[AgentTurnEvent]:
        """Return the events of an item that appears or is final."""
        item, index = change.item, change.index
        if isinstance(item, AgentMessageItem) and item.role == "assistant" and index is not None:
            return self.show_message(item, index, change)
        events: list[AgentTurnEvent] = []
        if change.added:
            events.append(ItemAddedEvent(item=item, output_index=index, **self.names))
        if change.done and index is not None:
            events.append(ItemDoneEvent(item=item, output_index=index, **self.names))
        return events

    def show_message(self, item: AgentMessageItem, index: int, change: AgentItemChange) -> list[AgentTurnEvent]:
        """Return the events of a message of the model. Text that was not streamed is one delta."""
        place = {"item_id": item.id, "output_index": index, "content_index": 0}
        if not change.done:
            begun = AgentPartEvent(
                type="agent.session.turn.content_part.added", part=AgentOutputText(), **place, **self.names
            )
            return [ItemAddedEvent(item=item, output_index=index, **self.names), begun]
        text = "".join(part.text for part in item.content if isinstance(part, AgentOutputText))
        part = AgentOutputText(text=text)
        whole = [AgentTextDeltaEvent(delta=text, **place, **self.names)] if item.id not in self.streamed else []
        return [
            *whole,
            AgentTextDoneEvent(text=text, **place, **self.names),
            AgentPartEvent(type="agent.session.turn.content_part.done", part=part, **place, **self.names),
            ItemDoneEvent(item=item, output_index=index, **self.names),
        ]

    @property
    def names(self) -> dict[str, str]:
        return {"session_id": self.header.session_id, "turn_id": self.header.turn_id}


def pad_delta(event: AgentStreamEvent) -> AgentStreamEvent:
    """Return a delta with padding, so that its size does not reveal its words. Other events stay as they are."""
    if isinstance(event, AgentTextDeltaEvent):
        return event.model_copy(update={"obfuscation": padding_of(event.delta)})
    return event
