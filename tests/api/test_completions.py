"""OpenAI's text completions over HTTP, and by the unmodified clients of OpenAI and Llama Stack."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from llama_stack_client import LlamaStackClient
from openai import OpenAI
from tests.api.app_fixture import AppFixture, Served

from stint.domain.inference import Decoding, UserInput

COMPLETIONS = "/v1/completions"


@pytest.fixture
def openai(server: Served) -> Iterator[OpenAI]:
    """The real client, without its retries."""
    http = httpx2.Client(trust_env=False)
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, http_client=http) as client:
        yield client


def ask(http: httpx.Client, prompt: Any, **fields: Any) -> httpx.Response:
    return http.post(COMPLETIONS, json={"model": "recorded/m", "prompt": prompt} | fields)


def texts_of(chunks: list[Any]) -> dict[int, str]:
    texts: dict[int, str] = defaultdict(str)
    for chunk in chunks:
        for choice in chunk["choices"]:
            texts[choice["index"]] += choice["text"]
    return texts


def chunks_of(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    *events, done, end = response.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events if not event.startswith(":")]


def test_the_client_gets_a_completion(openai: OpenAI, app_fixture: AppFixture) -> None:
    completion = openai.completions.create(
        model="recorded/m", prompt="say: Hello there", max_tokens=9, temperature=0.5, top_p=0.9, stop="!", seed=3
    )

    assert completion.id.startswith("cmpl_")
    assert (completion.object, completion.model) == ("text_completion", "recorded/m")
    [choice] = completion.choices
    assert (choice.text, choice.index, choice.finish_reason, choice.logprobs) == ("Hello there", 0, "stop", None)
    assert completion.usage
    assert completion.usage.total_tokens == 5
    assert app_fixture.last_request.messages == (UserInput("say: Hello there"),)
    assert app_fixture.last_request.decoding == Decoding(0.5, 0.9, None, 9, stop=("!",), seed=3)


def test_the_client_gets_a_stream_that_says_the_same(openai: OpenAI) -> None:
    with openai.completions.create(
        model="recorded/m", prompt="say: Hello there", stream=True, stream_options={"include_usage": True}
    ) as stream:
        *chunks, last = list(stream)

    assert "".join(chunk.choices[0].text for chunk in chunks) == "Hello there"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, "stop"]
    assert last.choices == []
    assert last.usage
    assert last.usage.total_tokens == 5
    assert len({chunk.id for chunk in [*chunks, last]}) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_each_prompt_has_n_choices_in_order(http: httpx.Client, app_fixture: AppFixture, stream: bool) -> None:
    response = ask(http, ["say: one two", "say: three"], n=2, best_of=2, echo=True, stream=stream)

    texts = texts_of(chunks_of(response) if stream else [response.json()])
    assert [texts[index] for index in range(4)] == ["say: one twoone two"] * 2 + ["say: threethree"] * 2
    assert len(app_fixture.recorder.requests) == 4
    if not stream:
        assert response.json()["usage"]["completion_tokens"] == 6


def test_a_token_limit_and_a_filter_are_the_reason_of_the_end(http: httpx.Client) -> None:
    limited = ask(http, "say: one two three", max_tokens=1).json()["choices"][0]
    filtered = ask(http, "say: one two\nfilter: after 1 words").json()["choices"][0]

    assert (limited["text"], limited["finish_reason"]) == ("one ", "length")
    assert filtered["finish_reason"] == "content_filter"


def test_llama_stacks_client_gets_a_completion(client: LlamaStackClient) -> None:
    whole = client.completions.create(model="recorded/m", prompt="say: Hello there", logprobs=False)
    chunks = list(client.completions.create(model="recorded/m", prompt="say: Hello there", stream=True))

    assert (whole.choices[0].text, whole.choices[0].finish_reason) == ("Hello there", "stop")
    assert "".join(chunk.choices[0].text for chunk in chunks) == "Hello there"


@pytest.mark.parametrize("stream", [True, False])
def test_one_failure_fails_all(http: httpx.Client, stream: bool) -> None:
    failed = ask(http, ["slow: 60", "fail: throttled"], stream=stream)

    assert (failed.status_code, failed.json()["error"]["code"]) == (429, "rate_limit_exceeded")


def test_a_failure_in_a_stream_is_its_last_chunk(http: httpx.Client) -> None:
    *_, last = chunks_of(ask(http, "fail: after 1 words\nsay: one two", stream=True))

    assert last["error"]["code"] == "model_error"


@pytest.mark.parametrize(
    ("fields", "param", "part"),
    [
        ({"prompt": []}, "prompt", "at least 1"),
        ({"prompt": None}, "prompt", ""),
        ({"prompt": [1, 2]}, "prompt", "Tokens are not supported"),
        ({"prompt": [[1], [2]]}, "prompt", "Tokens are not supported"),
        ({"prompt": ["a"] * 21}, "prompt", "at most 20"),
        ({"prompt": ["a"] * 3, "n": 7}, "body", "At most 20 completions"),
        ({"n": 0}, "n", "greater than or equal to 1"),
        ({"best_of": 2}, "body", "best_of is only supported if it is n"),
        ({"suffix": "end"}, "suffix", "before a suffix"),
        ({"logprobs": 1}, "logprobs", "/chat/completions"),
        ({"logit_bias": {"1": 1}}, "logit_bias", "logit_bias"),
        ({"guided_choice": ["a"]}, "guided_choice", "response_format"),
        ({"prompt_logprobs": 1}, "prompt_logprobs", "log probabilities"),
        ({"stream": "true"}, "stream", "boolean"),
        ({"model": "nowhere"}, "model", "does not exist"),
    ],
)
def test_a_bad_request_is_an_error_that_names_its_field(
    http: httpx.Client, fields: dict[str, Any], param: str, part: str
) -> None:
    refused = http.post(COMPLETIONS, json={"model": "recorded/m", "prompt": "say: Hi"} | fields)

    assert refused.status_code == 400
    assert refused.json()["error"]["param"].partition("[")[0] == param
    assert part in refused.json()["error"]["message"]
