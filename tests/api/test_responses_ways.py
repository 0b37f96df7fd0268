"""However an answer is made up and however its client goes on: calls and results pair, and nothing is run twice."""

import random
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import RESPONSES, TIME, WEATHER, Body, events_of, get, output_for, post, respond, user

from stint.domain.inference import AssistantAnswer, ModelMessage, ToolResult

WAYS = ["previous_response_id", "conversation", "items", "references"]
CALLS = [
    'call: get_weather {"city": "x"}',
    "call: get_time {}",
    'call: add {"a": 1, "b": 2}',
    'call: boom {"why": "x"}',
    "call: add [1",
    "call: nothing {}",
]
APPROVALS: list[Any] = ["never", "always", {"always": {"tool_names": ["add"]}}]


def ask(chance: random.Random) -> str:
    """Make up what the model is to do."""
    lines = [line for line in ("think: hm", "say: some words", "repeat: 2") if chance.random() < 0.4]
    lines += chance.choices(CALLS, k=chance.randint(0, 3))
    lines += [line for line in ("refuse: no", "cut: 2 words", "filter: after 2 words") if chance.random() < 0.1]
    return "\n".join(lines) or "Hello"


def settings(chance: random.Random) -> Body:
    some = {"parallel_tool_calls": False, "max_tool_calls": 1, "max_infer_iters": 2, "reasoning": {"effort": "low"}}
    kept: Body = {name: value for name, value in some.items() if chance.random() < 0.2}
    return kept | {"include": ["reasoning.encrypted_content"]}


def answers_to(response: Body, chance: random.Random) -> list[Body]:
    """Answer in any order what a response waits for."""
    answers = []
    for item in response["output"]:
        if item["type"] == "function_call":
            answers.append(output_for(item))
        if item["type"] == "mcp_approval_request":
            consent = {"type": "mcp_approval_response", "approval_request_id": item["id"]}
            answers.append(consent | {"approve": chance.random() < 0.7})
    chance.shuffle(answers)
    return answers or [user("say: next")]


def assert_paired(messages: tuple[ModelMessage, ...]) -> None:
    """Assert that each call has its result right behind the answer that made it, as providers want it."""
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, ToolResult):
            waiting.remove(message.call_id)
            continue
        assert not waiting
        if isinstance(message, AssistantAnswer):
            waiting = {call.call_id for call in message.tool_calls}
            assert len(waiting) == len(message.tool_calls)
    assert not waiting


@pytest.fixture
def resume(mcp: str) -> Callable[..., Body]:
    """Continue a talk in one of the ways in which clients do; `told` is all that was said in it so far."""

    def resume(http: httpx.Client, way: str, told: list[Body], last: Body, said: list[Body], **fields: Any) -> Body:
        match way:
            case "previous_response_id":
                return respond(http, said, previous_response_id=last["id"], **fields)
            case "conversation":
                return respond(http, said, conversation=last["conversation"], **fields)
            case "items":
                return respond(http, [*told, *last["output"], *said], **fields)
            case _:
                references = [{"type": "item_reference", "id": item["id"]} for item in last["output"]]
                return respond(http, [*told, *references, *said], **fields)

    return resume


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_a_talk_goes_on(
    http: httpx.Client,
    llama_stack: httpx.Client,
    mcp_server: str,
    app_fixture: AppFixture,
    resume: Callable[..., Body],
    way: str,
    seed: int,
) -> None:
    chance = random.Random(f"{way} {seed}")
    tool = {"type": "mcp", "server_label": "sums", "server_url": f"{mcp_server}/mcp"}
    fields = settings(chance) | {"tools": [WEATHER, TIME, tool | {"require_approval": chance.choice(APPROVALS)}]}
    conversation = http.post("/v1/conversations").json()["id"] if way == "conversation" else None

    answer = post(http, ask(chance), stream=True, conversation=conversation, **fields)
    first = events_of(answer.text)[-1]["response"]
    said = answers_to(first, chance)
    second = resume(http, way, [user("go")], first, said, **fields)
    told = [user("go"), *first["output"], *said]
    third = resume(llama_stack, way, told, second, [user("say: more")], model="recorded/m", tools=fields["tools"])

    assert get(http, first["id"]) == first
    assert get(http, second["id"]) == second
    assert http.get(f"{RESPONSES}/{third['id']}/input_items?limit=100").status_code == 200
    assert_paired(app_fixture.last_request.messages)
    assert [item for item in third["output"] if item["type"] == "mcp_call"] == []
