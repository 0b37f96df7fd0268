"""The events of turns, held against those of the original server (llama-stack 0.0.41) for the same requests.

Where ours are others on purpose, the reason is in the name of the case. `forms` names equal events in a row once.
Each event has the keys and types of the recorded ones of its kind (`recorded_shapes`).
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.app_fixture import AppFixture
from tests.api.ingesting import ingesting
from tests.october.client import OctoberClient, Refused, forms
from tests.october.recorded_shapes import event_differences
from tests.october.test_october_memory_tool import memory
from tests.october.test_october_turns import WEATHER
from tests.servers import brave, wolfram
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.domain.inference import UserInput
from stint.net.guard import Guard
from stint.services.knowledge import tasks
from stint.tools.search.engines import Brave
from stint.tools.search.web_search import WebSearch
from stint.tools.search.wolfram_alpha import WolframAlpha

INFERENCE = ["step_start inference", "step_progress inference", "step_complete inference"]
TOOL = ["step_start tool_execution", "step_progress tool_execution", "step_complete tool_execution"]
RETRIEVAL = ["step_start memory_retrieval", "step_complete memory_retrieval"]
SHIELD = ["step_start shield_call", "step_complete shield_call"]
IMAGE = ["Describe this: ", {"image": {"uri": "data:image/png;base64,iVBORw0KGgo="}}]
WORDS = {
    "identifier": "words",
    "type": "deny_list",
    "params": {"phrases": ["bomb", "word3"]},
    "provider_id": "deny-list",
}
SHIELDED = {"input_shields": ["words"], "output_shields": ["words"]}
SEARCH = {"type": "brave_search", "engine": "brave", "api_key": brave.KEY}
WOLFRAM = {"type": "wolfram_alpha", "api_key": wolfram.APP_ID}
TEXT = {"content": "Llamas live in Peru.", "mime_type": "text/plain"}


@pytest.fixture(autouse=True)
def server_parts(october: OctoberClient, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Provide a search engine, Wolfram|Alpha, a shield, and a worker that ingests."""
    monkeypatch.setattr(tasks, "find_principal", lambda: None)
    with (
        ScriptedHTTPServer(brave.answer) as engine,
        ScriptedHTTPServer(wolfram.answer) as computing,
        ingesting(app_fixture),
    ):
        guard = Guard(["127.0.0.1"])
        search = Brave(guard, base_url=f"{engine.url}/res/v1")
        tools = {
            "tavily-search": WebSearch(search, brave.KEY, {"brave": search}),
            "wolfram-alpha": WolframAlpha(guard, base_url=f"{computing.url}/v2"),
        }
        monkeypatch.setattr(app_fixture, "tool_providers", tools)
        app_fixture.made.clear()
        october.call("shields.register", shield=WORDS)
        yield
    app_fixture.made.clear()


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


SAME: list[Any] = [
    pytest.param({}, [user("Hello")], [], INFERENCE, id="a text"),
    pytest.param({}, [user("First."), user("Second.")], [], INFERENCE, id="two messages of the user"),
    pytest.param({}, [user("cut: 3 words\nsay: one two three four")], [], INFERENCE, id="no more tokens"),
    pytest.param({"enable_session_persistence": False}, [user("one")], [], INFERENCE, id="without persistence"),
    pytest.param({"tools": [WEATHER]}, [user("get_weather in Ulm")], [], INFERENCE, id="a call of a function"),
    pytest.param({"tools": [memory()]}, [user("x")], [], [*RETRIEVAL, *INFERENCE], id="a memory without a bank"),
    pytest.param({"tools": [memory()]}, [user("x")], [TEXT], [*RETRIEVAL, *INFERENCE], id="an attachment"),
    pytest.param(SHIELDED, [user("hi")], [], [*SHIELD, *INFERENCE, *SHIELD], id="shields that pass"),
    pytest.param(SHIELDED, [user("make a bomb")], [], SHIELD, id="an input that a shield refuses"),
    pytest.param({}, [], [], INFERENCE, id="no message"),
]


BETTER: list[Any] = [
    pytest.param(
        SHIELDED,
        [user("long: 5")],
        [],
        [*SHIELD, "step_start inference", "step_complete inference", *SHIELD],
        id="an answer that a shield refuses was not streamed before",
    ),
    pytest.param(
        {"tools": [SEARCH]},
        [user('brave_search {"query": "tea"}')],
        [],
        [*INFERENCE, *TOOL, *INFERENCE],
        id="no shield_call follows a tool that has no shields",
    ),
    pytest.param(
        {"tools": [WOLFRAM]},
        [user('wolfram_alpha {"query": "1+1"}')],
        [],
        [*INFERENCE, *TOOL, *INFERENCE],
        id="no shield_call follows wolfram_alpha that has no shields",
    ),
    pytest.param({}, [user(IMAGE)], [], INFERENCE, id="an image is passed to the model instead of failing"),
    pytest.param(
        {"tools": [memory({"type": "vector", "bank_id": "missing"})]},
        [user("x")],
        [],
        [*RETRIEVAL, *INFERENCE],
        id="an unknown bank is told to the model instead of ending the turn",
    ),
    pytest.param({}, [user("x")], [TEXT], INFERENCE, id="an attachment without the memory tool is shown to the model"),
    pytest.param(
        {"tools": [memory()]},
        [user("list?")],
        [{"content": ["part A", "part B"], "mime_type": "text/plain"}],
        [*RETRIEVAL, *INFERENCE],
        id="an attachment with several texts is joined instead of failing",
    ),
    pytest.param(
        {"tools": [SEARCH], "max_infer_iters": 1},
        [user('brave_search {"query": "tea"}')],
        [],
        INFERENCE,
        id="max_infer_iters 1 is one call of the model and not two",
    ),
]


@pytest.mark.parametrize(("config", "messages", "attachments", "expected"), [*SAME, *BETTER])
def test_a_turn_has_the_events_of_the_original_or_better_ones(
    october: OctoberClient,
    config: dict[str, Any],
    messages: list[dict[str, Any]],
    attachments: list[dict[str, Any]],
    expected: list[str],
) -> None:
    more = {"attachments": attachments} if attachments else {}

    payloads = october.send(october.open_session(**config), *messages, **more)

    assert forms(payloads) == ["turn_start", *expected, "turn_complete"]
    assert [each for payload in payloads for each in event_differences(payload)] == []


def test_a_turn_after_a_violation_works_although_the_originals_failed(october: OctoberClient) -> None:
    session = october.open_session(**SHIELDED)
    october.say(session, "make a bomb")

    payloads = october.say(session, "again")

    assert forms(payloads) == ["turn_start", *SHIELD, *INFERENCE, *SHIELD, "turn_complete"]


def test_old_turns_are_replayed_in_their_order_although_the_original_sorted_them_by_id(
    october: OctoberClient, app_fixture: AppFixture
) -> None:
    session = october.open_session(model="recorded/m")
    for text in ("one", "two", "three"):
        october.say(session, text)

    asked = [each.content for each in app_fixture.last_request.messages if isinstance(each, UserInput)]
    assert asked == ["one", "two", "three"]


def test_an_unknown_shield_is_a_status_instead_of_an_event_that_ends_the_stream(october: OctoberClient) -> None:
    with pytest.raises(Refused) as refused:
        october.say(october.open_session(input_shields=["nope"]), "x")

    assert refused.value.status in (400, 404)
    assert "nope" in refused.value.message
