"""What a stream shows in few words, so that it can be held against what Llama Stack 0.2.12 was seen to send.

Ids and times are left out; everything else that a recording fixes is there: events, step types, order, stop reasons.
"""

from typing import Any

import httpx
from tests.api.api_client import data
from tests.servers import chat_completions as chat
from tests.servers.scripted_http import Reply

ADD = ("call_a", "add", '{"a": 2, "b": 3}')
"""The call of a tool as most recordings have it."""


def sequence(response: httpx.Response) -> list[str]:
    """Tell the events of a stream, a word or two each."""
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
    """Give the turn that the last event of a stream bears."""
    turn: dict[str, Any] = data(response)[-1]["event"]["payload"]["turn"]
    return turn


def says(*pieces: str, finish: str | None = "stop") -> Reply:
    """A model's answer of these pieces of text."""
    return chat.stream(*({"content": piece} for piece in pieces), finish=finish)


def calls(*made: tuple[str, str, str], text: tuple[str, ...] = ()) -> Reply:
    """A model's answer with calls of tools, each an id, a name and arguments, behind pieces of text."""
    deltas = [delta for place, call in enumerate(made) for delta in chat.tool_call(*call, index=place)]
    return chat.stream(*({"content": piece} for piece in text), *deltas, finish="tool_calls")


def outline(turn: dict[str, Any]) -> dict[str, Any]:
    """Give what a turn shows, without ids and times."""
    hidden = ("turn_id", "session_id", "step_id", "started_at", "completed_at")
    kept = {key: value for key, value in turn.items() if key not in hidden}
    steps = [{key: value for key, value in step.items() if key not in hidden} for step in turn["steps"]]
    return kept | {"steps": steps}
