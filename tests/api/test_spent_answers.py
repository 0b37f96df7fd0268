"""The end of an answer whose money is spent, in each API, and what a limit of money refuses."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session
from tests.api.app_fixture import AppFixture
from tests.clock import CLOCK
from tests.script_model import Script, said, script

from stint.domain.inference import Finished, FinishReason, InferenceRequest, TextChunk, Usage
from stint.models.port import CountNeedsAnswer

DOLLARS = 0.02
PRICES = {"scripted/*": {"input": 0, "output": 10}}
"""A limit of 2,000 tokens. The answer is much longer."""
LONG = "long: 20000 words"
MESSAGES = [{"role": "user", "content": LONG}]
CHAT = {"model": "scripted/demo", "messages": MESSAGES}
LLAMA = {"model_id": "scripted/demo", "messages": MESSAGES}


@pytest.fixture
def limit(app_fixture: AppFixture) -> Iterator[Any]:
    """Limit the money of the test's tenant at given prices, and stop the clock."""
    before = app_fixture.settings

    def set_limits(prices: dict[str, Any] = PRICES, **budgets: float) -> None:
        tenants = json.dumps({app_fixture.tenant: {"budgets": budgets or {"dollars_per_month": DOLLARS}}})
        changed = {"tenants": tenants, "prices": json.dumps(prices)}
        app_fixture.settings = before.model_copy(update=changed)
        app_fixture.made.pop(app_fixture.tenant, None)

    with CLOCK.stop():
        yield set_limits
    app_fixture.settings, app_fixture.models = before, {}


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    lines = (line[6:] for line in answer.text.splitlines() if line.startswith("data: "))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def spent(app_fixture: AppFixture) -> int:
    """Return the microdollars of the tenant's counter."""
    key = {"pk": {"S": f"{app_fixture.tenant}#budget:tenant"}}
    table = app_fixture.settings.table
    [item] = app_fixture.dynamodb.query(
        TableName=table, KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": key["pk"]}
    )["Items"]
    return int(item["microdollars"]["N"])


def test_a_response_is_incomplete_because_of_its_budget(
    http: httpx.Client, limit: Any, app_fixture: AppFixture
) -> None:
    limit()

    body = http.post("/v1/responses", json={"model": "scripted/demo", "input": LONG}).json()

    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "budget"})
    assert body["output"][0]["status"] == "incomplete"
    assert 0 < body["usage"]["output_tokens"] <= 2_000 + 2_000
    assert DOLLARS * 1e6 <= spent(app_fixture) <= 2 * DOLLARS * 1e6
    assert http.get(f"/v1/responses/{body['id']}").json()["incomplete_details"] == {"reason": "budget"}


def test_a_streamed_response_ends_with_the_event_of_an_incomplete_one(http: httpx.Client, limit: Any) -> None:
    limit()

    events = events_of(http.post("/v1/responses", json={"model": "scripted/demo", "input": LONG, "stream": True}))

    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "budget"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"), [("/v1/chat/completions", CHAT), ("/v1/completions", {"model": "scripted/demo", "prompt": LONG})]
)
def test_a_completion_ends_with_length(
    http: httpx.Client, limit: Any, path: str, body: dict[str, Any], stream: bool
) -> None:
    limit()

    answer = http.post(path, json=body | {"stream": stream})

    ends = [each["choices"][0]["finish_reason"] for each in (events_of(answer) if stream else [answer.json()])]
    assert ends[-1] == "length"


def test_an_answer_of_llama_stacks_inference_is_out_of_tokens(http: httpx.Client, limit: Any) -> None:
    limit()

    body = http.post("/v1/inference/chat-completion", json=LLAMA).json()

    assert body["completion_message"]["stop_reason"] == "out_of_tokens"


def test_a_turn_is_out_of_tokens(http: httpx.Client, limit: Any) -> None:
    limit()
    session = open_session(http)

    turn = http.post(f"{session}/turn", json={"messages": MESSAGES}).json()

    assert turn["output_message"]["stop_reason"] == "out_of_tokens"
    refused = http.post(f"{session}/turn", json={"messages": MESSAGES})
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "insufficient_quota")


def test_a_limit_of_the_request_is_no_end_by_budget(http: httpx.Client, limit: Any) -> None:
    limit()

    body = http.post("/v1/responses", json={"model": "scripted/demo", "input": LONG, "max_output_tokens": 50}).json()

    assert body["incomplete_details"] == {"reason": "max_output_tokens"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES}),
        ("/v1/responses", {"input": LONG}),
        ("/v1/completions", {"prompt": LONG}),
    ],
)
def test_a_model_without_a_price_is_refused_by_name(
    http: httpx.Client, limit: Any, path: str, body: dict[str, Any], app_fixture: AppFixture
) -> None:
    limit({"openai/fake-model": {"input": 1, "output": 1}})
    app_fixture.models = {"openai": lambda: script(said())}

    refused = http.post(path, json=body | {"model": "openai/Fake-model"})

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_without_price")
    assert "'openai/Fake-model' has no price" in refused.json()["error"]["message"]


def test_a_cheaper_call_needs_less_than_the_dearest_models(http: httpx.Client, limit: Any) -> None:
    """Less than a call of the dearest model is enough for other models, and for requests without a model."""
    limit({"openai/dear": {"input": 1_000, "output": 100_000, "image": 100}, **PRICES})

    answer = http.post("/v1/responses", json={"model": "scripted/demo", "input": "say: Hi"})
    store = http.post("/v1/vector_stores", json={"name": "s"})
    found = http.post(f"/v1/vector_stores/{store.json()['id']}/search", json={"query": "x"})

    assert [each.status_code for each in (answer, store, found)] == [200, 200, 200]


def test_a_call_that_costs_more_than_is_left_says_what_is_left(http: httpx.Client, limit: Any) -> None:
    limit({"scripted/*": {"input": 10_000, "output": 10}})

    refused = http.post("/v1/responses", json={"model": "scripted/demo", "input": "say: " + "Hi " * 400})

    assert refused.status_code == 402
    assert "dollars left of its 0.02 dollars of this month" in refused.json()["error"]["message"]
    assert "spent" not in refused.json()["error"]["message"]


def test_tokens_that_a_provider_counts_by_an_answer_are_paid_for(
    http: httpx.Client, limit: Any, app_fixture: AppFixture
) -> None:
    class Uncounted(Script):
        async def count_tokens(self, request: InferenceRequest) -> int:
            raise CountNeedsAnswer("It has no way to count.")

    limit({"openai/known": {"input": 1_000, "output": 1_000}}, dollars_per_month=1)
    used = Usage(input_tokens=7, output_tokens=1, total_tokens=8)
    app_fixture.models = {"openai": lambda: Uncounted([[TextChunk("a"), Finished(FinishReason.length, used)]] * 2)}

    counted = http.post("/v1/responses/input_tokens", json={"model": "openai/known", "input": "Hello"})
    refused = http.post("/v1/responses/input_tokens", json={"model": "openai/unknown", "input": "Hello"})

    assert counted.json()["input_tokens"] == 7
    assert 8_000 <= spent(app_fixture) < 8_500
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_without_price")
