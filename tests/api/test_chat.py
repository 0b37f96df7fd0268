"""Chat completions over HTTP, and by the unmodified openai client."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from openai import APIError, BadRequestError, InternalServerError, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from pydantic import BaseModel
from tests.api.api_client import assert_error, post_silent
from tests.api.app_fixture import AppFixture, Served
from tests.servers.chat_completions import ChatCompletionsServer
from tests.store.tenant_records import read_records

from stint.domain.inference import AssistantAnswer, ToolResult, UserInput

CHAT = "/v1/chat/completions"
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Plan(BaseModel):
    day: str
    hours: int


@pytest.fixture
def openai(server: Served) -> Iterator[OpenAI]:
    """The real client, without its retries."""
    http = httpx2.Client(trust_env=False)
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, http_client=http) as client:
        yield client


def says(words: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": words}]


def ask(http: httpx.Client, words: str, model: str = "scripted/demo", **fields: Any) -> httpx.Response:
    return http.post(CHAT, json={"model": model, "messages": says(words)} | fields)


def data_of(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    events = response.text.split("\n\n")
    assert events.pop() == ""
    return [event.removeprefix("data: ") for event in events if not event.startswith(":")]


def complete(client: OpenAI, words: str, **fields: Any) -> ChatCompletion:
    completion: ChatCompletion = client.chat.completions.create(model="recorded/m", messages=says(words), **fields)
    return completion


def test_the_client_gets_a_completion(openai: OpenAI, app_fixture: AppFixture) -> None:
    completion = complete(openai, "say: Hello there", metadata={"topic": "plums"})

    assert completion.id.startswith("chatcmpl_")
    assert (completion.object, completion.model) == ("chat.completion", "recorded/m")
    assert abs(completion.created - time.time()) < 60
    choice = completion.choices[0]
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", "Hello there", "stop")
    assert completion.usage
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    assert app_fixture.last_request.messages == (UserInput("say: Hello there"),)


def test_the_client_gets_a_stream_that_says_the_same(openai: OpenAI) -> None:
    whole = complete(openai, "think: hm\nsay: Hello there")
    with openai.chat.completions.create(
        model="recorded/m",
        messages=says("think: hm\nsay: Hello there"),
        stream=True,
        stream_options={"include_usage": True},
    ) as stream:
        chunks = list(stream)

    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "Hello there"
    thoughts = [getattr(choice.delta, "reasoning_content", "") for chunk in chunks for choice in chunk.choices]
    assert "".join(thoughts) == getattr(whole.choices[0].message, "reasoning_content", None) == "hm"
    assert chunks[-1].usage == whole.usage
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_client_runs_a_tool_and_goes_on(openai: OpenAI, app_fixture: AppFixture) -> None:
    messages = says("Please get_weather of Bern")
    with openai.chat.completions.stream(model="recorded/m", messages=messages, tools=[WEATHER]) as stream:
        asked = stream.get_final_completion().choices[0]
    [call] = asked.message.tool_calls or []
    question: Any = asked.message
    result: ChatCompletionMessageParam = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    final = openai.chat.completions.create(model="recorded/m", messages=[*messages, question, result], tools=[WEATHER])

    assert asked.finish_reason == "tool_calls"
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Bern"})
    assert final.choices[0].message.content == "get_weather answered: rain"
    [_, answer, answered] = app_fixture.last_request.messages
    assert isinstance(answer, AssistantAnswer)
    assert isinstance(answered, ToolResult)
    assert answer.tool_calls[0].call_id == answered.call_id == call.id


def test_the_client_parses_an_answer_of_a_schema(openai: OpenAI, app_fixture: AppFixture) -> None:
    completion = openai.chat.completions.parse(
        model="recorded/m", messages=says("Work 3 on monday"), response_format=Plan
    )

    plan = completion.choices[0].message.parsed
    assert plan
    assert plan.hours == 3
    assert app_fixture.last_request.response_format


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("words", "fields", "finish"),
    [
        ("say: one two three", {"max_completion_tokens": 2}, "length"),
        ("say: one two three\nfilter: after 1 words", {}, "content_filter"),
        ("call: get_weather {}", {"tools": [WEATHER]}, "tool_calls"),
        ("say: one two three", {"stop": [" two"]}, "stop"),
    ],
)
def test_the_reason_of_the_end_is_told(
    http: httpx.Client, words: str, fields: dict[str, Any], finish: str, stream: bool
) -> None:
    response = ask(http, words, stream=stream, **fields)

    if stream:
        *chunks, done = data_of(response)
        assert done == "[DONE]"
        choice = json.loads(chunks[-1])["choices"][0]
    else:
        choice = response.json()["choices"][0]
    assert choice["finish_reason"] == finish


def test_a_real_provider_is_asked_what_was_asked_here(openai: OpenAI, chat: ChatCompletionsServer) -> None:
    completion = openai.chat.completions.create(
        model="openai/gpt",
        messages=[
            {"role": "system", "content": "Be brief.", "name": "editor"},
            {"role": "user", "content": "hello", "name": "Ann"},
        ],
        temperature=0.5,
        presence_penalty=1.0,
        frequency_penalty=-1.0,
        seed=7,
        stop=["end"],
        reasoning_effort="low",
        verbosity="high",
        response_format={"type": "json_object"},
        tools=[WEATHER],
        tool_choice="required",
        parallel_tool_calls=False,
    )

    body = chat.bodies[-1]
    assert completion.choices[0].message.content == "You said: hello"
    assert {name: body[name] for name in ("model", "temperature", "seed", "stop", "tool_choice")} == {
        "model": "gpt",
        "temperature": 0.5,
        "seed": 7,
        "stop": ["end"],
        "tool_choice": "required",
    }
    assert (body["presence_penalty"], body["frequency_penalty"], body["reasoning_effort"]) == (1.0, -1.0, "low")
    assert (body["parallel_tool_calls"], body["verbosity"]) == (False, "high")
    assert body["response_format"] == {"type": "json_object"}
    assert body["tools"][0]["function"]["name"] == "get_weather"
    assert body["messages"] == [
        {"role": "system", "content": "Be brief.", "name": "editor"},
        {"role": "user", "content": "hello", "name": "Ann"},
    ]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"temperature": 3}, "temperature"),
        ({"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}, "messages[0].tool_call_id"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_is_not_offered_is_refused_by_its_name(
    http: httpx.Client, fields: dict[str, Any], param: str, stream: bool
) -> None:
    response = ask(http, "hi", **{"stream": stream} | fields)

    assert assert_error(response, 400, "invalid_request")["param"] == param


@pytest.mark.parametrize("stream", [True, False])
def test_an_unknown_model_is_refused_before_the_stream(openai: OpenAI, stream: bool) -> None:
    with pytest.raises(BadRequestError) as caught:
        openai.chat.completions.create(model="nowhere", messages=says("hi"), stream=stream)

    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_an_image_at_a_forbidden_place_is_refused(http: httpx.Client) -> None:
    content = [{"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}]

    response = http.post(CHAT, json={"model": "scripted/demo", "messages": [{"role": "user", "content": content}]})

    assert assert_error(response, 400, "url_not_allowed")["param"] == "messages[0].content[0].image_url.url"


@pytest.mark.parametrize("stream", [True, False])
def test_a_model_that_fails_before_its_first_word_has_a_status(openai: OpenAI, stream: bool) -> None:
    with pytest.raises(InternalServerError) as failed:
        openai.chat.completions.create(model="scripted/demo", messages=says("fail: before"), stream=stream)
    with pytest.raises(InternalServerError) as overloaded:
        openai.chat.completions.create(model="scripted/demo", messages=says("fail: overloaded"), stream=stream)
    with pytest.raises(BadRequestError) as long:
        openai.chat.completions.create(model="scripted/demo", messages=says("fail: context"), stream=stream)
    with pytest.raises(InternalServerError) as crashed:
        openai.chat.completions.create(model="faulty/crash", messages=says("hi"), stream=stream)

    assert (failed.value.status_code, failed.value.code) == (502, "model_error")
    assert (overloaded.value.status_code, overloaded.value.response.headers["retry-after"]) == (503, "1")
    assert long.value.code == "context_length_exceeded"
    assert (crashed.value.status_code, crashed.value.code) == (500, "server_error")


def test_a_model_that_fails_behind_its_first_word_ends_the_stream_with_an_error(
    openai: OpenAI, http: httpx.Client
) -> None:
    words: list[str] = []
    said = "say: one two three\nfail: after 2 words"

    def read() -> None:
        for chunk in openai.chat.completions.create(model="scripted/demo", messages=says(said), stream=True):
            words.extend(choice.delta.content or "" for choice in chunk.choices)

    with pytest.raises(APIError, match="failed after 2 words") as caught:
        read()
    *_, error, done = data_of(ask(http, said, stream=True))

    assert "".join(words) == "one two "
    assert caught.value.code == json.loads(error)["error"]["code"] == "model_error"
    assert done == "[DONE]"


def test_a_silent_model_is_waited_for_with_signs_of_life(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"model": "faulty/slow", "messages": says("Hello")}

    streamed = post_silent(http, app_fixture, CHAT, body | {"stream": True})
    app_fixture.faulty.silence.clear()
    buffered = post_silent(http, app_fixture, CHAT, body)

    assert streamed.text.startswith(": keep-alive\n\n")
    assert data_of(streamed)[-1] == "[DONE]"
    assert buffered.text.startswith(" ")
    assert buffered.json()["choices"][0]["message"]["content"] == "awake"


def test_a_silent_model_that_fails_says_so_although_the_status_has_left(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    body = {"model": "faulty/slow-failure", "messages": says("Hello")}

    streamed = post_silent(http, app_fixture, CHAT, body | {"stream": True})
    app_fixture.faulty.silence.clear()
    buffered = post_silent(http, app_fixture, CHAT, body)

    [error, done] = data_of(streamed)
    assert json.loads(error)["error"]["message"] == "the model gave up"
    assert done == "[DONE]"
    assert buffered.json()["error"]["message"] == "the model gave up"
    assert buffered.json()["choices"] == []


def test_line_breaks_that_some_readers_know_do_not_break_an_event(http: httpx.Client) -> None:
    chunks = data_of(ask(http, "hi", model="faulty/line-breaks", stream=True))[:-1]

    assert all(len(chunk.splitlines()) == 1 for chunk in chunks)
    texts = [choice["delta"].get("content", "") for chunk in chunks for choice in json.loads(chunk)["choices"]]
    assert "".join(texts) == "one\u2028two\u0085three\u2029four\nfive\rsix"


def test_nothing_is_stored(http: httpx.Client, app_fixture: AppFixture) -> None:
    assert ask(http, "hi").status_code == 200

    assert read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant) == []


@pytest.mark.parametrize("top", [None, 0, 1])
def test_log_probabilities_are_whole_and_in_chunks(openai: OpenAI, http: httpx.Client, top: int | None) -> None:
    whole = complete(openai, "say: Hello there", logprobs=True, top_logprobs=top).choices[0].logprobs
    chunks = [json.loads(each) for each in data_of(ask(http, "say: Hi", logprobs=True, stream=True))[:-1]]

    assert whole
    assert whole.content
    assert [(each.token, each.logprob, bytes(each.bytes or [])) for each in whole.content] == [
        ("Hello ", 0.0, b"Hello "),
        ("there", 0.0, b"there"),
    ]
    assert [len(each.top_logprobs) for each in whole.content] == [top or 0] * 2
    scores = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    assert [score and score["content"][0]["token"] for score in scores] == [None, "Hi", None]


def test_top_logprobs_need_logprobs(http: httpx.Client) -> None:
    assert_error(ask(http, "say: Hi", top_logprobs=1), 400, "invalid_request")
    assert ask(http, "say: Hi", top_logprobs=0).json()["choices"][0]["logprobs"] is None
