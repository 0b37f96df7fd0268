"""Hostile answers of models. After each, its session or conversation must still be usable."""

import json
from functools import cache, partial
from typing import Any

from tests.adversarial.case import CASES, Answer, Case, create_session, get, post
from tests.adversarial.hostile_answers import make_answers
from tests.adversarial.peer import serves_model
from tests.servers.chat_completions import error, find_fault, stream
from tests.servers.scripted_http import Received, Reply

PREFIX = "hostile-"
GO = "answer badly"
TOOL: dict[str, Any] = {"name": "lookup", "description": "Look up.", "parameters": []}
FUNCTION: dict[str, Any] = {"type": "function", "name": "lookup", "parameters": {"type": "object"}}
FAILED = (502,)
"""The status of a request whose model broke the protocol."""

GROUPS = 2


answers = cache(make_answers)


@serves_model("hostile")
def answer_badly(received: Received) -> Reply:
    """Answer the message GO as the id of the model says, and any other one like a model that refuses what is wrong."""
    body = parse_strictly(received.body)
    last = body["messages"][-1]
    if last["role"] == "user" and last["content"] == GO:
        return answers()[body["model"].removeprefix(PREFIX)]
    fault = find_fault(body) or find_unusable(body)
    return error(400, fault) if fault else stream({"content": "ok"})


def parse_strictly(text: bytes) -> Any:
    """Parse a request like a strict server: neither NaN nor deep values nor duplicate keys."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text.decode(), parse_constant=refuse)


def find_unusable(body: dict[str, Any]) -> str | None:
    """Return why a server like vLLM would refuse the calls of earlier answers."""
    for message in body["messages"]:
        for call in message.get("tool_calls") or []:
            try:
                arguments = parse_strictly(call["function"]["arguments"].encode())
            except (ValueError, RecursionError) as fault:
                return f"the arguments are not JSON ({fault})"
            if not isinstance(arguments, dict):
                return "the arguments are not an object"
    return None


def through_turns(names: list[str], *, streamed: bool, provider: str = "hostile") -> Case:
    for name in names:
        session = yield from create_session(model=f"{provider}/{PREFIX}{name}", client_tools=[TOOL])
        message = {"role": "user", "content": GO}
        answer = yield post(f"{session}/turn", {"messages": [message], "stream": streamed})
        assert answer.status in (200, *FAILED, 400), (name, answer.status, answer.body[:500])
        found = yield get(session)
        assert found.status == 200, (name, found.body[:500])
        [turn] = found.json()["turns"] or [{}]
        if calls := (turn.get("output_message") or {}).get("tool_calls"):
            results = [{"call_id": each["call_id"], "tool_name": each["tool_name"], "content": "1"} for each in calls]
            path = f"{session}/turn/{turn['turn_id']}/resume"
            answer = yield post(path, {"tool_responses": results, "stream": streamed})
            assert answer.status == 200, (name, answer.body[:500])
        answer = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": "go on"}]})
        assert answer.status == 200, (name, answer.body[:500])
        assert answer.json()["output_message"]["content"] == "ok", (name, answer.body[:500])
        found = yield get(session)
        assert found.status == 200, (name, found.body[:500])


def results_of(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items that answer the calls of a response."""
    calls = [item for item in output if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": "1"} for call in calls]


def through_responses(names: list[str], *, streamed: bool, provider: str = "hostile") -> Case:
    for name in names:
        body = {"model": f"{provider}/{PREFIX}{name}", "tools": [FUNCTION], "stream": streamed}
        answer = yield post("/v1/responses", {**body, "input": GO})
        assert answer.status in (200, *FAILED, 400), (name, answer.status, answer.body[:500])
        response = response_of(answer)
        if response is None or response["status"] == "failed":
            continue
        path = f"/v1/responses/{response['id']}"
        found = yield get(path)
        assert found.status == 200, (name, found.body[:500])
        input_items = [*results_of(found.json()["output"]), {"role": "user", "content": "go on"}]
        answer = yield post("/v1/responses", {**body, "input": input_items, "previous_response_id": response["id"]})
        assert answer.status == 200, (name, answer.body[:500])
        after = response_of(answer)
        assert after is not None
        assert after["status"] == "completed", (name, answer.body[:500])
        found = yield get(f"/v1/responses/{after['id']}/input_items")
        assert found.status == 200, (name, found.body[:500])


def response_of(answer: Answer) -> dict[str, Any] | None:
    """Return the response of an answer, streamed or not."""
    if answer.body.startswith(b"{"):
        found: dict[str, Any] = answer.json()
        return found if found.get("object") == "response" else None
    lines = [line[6:] for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
    events = [json.loads(line) for line in lines]
    return next((event["response"] for event in reversed(events) if "response" in event), None)


def through_conversations(names: list[str], *, streamed: bool) -> Case:
    for name in names:
        answer = yield post("/v1/conversations", {})
        conversation = answer.json()["id"]
        body = {
            "model": f"hostile/{PREFIX}{name}",
            "tools": [FUNCTION],
            "stream": streamed,
            "conversation": conversation,
        }
        answer = yield post("/v1/responses", {**body, "input": GO})
        assert answer.status in (200, *FAILED, 400), (name, answer.status, answer.body[:500])
        found = yield get(f"/v1/conversations/{conversation}/items?limit=100")
        assert found.status == 200, (name, found.body[:500])
        response = response_of(answer)
        results = results_of(response["output"]) if response else []
        answer = yield post("/v1/responses", {**body, "input": [*results, {"role": "user", "content": "go on"}]})
        assert answer.status == 200, (name, answer.body[:500])
        after = response_of(answer)
        assert after is not None
        assert after["status"] == "completed", (name, answer.body[:500])
        found = yield get(f"/v1/conversations/{conversation}/items?limit=100")
        assert found.status == 200, (name, found.body[:500])


def through_chat(names: list[str], *, streamed: bool) -> Case:
    for name in names:
        tools = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}]
        body = {"model": f"hostile/{PREFIX}{name}", "tools": tools, "store": True, "logprobs": True}
        messages: list[dict[str, Any]] = [{"role": "user", "content": GO}]
        answer = yield post("/v1/chat/completions", {**body, "messages": messages, "stream": streamed})
        assert answer.status in (200, *FAILED, 400), (name, answer.status, answer.body[:500])
        listed = yield get(f"/v1/chat/completions?model={body['model']}")
        assert listed.status == 200, (name, listed.body[:500])
        for stored in listed.json()["data"]:
            found = yield get(f"/v1/chat/completions/{stored['id']}")
            assert found.status == 200, (name, found.body[:500])
            found = yield get(f"/v1/chat/completions/{stored['id']}/messages")
            assert found.status == 200, (name, found.body[:500])
            said = stored["choices"][0]["message"]
            calls = said.get("tool_calls") or []
            results = [{"role": "tool", "tool_call_id": each["id"], "content": "1"} for each in calls]
            history = [*messages, said, *results, {"role": "user", "content": "go on"}]
            answer = yield post("/v1/chat/completions", {**body, "messages": history})
            assert answer.status == 200, (name, answer.body[:500])


ROUTES = {
    "turns": through_turns,
    "responses": through_responses,
    "conversations": through_conversations,
    "chat": through_chat,
}


def part_of(names: list[str], part: int) -> list[str]:
    return names[part::GROUPS]


for route, make in ROUTES.items():
    for part in range(GROUPS):
        names = part_of(list(answers()), part)
        CASES[f"answers_of_models_{route}_{part}"] = partial(make, names, streamed=part % 2 == 1)
