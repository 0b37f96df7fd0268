"""Conversion of stored turns to the items of OpenAI's Agents API."""

from stint.domain.llama_stack.stored_turns import StoredTurn, TurnRecord, steps_of
from stint.domain.run_outcome import RunStatus
from stint.openai_agents.schemas.items import AgentItem
from stint.openai_agents.tool_labels import ServerLabels
from stint.openai_agents.turn_items import TurnItems


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
        items.break_off(partial.step_id, partial.text)
    if record.ending.status is RunStatus.awaiting_input:
        items.hand_over()
    else:
        items.end(record.ending.status, steps_of(records))
