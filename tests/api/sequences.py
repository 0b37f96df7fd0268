"""Short descriptions of streams, for comparison with recordings of Llama Stack 0.2.12.

Ids and times are left out. Everything else in a recording is included: events, step types, order, stop reasons.
"""

from typing import Any

import httpx
from tests.api.api_client import data
from tests.servers import chat_completions as chat
from tests.servers.scripted_http import Reply

ADD = ("call_a", "add", '{"a": 2, "b": 3}')
"""The tool call in most recordings."""


def sequence(response: httpx.Response) -> list[str]:
    """Return a description of each event of a stream, in a word or two."""
    assert response.status_code == 200, response.text
    return [word_for(line) for line in data(response)]


def word_for(line: dict[str, Any]) -> str:
    if "error" in line:
        return f"error {line['error']['code']}"
    event = line["event"]["payload"]
    match event["event_type"]:
        case "turn_start":
            return "turn_start"
        case "step_start":
            return " ".join(["start", event["step_type"], *event["metadata"].values()])
        case "step_progress":
            return word_for_delta(event["delta"])
        case "step_complete":
            return f"complete {word_for_step(event['step_details'])}"
    return f"{event['event_type']} {event['turn']['output_message']['stop_reason']}"


def word_for_delta(delta: dict[str, Any]) -> str:
    if delta["type"] == "text":
        return f"text {delta['text']}"
    call = delta["tool_call"]
    return f"call {delta['parse_status']} {call if isinstance(call, str) else call['tool_name']}"


def word_for_step(step: dict[str, Any]) -> str:
    if step["step_type"] != "shield_call":
        return str(step["step_type"])
    return f"shield_call {'blocks' if step['violation'] else 'passes'}"


def last_turn(response: httpx.Response) -> dict[str, Any]:
    """Return the turn in the last event of a stream."""
    turn: dict[str, Any] = data(response)[-1]["event"]["payload"]["turn"]
    return turn


def says(*pieces: str, finish: str | None = "stop") -> Reply:
    """Return a model's answer with these pieces of text."""
    return chat.stream(*({"content": piece} for piece in pieces), finish=finish)


def calls(*made: tuple[str, str, str], text: tuple[str, ...] = ()) -> Reply:
    """Return a model's answer with pieces of text, then tool calls, each with an id, a name and arguments."""
    deltas = [delta for place, call in enumerate(made) for delta in chat.tool_call(*call, index=place)]
    return chat.stream(*({"content": piece} for piece in text), *deltas, finish="tool_calls")


def outline(turn: dict[str, Any]) -> dict[str, Any]:
    """Return a turn without ids, times and what they cost. Of `first_token_ms`, whether it is a time is kept."""
    hidden = ("turn_id", "session_id", "step_id", "started_at", "completed_at")
    kept = {key: value for key, value in turn.items() if key not in hidden}
    steps = [
        {key: value >= 0 if key == "first_token_ms" else value for key, value in step.items() if key not in hidden}
        for step in turn["steps"]
    ]
    counted = {key: value for key, value in turn["receipt"].items() if key.endswith(("_calls", "_tokens"))}
    return kept | {"steps": steps, "receipt": counted}
