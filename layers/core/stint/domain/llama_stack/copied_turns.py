"""Copies of turns in another session.

A copy has what the model saw and what was said, under an id of its own, because ids of turns name stops, retries and
running turns of the whole tenant. The id keeps the time of the original. Ids of steps and calls stay the same, because
only their turn uses them.

    of the turn                                 the copy has
    input, steps, status, error, usage, times   the same
    totals of the session's budget              none, because the copy's session has one of its own
    receipt                                     none, because it cost no model call: sums of receipts count a cost once
    the price of a step (`dollars`)             none, for the same reason; its tokens stay
    `full_result` of a tool's result            none, because it names an object of the source
    the attempt of its client                   none, so that a retry of a later request does not find it
    the failed turn that it repeats             the copy of that turn
"""

from stint.domain.ids import copied_id
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader, TurnRecord
from stint.domain.schema import Schema
from stint.domain.steps import InferenceStep, ToolExecutionStep
from stint.domain.tools import ToolResponse


def copy_turn(turn: StoredTurn, session_id: str) -> StoredTurn:
    """Return the copy of a turn in another session: always the same one."""
    header = turn.header
    copied: dict[str, object] = {
        "turn_id": copied_id(header.turn_id, session_id),
        "session_id": session_id,
        "fingerprint": "",
        "retry_count": 0,
        "retry_of": copied_id(header.retry_of, session_id) if header.retry_of else "",
    }
    changed: TurnHeader = header.model_copy(update=copied)
    return StoredTurn(changed, [copy_record(record, changed.turn_id) for record in turn.records])


def copy_record(record: TurnRecord, turn_id: str) -> TurnRecord:
    """Return the copy of a record in the log of a copied turn."""
    changed: dict[str, object] = {"spent": None}
    if record.step is not None:
        changed["step"] = copy_step(record.step, turn_id)
    if record.early is not None:
        changed["early"] = [copy_step(step, turn_id) for step in record.early]
    if record.merged is not None:
        changed["merged"] = [message.model_copy(update={"fingerprint": ""}) for message in record.merged]
    if record.ending is not None:
        changed["ending"] = record.ending.model_copy(update={"consumption": None})
    return record.model_copy(update=changed)


def copy_step(step: Schema, turn_id: str) -> Schema:
    """Return the copy of a step in a copied turn."""
    changed: dict[str, object] = {"turn_id": turn_id}
    if isinstance(step, InferenceStep) and step.usage is not None:
        changed["usage"] = step.usage.model_copy(update={"dollars": None})
    if isinstance(step, ToolExecutionStep):
        changed["tool_responses"] = [drop_object_name(response) for response in step.tool_responses]
    return step.model_copy(update=changed)


def drop_object_name(response: ToolResponse) -> ToolResponse:
    """Return a result without the name of the object that has the whole of it."""
    if "full_result" not in (response.metadata or {}):
        return response
    kept = {name: value for name, value in (response.metadata or {}).items() if name != "full_result"}
    return response.model_copy(update={"metadata": kept or None})
