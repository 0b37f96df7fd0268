"""Reasoning of a model server's Responses API, in each way in which callers carry on. The server checks it.

It refuses reasoning that was changed, or that is not before the item that followed it.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import WEATHER, Body, follow, item_of, kinds, respond, text_of, types_of, user
from tests.api.test_responses_reasoning import ENCRYPTED, LOW, WAYS, resume
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.model_responses import ModelResponsesServer, call, message, stream, thought

from stint.models.openai_compatible import OpenAICompatible

GO = "get_weather {}"
MODEL = "thinker/m"


@pytest.fixture(scope="module")
def shared_thinker() -> Iterator[ModelResponsesServer]:
    with ModelResponsesServer() as server:
        server.closes_connections = True
        yield server


@pytest.fixture
def thinker(shared_thinker: ModelResponsesServer, app_fixture: AppFixture) -> Iterator[ModelResponsesServer]:
    """The server behind `thinker/` models."""
    shared_thinker.forget()
    app_fixture.models["thinker"] = lambda: OpenAICompatible(shared_thinker.base_url, api="responses", repeats=0)
    app_fixture.made.clear()
    yield shared_thinker
    app_fixture.models.clear()


def thoughts_in(items: list[Body]) -> list[str]:
    return [item["encrypted_content"] for item in items if item["type"] == "reasoning"]


def ask(http: httpx.Client, way: str, said: Any = GO, **fields: Any) -> Body:
    conversation = http.post("/v1/conversations").json()["id"] if way == "conversation" else None
    fields = {"model": MODEL, "tools": [WEATHER], "include": [ENCRYPTED], "reasoning": LOW} | fields
    return respond(http, said, store=way != "items", conversation=conversation, **fields)


@pytest.mark.parametrize("way", WAYS)
def test_reasoning_goes_back_unchanged(http: httpx.Client, thinker: ModelResponsesServer, way: str) -> None:
    asked = ask(http, way)

    answered = resume(http, asked, way, model=MODEL, reasoning=LOW)

    assert types_of(asked) == ["reasoning", "function_call"]
    assert [item["type"] for item in thinker.inputs[-1]] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert text_of(answered) == "get_weather said: sunny"
    assert thinker.stored == []


@pytest.mark.parametrize("way", ["previous_response_id", "conversation"])
def test_reasoning_goes_back_in_later_turns(http: httpx.Client, thinker: ModelResponsesServer, way: str) -> None:
    asked = ask(http, way, "Hello")
    link: Body = {"conversation": asked["conversation"]} if way == "conversation" else {}

    for _ in range(2):
        before = link or {"previous_response_id": asked["id"]}
        asked = respond(http, "And?", model=MODEL, reasoning=LOW, **before)

    assert len(set(thoughts_in(thinker.inputs[-1]))) == 2


STORED = ["conversation", "previous_response_id"]


def thought_twice(name: str) -> list[Body]:
    """Return the items of an answer that reasons before and after its first message."""
    return [
        thought("Well", encrypted=f"early {name}"),
        message("Let me see.", phase="commentary"),
        thought("Hm", item_id="rs_2", encrypted=f"late {name}"),
        message("I will look.", phase="commentary", item_id="msg_2"),
        call("call_1", "get_weather"),
    ]


@pytest.mark.parametrize("way", STORED)
def test_late_reasoning_and_phases_go_back_to_their_places(
    http: httpx.Client, thinker: ModelResponsesServer, way: str
) -> None:
    thinker.script(stream(*thought_twice(way)))

    resume(http, ask(http, way), way, model=MODEL)

    written = [item.get("encrypted_content") or item.get("content") for item in thinker.inputs[-1][1:-2]]
    assert written == [f"early {way}", "Let me see.", f"late {way}", "I will look."]
    assert [item["phase"] for item in thinker.inputs[-1] if "phase" in item] == ["commentary"] * 2


@pytest.mark.parametrize("way", ["items", "references"])
def test_callers_get_the_first_reasoning_only(http: httpx.Client, thinker: ModelResponsesServer, way: str) -> None:
    thinker.script(stream(*thought_twice(way)))

    resume(http, ask(http, way), way, model=MODEL)

    written = [item.get("encrypted_content") or item.get("content") for item in thinker.inputs[-1][1:-2]]
    assert written == [f"early {way}", "Let me see.\n\nI will look."]
    assert [item["phase"] for item in thinker.inputs[-1] if "phase" in item] == ["commentary"]


@pytest.mark.parametrize("way", STORED)
def test_late_reasoning_needs_no_earlier_one(http: httpx.Client, thinker: ModelResponsesServer, way: str) -> None:
    """There is no reasoning item, because the answer began without."""
    late = thought("Hm", item_id="rs_2", encrypted=f"only late {way}")
    thinker.script(stream(message("Let me see."), late, call("call_1", "get_weather")))

    asked = ask(http, way)
    resume(http, asked, way, model=MODEL)

    assert types_of(asked) == ["message", "function_call"]
    assert [item["type"] for item in thinker.inputs[-1][1:-1]] == ["message", "reasoning", "function_call"]


@pytest.mark.parametrize("way", STORED)
def test_a_phase_shows_no_reasoning(http: httpx.Client, thinker: ModelResponsesServer, way: str) -> None:
    thinker.script(stream(message("Hi.", phase="final_answer")))
    answered = ask(http, way, "Hello")
    link = {"conversation": answered["conversation"]} if way == "conversation" else {}

    respond(http, "And?", model=MODEL, **(link or {"previous_response_id": answered["id"]}))

    assert types_of(answered) == ["message"]
    assert [item["phase"] for item in thinker.inputs[-1] if "phase" in item] == ["final_answer"]


def test_every_rendering_of_reasoning_is_the_same(http: httpx.Client, thinker: ModelResponsesServer) -> None:
    """Late reasoning arrives when the item has been shown."""
    conversation = http.post("/v1/conversations").json()["id"]
    thinker.script(stream(*thought_twice("shown")))
    fields: Body = {"model": MODEL, "tools": [WEATHER], "include": [ENCRYPTED], "reasoning": LOW}

    events = follow(http, "go", conversation=conversation, **fields)

    included = {"include": ENCRYPTED}
    response = events[-1]["response"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    read = http.get(f"/v1/responses/{response['id']}", params=included).json()
    listed = http.get(f"/v1/conversations/{conversation}/items", params={**included, "order": "asc"}).json()
    resume(http, response, "conversation", model=MODEL)
    shown = [[item for item in items if item["type"] == "reasoning"] for items in (done, response["output"])]
    stored = [[item for item in items if item["type"] == "reasoning"] for items in (read["output"], listed["data"])]
    assert len(done) == 3
    assert shown[0] == shown[1] == stored[0] == stored[1]
    assert thoughts_in(thinker.inputs[-1]) == ["early shown", "late shown"]


def test_the_input_items_of_a_response_have_the_reasoning_that_was_shown(
    http: httpx.Client, thinker: ModelResponsesServer
) -> None:
    thinker.script(stream(*thought_twice("listed")))
    asked = ask(http, "previous_response_id")
    answered = resume(http, asked, "previous_response_id", model=MODEL)

    listed = http.get(f"/v1/responses/{answered['id']}/input_items", params={"include": ENCRYPTED}).json()["data"]

    assert item_of(asked, "reasoning") in listed


CUT: dict[str, list[Body]] = {
    "reasoning": [thought("T")],
    "call": [thought("T"), call("call_9", "get_weather", '{"ci')],
    "late": [thought("T"), message("Hm."), thought(item_id="rs_2"), call("call_9", "get_weather", '{"ci')],
}


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("way", ["previous_response_id", "conversation", "items"])
def test_a_conversation_goes_on_after_a_cut_answer(
    http: httpx.Client, thinker: ModelResponsesServer, way: str, name: str
) -> None:
    """Reasoning whose following item was cut is not sent back, because servers refuse it."""
    items = [
        {**item, "encrypted_content": f"{way} {name} {item['id']}"} if item["type"] == "reasoning" else item
        for item in CUT[name]
    ]
    thinker.script(stream(*items, status="incomplete", reason="max_output_tokens"))
    cut = ask(http, way, "go")
    fields: Body = {"previous_response_id": cut["id"]} if way == "previous_response_id" else {}
    fields |= {"conversation": cut["conversation"]} if way == "conversation" else {}
    said = [user("go"), *cut["output"], user("And?")] if way == "items" else "And?"

    answered = respond(http, said, model=MODEL, tools=[WEATHER], reasoning=LOW, **fields)

    assert text_of(answered) == "You said: And?"
    assert thoughts_in(thinker.inputs[-1]) == ([f"{way} late rs_1"] if name == "late" else [])


def test_a_conversation_goes_on_after_a_call_too_many(http: httpx.Client, thinker: ModelResponsesServer) -> None:
    calls = [call("c1", "get_weather"), call("c2", "get_weather")]
    thinker.script(stream(thought("a", encrypted="p1"), calls[0], thought(item_id="rs_2", encrypted="p2"), calls[1]))
    asked = ask(http, "previous_response_id", parallel_tool_calls=False)

    answered = resume(http, asked, "previous_response_id", model=MODEL)

    assert text_of(answered) == "get_weather said: sunny"
    assert thoughts_in(thinker.inputs[-1]) == ["p1"]


@pytest.mark.parametrize("way", WAYS)
def test_another_model_of_the_server_does_not_get_it(
    http: httpx.Client, thinker: ModelResponsesServer, way: str
) -> None:
    answered = resume(http, ask(http, way), way, model="thinker/another")

    assert thoughts_in(thinker.inputs[-1]) == []
    assert text_of(answered) == "get_weather said: sunny"


@pytest.mark.parametrize("way", WAYS)
def test_another_provider_does_not_get_it(
    http: httpx.Client, thinker: ModelResponsesServer, chat: ChatCompletionsServer, way: str
) -> None:
    asked = ask(http, way)

    answered = resume(http, asked, way, model="openai/m")

    assert "gAAAA" not in str(chat.bodies)
    assert text_of(answered) == "get_weather said: sunny"
    back = resume(http, asked, "items", model=MODEL, reasoning=LOW)
    assert text_of(back) == "get_weather said: sunny"


def test_reasoning_is_streamed_as_a_summary(http: httpx.Client, thinker: ModelResponsesServer) -> None:
    thinker.script(stream(thought("First", "Then", encrypted="streamed"), message("So it is.")))

    events = follow(http, "go", model=MODEL, include=[ENCRYPTED], reasoning=LOW)

    deltas = [event["delta"] for event in events if event["type"] == "response.reasoning_summary_text.delta"]
    assert "".join(deltas) == "First\n\nThen"
    assert "output_text.delta" in kinds(events)
    item = item_of(events[-1]["response"], "reasoning")
    assert item["encrypted_content"]
    assert "streamed" not in item["encrypted_content"]


def test_a_phase_without_reasoning_makes_no_visible_summary(http: httpx.Client, thinker: ModelResponsesServer) -> None:
    thinker.script(stream(message("It is.", phase="final_answer")))

    response = respond(http, "go", model=MODEL)

    assert text_of(response) == "It is."
    assert [item.get("summary", []) for item in response["output"] if item["type"] == "reasoning"] in ([], [[]])
    respond(http, "And?", model=MODEL, previous_response_id=response["id"])
    assert thinker.inputs[-1][1] == {
        "type": "message",
        "role": "assistant",
        "content": "It is.",
        "phase": "final_answer",
    }


def test_what_a_caller_changed_is_refused(http: httpx.Client, thinker: ModelResponsesServer) -> None:
    asked = ask(http, "items")
    item = item_of(asked, "reasoning")
    item["encrypted_content"] = item["encrypted_content"][:-8] + "AAAAAAAA"
    sent = len(thinker.requests)

    answer = http.post(
        "/v1/responses", json={"model": MODEL, "input": [user("go"), item, *asked["output"][1:]], "store": False}
    )

    assert answer.status_code == 400
    assert len(thinker.requests) == sent
