"""Turns of other Llama Stack servers, of 0.2.12 and of October 2024, as Stint stores them.

An import may be repeated, so a turn must become the same records each time: ids are made of times and old ids, never at
random. Objects of October 2024 get the form of 0.2.12 first (`convert_*`), and pydantic checks the result, since the
file may contain anything. What is not a turn raises ValueError, and the importer reports the row.

    the original turn                   becomes
    has an end                          completed
    has none                            failed: no process continues it
    the last one, its last calls lack   awaiting_input, with these calls pending
    results
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.ids import id_from_time
from stint.domain.llama_stack.stored_turns import PendingCalls, TurnHeader, TurnRecord, unanswered_calls
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.steps import Step

JsonObject = Mapping[str, Any]


@dataclass(slots=True)
class ImportedTurn:
    """A turn with its own id. `old_id` is the one that it had. `pending` are the calls that it waits for."""

    old_id: str
    header: TurnHeader
    records: list[TurnRecord]
    pending: PendingCalls | None = None

    @property
    def steps(self) -> list[Step]:
        return [record.step for record in self.records if record.step is not None]


def read_turn(value: JsonObject, session_id: str, old_id: str) -> ImportedTurn:
    """Make a turn of its JSON object, of which the caller has checked nothing.

    Its id is made of its start and of its old id, so that turns keep their order and every import makes the same id.

    Raises:
        ValueError: a field is missing or has another form. pydantic's ValidationError is one.
    """
    started = read_time(value.get("started_at"), "started_at")
    turn_id = id_from_time(started, old_id)
    ended = read_time(value["completed_at"], "completed_at") if value.get("completed_at") else None
    header = TurnHeader.model_validate(
        {
            "turn_id": turn_id,
            "session_id": session_id,
            "input_messages": [convert_message(message) for message in objects(value, "input_messages")],
            "started_at": started,
            "overrides": TurnOverrides(),
        }
    )
    steps = [convert_step(step, turn_id, started) for step in objects(value, "steps")]
    records = [TurnRecord.model_validate({"step": step}) for step in steps]
    ending = RunOutcome(status=RunStatus.completed if ended else RunStatus.failed, completed_at=ended or started)
    if records:
        records[-1].ending = ending
    return ImportedTurn(old_id, header, records or [TurnRecord(ending=ending)])


def wait_for_calls(turn: ImportedTurn, waiting: JsonObject | None) -> None:
    """Let the last turn of a session wait for the calls of its last answer, if they have no results.

    `waiting` is the step that the original stored for them, if there is one.
    """
    calls = unanswered_calls(turn.steps)
    ending = turn.records[-1].ending
    if not calls or ending is None:
        return
    ending.status = RunStatus.awaiting_input
    turn_id, ended = turn.header.turn_id, ending.completed_at
    step_id = (waiting or {}).get("step_id")
    turn.pending = PendingCalls(
        turn_id=turn_id,
        step_id=step_id if isinstance(step_id, str) else id_from_time(ended, turn_id),
        started_at=ended,
        tool_calls=calls,
    )


def convert_step(step: JsonObject, turn_id: str, started: datetime) -> dict[str, Any]:
    """Return a step with the fields of 0.2.12. Those of October 2024 may have no time, and name memory banks."""
    found = dict(step) | {"turn_id": turn_id, "started_at": step.get("started_at") or started}
    for name in ("started_at", "completed_at"):
        if found.get(name):
            found[name] = read_time(found[name], name)
    match found.get("step_type"):
        case "inference":
            found["model_response"] = convert_contents(found.get("model_response"))
        case "tool_execution":
            found["tool_responses"] = [convert_contents(each) for each in objects(found, "tool_responses")]
        case "memory_retrieval" if "memory_bank_ids" in found:
            found["vector_db_ids"] = ",".join(map(str, found["memory_bank_ids"]))
            found["inserted_context"] = convert_content(found.get("inserted_context"))
    return found


def convert_message(message: JsonObject) -> dict[str, Any]:
    """Return an input message with the fields of 0.2.12."""
    found = convert_contents(message)
    return found | {"role": "tool"} if found.get("role") == "ipython" else found


def convert_contents(value: Any) -> dict[str, Any]:
    """Return an object whose contents have the form of 0.2.12."""
    if not isinstance(value, Mapping):
        raise ValueError("a message is not an object")
    return {name: convert_content(part) if name in ("content", "context") else part for name, part in value.items()}


def convert_content(content: Any) -> Any:
    """Return a content. One of October 2024 has plain strings and images without a type; texts alone are joined."""
    if not isinstance(content, list) or not content:
        return convert_part(content) if isinstance(content, Mapping) else content or ""
    if all(isinstance(part, str) for part in content):
        return "\n".join(content)
    return [convert_part(part) for part in content]


def convert_part(part: Any) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, Mapping) and "type" not in part and "image" in part:
        image = part["image"]
        return {"type": "image", "image": {"url": {"uri": image} if isinstance(image, str) else image}}
    return part


def objects(value: JsonObject, name: str) -> list[JsonObject]:
    """Return a list of objects. Raises ValueError."""
    found = value.get(name)
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise ValueError(f"{name} is not a list of objects")
    return found


def read_time(value: Any, name: str) -> datetime:
    """Return a time. One without a zone, as of October 2024, is taken as UTC. Raises ValueError."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a time")
    try:
        moment = datetime.fromisoformat(value)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{name} is not a time") from None
    if moment.year < 1970:
        raise ValueError(f"{name} is before 1970")
    return moment
