"""The use of a provider's cache in the answers of each API, with STINT_HIDE_CACHED_TOKENS and without."""

import re
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session
from tests.api.app_fixture import AppFixture

from stint.domain.inference import Finished, FinishReason, InferenceRequest, ModelChunk, TextChunk, Usage

MODEL = "cached/m"
USED = Usage(
    input_tokens=2_000,
    output_tokens=10,
    total_tokens=2_010,
    cached_tokens=1_500,
    cache_write_tokens=300,
    cache_write_1h_tokens=100,
)
PRICES = '{"cached/*": {"input": 3, "cached_input": 0.3, "output": 15}}'
TOLD = re.compile(r'"(?:cache\w*_tokens": ?[1-9]|(?:model_)?dollars": ?\d)')
"""Counts of a cache, and dollars, which tell them."""

MESSAGE = {"role": "user", "content": "Hello " * 1_500}


class Cached:
    """A model whose provider read a part of the input from its cache."""

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return len(request.messages)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        yield TextChunk("Hi")
        yield Finished(FinishReason.stop, USED)


@pytest.fixture
def hide(app_fixture: AppFixture) -> Iterator[Callable[[bool], None]]:
    """Return a function that lets the test's tenant hide the use of a cache, or show it."""
    before = app_fixture.settings
    app_fixture.models = {"cached": Cached}

    def set_hidden(hidden: bool) -> None:
        chosen = {"hide_cached_tokens": hidden, "usage_sums": True, "prices": PRICES}
        app_fixture.settings = before.model_copy(update=chosen)
        app_fixture.made.pop(app_fixture.tenant, None)

    yield set_hidden
    app_fixture.settings, app_fixture.models = before, {}
    app_fixture.made.pop(app_fixture.tenant, None)


def texts_of(http: httpx.Client, app_fixture: AppFixture) -> dict[str, str]:
    """Send a request to each API that shows usage, and return the texts of their answers."""

    def post(path: str, **body: Any) -> httpx.Response:
        answer = http.post(path, json={"model": MODEL} | body)
        assert answer.status_code in (200, 201), answer.text
        return answer

    chat, text = {"messages": [MESSAGE]}, MESSAGE["content"]
    with_usage = {"stream": True, "stream_options": {"include_usage": True}}
    session = open_session(http, model=MODEL)
    turn = post(f"{session}/turn", messages=[MESSAGE])
    streamed_turn = post(f"{session}/turn", messages=[MESSAGE], stream=True)
    response = post("/v1/responses", input=text)
    streamed = post("/v1/responses", input=text, stream=True)
    background = post("/v1/responses", input=text, background=True).json()["id"]
    app_fixture.work_off()
    stored = post("/v1/chat/completions", store=True, **chat)
    return {
        "turn": turn.text,
        "streamed turn": streamed_turn.text,
        "turn that is read": http.get(f"{session}/turn/{turn.json()['turn_id']}").text,
        "session": http.get(session).text,
        "response": response.text,
        "streamed response": streamed.text,
        "response that is read": http.get(f"/v1/responses/{response.json()['id']}").text,
        "background response": http.get(f"/v1/responses/{background}").text,
        "compaction": post("/v1/responses/compact", input=text).text,
        "chat completion": stored.text,
        "streamed chat completion": post("/v1/chat/completions", **chat, **with_usage).text,
        "stored chat completion": http.get(f"/v1/chat/completions/{stored.json()['id']}").text,
        "list of chat completions": http.get("/v1/chat/completions").text,
        "text completion": post("/v1/completions", prompt=text).text,
        "streamed text completion": post("/v1/completions", prompt=text, **with_usage).text,
        "sums of usage": http.get("/v1/usage").text,
    }


def test_no_api_shows_what_a_cache_was_used_for(
    http: httpx.Client, app_fixture: AppFixture, hide: Callable[[bool], None]
) -> None:
    hide(True)
    texts = texts_of(http, app_fixture)

    assert {name: found[0] for name, text in texts.items() if (found := TOLD.findall(text))} == {}
    assert [name for name, text in texts.items() if "2000" not in text and name != "sums of usage"] == []


def test_each_api_shows_it_by_default(
    http: httpx.Client, app_fixture: AppFixture, hide: Callable[[bool], None]
) -> None:
    hide(False)

    assert [name for name, text in texts_of(http, app_fixture).items() if not TOLD.search(text)] == []


def test_hidden_counts_are_stored_and_priced_as_ever(
    http: httpx.Client, app_fixture: AppFixture, hide: Callable[[bool], None]
) -> None:
    """The operator finds them in the records, and the sums show them once the setting is off again."""
    hide(True)
    response = http.post("/v1/responses", json={"model": MODEL, "input": MESSAGE["content"]}).json()
    assert (response["receipt"]["dollars"], response["receipt"]["infrastructure_dollars"] > 0) == (None, True)
    [hidden] = http.get("/v1/usage").json()["data"]
    hide(False)
    [shown] = http.get("/v1/usage").json()["data"]

    assert (hidden["input_tokens"], hidden["cached_tokens"], hidden["dollars"]) == (2_000, 0, None)
    assert (shown["cached_tokens"], shown["cache_write_tokens"], shown["cache_write_1h_tokens"]) == (1_500, 300, 100)
    paid = (200 * 3 + 1_500 * 0.3 + 200 * 3.75 + 100 * 6 + 10 * 15) / 1e6
    assert shown["dollars"] == pytest.approx(paid, abs=2e-5)


@pytest.mark.parametrize("hidden", [True, False])
def test_the_budget_of_a_conversation_counts_no_cache_where_it_is_hidden(
    http: httpx.Client, hide: Callable[[bool], None], hidden: bool
) -> None:
    """Every caller can set such a budget, and read what is left of it."""
    hide(hidden)
    conversation = http.post("/v1/conversations", json={"budget": {"max_dollars": 1}}).json()["id"]

    http.post("/v1/responses", json={"model": MODEL, "input": MESSAGE["content"], "conversation": conversation})

    spent = http.get(f"/v1/conversations/{conversation}").json()["budget"]["spent_dollars"]
    paid = (200 * 3 + 1_500 * 0.3 + 200 * 3.75 + 100 * 6 + 10 * 15) / 1e6
    assert spent == pytest.approx((2_000 * 3 + 10 * 15) / 1e6 if hidden else paid, abs=2e-5)
