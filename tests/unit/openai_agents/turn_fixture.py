"""Turns of every shape, and the events and items that they become."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from stint.domain.ids import new_id
from stint.domain.inference import Usage
from stint.domain.llama_stack.events import Event
from stint.domain.llama_stack.stored_turns import MergedMessage, StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import UserMessage
from stint.domain.partial_steps import PartialStep
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.domain.schema import Schema
from stint.domain.steps import (
    CompletionMessage,
    InferenceStep,
    MemoryRetrievalStep,
    SafetyViolation,
    ShieldCallStep,
    ToolExecutionStep,
)
from stint.domain.tools import ToolCall, ToolResponse
from stint.openai_agents.schemas.stream_events import AgentTurnEvent
from stint.openai_agents.turn_events import TurnEvents
from stint.services.turns.turn_replay import TurnReplay

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = {
    "look_up": "docs",
    "brave_search": "builtin::websearch",
    "knowledge_search": "builtin::rag",
    "code_interpreter": "builtin::code_interpreter",
    "photogen": "builtin::photogen",
}
"""The labels of the server's tools. The client runs the others."""


def call(name: str, call_id: str = "", arguments: dict[str, Any] | str | None = None) -> ToolCall:
    given = {"query": "x"} if arguments is None else arguments
    return ToolCall(call_id=call_id or f"call_{name}", tool_name=name, arguments=given)


def result(of: ToolCall, text: str = "found", *, error: bool = False) -> ToolResponse:
    metadata = {"error": True} if error else None
    return ToolResponse(call_id=of.call_id, tool_name=of.tool_name, content=text, metadata=metadata)


def step_fields() -> dict[str, Any]:
    return {"turn_id": "t", "step_id": new_id(), "started_at": NOW, "completed_at": NOW}


def answer(text: str = "", *calls: ToolCall, cut: bool = False) -> InferenceStep:
    said = CompletionMessage(
        content=text, tool_calls=list(calls), stop_reason="out_of_tokens" if cut else "end_of_turn"
    )
    return InferenceStep(**step_fields(), model_response=said)


def results(*responses: ToolResponse) -> ToolExecutionStep:
    return ToolExecutionStep(**step_fields(), tool_calls=[], tool_responses=list(responses))


def violation(metadata: dict[str, str] | None = None) -> ShieldCallStep:
    found = SafetyViolation(violation_level="error", user_message="I cannot talk about this.")
    return ShieldCallStep(**step_fields(), violation=found, metadata=metadata)


def retrieval() -> MemoryRetrievalStep:
    return MemoryRetrievalStep(**step_fields(), vector_db_ids="db", inserted_context="context")


def ending(status: RunStatus, error: ErrorInfo | None = None) -> RunOutcome:
    return RunOutcome(
        status=status, completed_at=NOW, usage=Usage(input_tokens=3, output_tokens=2, total_tokens=5), error=error
    )


COMPLETED, WAITING, CANCELLED = (
    ending(RunStatus.completed),
    ending(RunStatus.awaiting_input),
    ending(RunStatus.cancelled),
)
FAILED = ending(RunStatus.failed, ErrorInfo(message="Too long.", type="server_error", code="context_length_exceeded"))


def stored(*records: TurnRecord, text: str = "Hi") -> StoredTurn:
    header = TurnHeader(
        turn_id=new_id(),
        session_id=new_id(),
        input_messages=[UserMessage(content=text)],
        started_at=NOW,
        overrides=TurnOverrides(),
    )
    return StoredTurn(header, list(records))


def record(step: Any = None, outcome: RunOutcome | None = None, **fields: Any) -> TurnRecord:
    return TurnRecord(step=step, ending=outcome, **fields)


def steered(text: str = "And now?") -> MergedMessage:
    return MergedMessage(message_id=new_id(), input_messages=[UserMessage(content=text)])


def partial(text: str) -> PartialStep:
    return PartialStep(step_type="inference", step_id=new_id(), text=text)


def events_of(turn: StoredTurn) -> list[Event]:
    """Return the events of a turn's log."""
    replay = TurnReplay(turn.header)
    return [each.event for each in (*replay.emit_start(), *replay.emit_records(turn.records))]


def convert(turn: StoredTurn, events: Iterable[Event] | None = None) -> list[AgentTurnEvent]:
    """Return the events of the stream of a turn."""
    converter = TurnEvents(turn.header, "agent_1", LABELS.get)
    return [made for event in (events_of(turn) if events is None else events) for made in converter.convert(event)]


def dump(value: Schema) -> Any:
    return json.loads(value.to_json())


def fold(events: Sequence[AgentTurnEvent]) -> dict[str, Any]:
    """Return the items that a client builds of a stream, by their ids."""
    items: dict[str, Any] = {}
    for event in map(dump, events):
        if "item" in event:
            items[event["item"]["id"]] = event["item"]
        elif event["type"] == "agent.session.turn.output_text.delta":
            items[event["item_id"]].setdefault("_text", "")
            items[event["item_id"]]["_text"] += event["delta"]
    return items


def types_of(events: Sequence[AgentTurnEvent]) -> list[str]:
    return [event.type.removeprefix("agent.session.turn.") for event in events]
