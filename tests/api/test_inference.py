"""Llama Stack's inference over HTTP, and by the unmodified llama-stack-client."""

import json
from typing import Any

import httpx
import pytest
from llama_stack_client import BadRequestError, LlamaStackClient
from tests.api.api_client import assert_error
from tests.api.app_fixture import AppFixture
from tests.servers.chat_completions import ChatCompletionsServer
from tests.store.tenant_records import read_records

from stint.domain.content import items_of
from stint.domain.inference import AssistantAnswer, Decoding, SystemText, ToolResult, UserInput
from stint.domain.tools import ToolChoice

CHAT = "/v1/inference/chat-completion"
COMPLETION = "/v1/inference/completion"
MODEL = "recorded/m"
WEATHER: Any = {
    "tool_name": "get_weather",
    "description": "Returns the weather.",
    "parameters": {"city": {"param_type": "str", "description": "A city.", "required": True}},
}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def says(words: str) -> Any:
    return [{"role": "user", "content": words}]


def ask(http: httpx.Client, words: str, **fields: Any) -> httpx.Response:
    return http.post(CHAT, json={"model_id": "scripted/demo", "messages": says(words)} | fields)


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    *events, end = response.text.split("\n\n")
    assert end == ""
    return [json.loads(event.removeprefix("data: ")) for event in events if not event.startswith(":")]


def test_the_client_gets_an_answer_with_its_token_counts(client: LlamaStackClient, app_fixture: AppFixture) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *says("say: Hello there")]

    answer = client.inference.chat_completion(model_id=MODEL, messages=messages)

    message = answer.completion_message
    assert (message.role, message.content, message.stop_reason) == ("assistant", "Hello there", "end_of_turn")
    assert message.tool_calls == []
    assert [(each.metric, each.value, each.unit) for each in answer.metrics or []] == [
        ("prompt_tokens", 5.0, "tokens"),
        ("completion_tokens", 2.0, "tokens"),
        ("total_tokens", 7.0, "tokens"),
    ]
    assert app_fixture.last_request.messages == (SystemText("Be brief."), UserInput("say: Hello there"))
    assert app_fixture.last_request.decoding == Decoding(temperature=0.0)


def test_an_answer_has_the_fields_of_llama_stack_and_nulls(http: httpx.Client) -> None:
    answer = ask(http, "say: Hello").json()

    assert list(answer) == ["metrics", "completion_message", "logprobs"]
    assert answer["logprobs"] is None
    assert list(answer["completion_message"]) == ["role", "content", "stop_reason", "tool_calls"]


def test_the_client_gets_a_stream_that_says_the_same(client: LlamaStackClient) -> None:
    words = "think: hm\nsay: Hello there"

    chunks = list(client.inference.chat_completion(model_id=MODEL, messages=says(words), stream=True))

    assert [chunk.event.event_type for chunk in chunks] == ["start", "progress", "progress", "complete"]
    texts = [chunk.event.delta.text for chunk in chunks if chunk.event.delta.type == "text"]
    assert texts == ["", "Hello ", "there", ""]
    assert [chunk.event.stop_reason for chunk in chunks] == [None, None, None, "end_of_turn"]
    assert [bool(chunk.metrics) for chunk in chunks] == [False, False, False, True]


def test_a_stream_has_only_data_lines_and_no_end_marker(http: httpx.Client) -> None:
    response = ask(http, "say: Hello", stream=True)

    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    first, *_, last = events_of(response)
    delta = {"type": "text", "text": ""}
    event = {"event_type": "start", "delta": delta, "logprobs": None, "stop_reason": None}
    assert first == {"metrics": None, "event": event}
    assert last["event"] == event | {"event_type": "complete", "stop_reason": "end_of_turn"}


@pytest.mark.parametrize("stream", [True, False])
def test_a_stream_of_nothing_has_a_start_and_an_end(http: httpx.Client, stream: bool) -> None:
    response = ask(http, "say:", stream=stream)

    if stream:
        assert [event["event"]["event_type"] for event in events_of(response)] == ["start", "complete"]
    else:
        assert response.json()["completion_message"]["content"] == ""


def test_the_client_runs_a_tool_and_goes_on(client: LlamaStackClient, app_fixture: AppFixture) -> None:
    question = says("Please get_weather of Bern")
    asked = client.inference.chat_completion(model_id=MODEL, messages=question, tools=[WEATHER]).completion_message
    [call] = asked.tool_calls or []
    result = {"role": "tool", "call_id": call.call_id, "content": "rain"}
    messages: Any = [*question, asked.to_dict(), result]
    final = client.inference.chat_completion(model_id=MODEL, messages=messages, tools=[WEATHER]).completion_message

    assert asked.stop_reason == "end_of_message"
    assert (call.tool_name, call.arguments) == ("get_weather", {"city": "Bern"})
    assert json.loads(call.arguments_json or "") == {"city": "Bern"}
    assert (final.content, final.stop_reason) == ("get_weather answered: rain", "end_of_turn")
    [_, answer, answered] = app_fixture.last_request.messages
    assert isinstance(answer, AssistantAnswer)
    assert isinstance(answered, ToolResult)
    assert (answer.tool_calls[0].call_id, answered.tool_name) == (answered.call_id, "get_weather")
    schema = app_fixture.last_request.tools[0].parameters
    assert schema == {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "A city."}},
        "required": ["city"],
    }


def test_a_streamed_call_is_one_delta(client: LlamaStackClient) -> None:
    stream = client.inference.chat_completion(
        model_id=MODEL, messages=says("Please get_weather of Bern"), tools=[WEATHER], stream=True
    )

    [_, called, last] = list(stream)

    assert called.event.delta.type == "tool_call"
    assert called.event.delta.parse_status == "succeeded"
    assert not isinstance(called.event.delta.tool_call, str)
    assert called.event.delta.tool_call.arguments == {"city": "Bern"}
    assert last.event.stop_reason == "end_of_message"


def test_a_call_that_is_not_json_is_a_failed_delta(http: httpx.Client) -> None:
    words = 'call: get_weather {"city":'

    streamed = events_of(ask(http, words, tools=[WEATHER], stream=True))
    whole = ask(http, words, tools=[WEATHER]).json()["completion_message"]

    assert streamed[1]["event"]["delta"] == {"type": "tool_call", "tool_call": '{"city":', "parse_status": "failed"}
    assert whole["tool_calls"][0]["arguments"] == '{"city":'


@pytest.mark.parametrize(
    ("fields", "choice", "tools"),
    [
        ({}, ToolChoice.auto, 1),
        ({"tool_choice": "required"}, ToolChoice.required, 1),
        ({"tool_config": {"tool_choice": "required"}}, ToolChoice.required, 1),
        ({"tool_config": {"tool_choice": "get_weather", "tool_prompt_format": "json"}}, "get_weather", 1),
        ({"tool_choice": "none", "tool_prompt_format": "python_list"}, ToolChoice.none, 0),
        ({"tool_choice": "none", "tool_config": {"tool_choice": "none"}}, ToolChoice.none, 0),
    ],
)
def test_the_tool_choice_is_passed_on(
    http: httpx.Client, app_fixture: AppFixture, fields: dict[str, Any], choice: str, tools: int
) -> None:
    assert ask(http, "say: Hi", model_id=MODEL, tools=[WEATHER], **fields).status_code == 200

    assert app_fixture.last_request.tool_choice == choice
    assert len(app_fixture.last_request.tools) == tools


def test_a_system_message_that_replaces_has_the_definitions_of_the_tools(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    messages = [{"role": "system", "content": "Tools: {{function_definitions}}"}, *says("say: Hi")]
    config = {"system_message_behavior": "replace"}

    ask(http, "", model_id=MODEL, messages=messages, tools=[WEATHER], tool_config=config)

    [system, _] = app_fixture.last_request.messages
    assert isinstance(system, SystemText)
    assert '"name":"get_weather"' in system.text


def test_images_and_sampling_reach_the_model(http: httpx.Client, app_fixture: AppFixture) -> None:
    content = [{"type": "text", "text": "say: An image"}, {"type": "image", "image": {"data": PIXEL}}]
    sampling = {"strategy": {"type": "top_p", "temperature": 0.5, "top_p": 0.9}, "max_tokens": 7, "stop": ["."]}

    answer = ask(http, "", model_id=MODEL, messages=says(content), sampling_params=sampling)  # type: ignore[arg-type]

    assert answer.json()["completion_message"]["content"] == "An image"
    [message] = app_fixture.last_request.messages
    assert isinstance(message, UserInput)
    assert [item.type for item in items_of(message.content)] == ["text", "image"]
    assert app_fixture.last_request.decoding == Decoding(temperature=0.5, top_p=0.9, max_tokens=7, stop=(".",))


def test_an_answer_follows_the_schema_of_the_response_format(client: LlamaStackClient) -> None:
    schema: Any = {"type": "object", "properties": {"hours": {"type": "integer"}}, "required": ["hours"]}

    answer = client.inference.chat_completion(
        model_id=MODEL,
        messages=says("Work 3 on monday"),
        response_format={"type": "json_schema", "json_schema": schema},
    )

    assert json.loads(str(answer.completion_message.content)) == {"hours": 3}


def test_a_token_limit_ends_an_answer(client: LlamaStackClient) -> None:
    limited: Any = {"max_tokens": 2}

    chat = client.inference.chat_completion(
        model_id=MODEL, messages=says("say: one two three"), sampling_params=limited
    )
    completion = client.inference.completion(model_id=MODEL, content="say: one two three", sampling_params=limited)

    assert chat.completion_message.stop_reason == completion.stop_reason == "out_of_tokens"
    assert completion.content == "one two "


def test_the_client_gets_a_completion_whole_and_streamed(client: LlamaStackClient, app_fixture: AppFixture) -> None:
    whole = client.inference.completion(model_id=MODEL, content="say: Hello there")
    chunks = list(client.inference.completion(model_id=MODEL, content="say: Hello there", stream=True))

    assert (whole.content, whole.stop_reason) == ("Hello there", "end_of_turn")
    streamed: list[Any] = [chunk.to_dict() for chunk in chunks]
    assert [chunk["delta"] for chunk in streamed] == ["Hello ", "there", ""]
    assert [chunk["stop_reason"] for chunk in streamed] == [None, None, "end_of_turn"]
    assert streamed[-1]["metrics"][2] == {"metric": "total_tokens", "value": 5.0, "unit": "tokens"}
    assert app_fixture.last_request.messages == (UserInput("say: Hello there"),)


@pytest.mark.parametrize("top_k", [0, 1])
def test_log_probabilities_come_with_their_text(client: LlamaStackClient, top_k: int) -> None:
    asked: Any = {"model_id": MODEL, "logprobs": {"top_k": top_k}}

    chat = client.inference.chat_completion(messages=says("say: Hello there"), **asked)
    completion = client.inference.completion(content="say: Hello there", **asked)
    streamed: list[Any] = list(client.inference.chat_completion(messages=says("say: Hi you"), stream=True, **asked))
    chunks: list[Any] = list(client.inference.completion(content="say: Hi you", stream=True, **asked))

    scores = [{"Hello ": 0.0}, {"there": 0.0}]
    assert [each.logprobs_by_token for each in chat.logprobs or []] == scores
    assert [each.logprobs_by_token for each in completion.logprobs or []] == scores
    for found in ([chunk.event.logprobs for chunk in streamed[1:]], [chunk.logprobs for chunk in chunks]):
        assert [each and each[0].logprobs_by_token for each in found] == [{"Hi ": 0.0}, {"you": 0.0}, None]


def test_a_provider_is_asked_for_log_probabilities(client: LlamaStackClient, chat: ChatCompletionsServer) -> None:
    client.inference.completion(model_id="openai/gpt", content="Hello", logprobs={"top_k": 2})
    client.inference.completion(model_id="openai/gpt", content="Hello", logprobs={})
    client.inference.completion(model_id="openai/gpt", content="Hello")

    asked = [(body.get("logprobs"), body.get("top_logprobs")) for body in chat.bodies[-3:]]
    assert asked == [(True, 2), (True, None), (None, None)]


def test_batches_are_answered_in_order(client: LlamaStackClient, app_fixture: AppFixture) -> None:
    chats = client.inference.batch_chat_completion(model_id=MODEL, messages_batch=[says("say: one"), says("say: two")])
    texts = client.inference.batch_completion(model_id=MODEL, content_batch=["say: three", "say: four"])

    assert [each.completion_message.content for each in chats.batch] == ["one", "two"]
    assert [each.content for each in texts.batch] == ["three", "four"]
    assert len(app_fixture.recorder.requests) == 4


def test_one_failure_fails_a_batch(http: httpx.Client) -> None:
    batch = [says("slow: 60"), says("fail: throttled")]

    refused = http.post("/v1/inference/batch-chat-completion", json={"model_id": MODEL, "messages_batch": batch})

    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")


def test_nothing_is_stored(http: httpx.Client, app_fixture: AppFixture) -> None:
    ask(http, "say: Hello")

    assert read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant) == []


def test_a_real_provider_is_asked_what_was_asked_here(client: LlamaStackClient, chat: ChatCompletionsServer) -> None:
    client.inference.chat_completion(model_id="openai/gpt", messages=says("Hello"), tools=[WEATHER])

    sent = chat.bodies[-1]
    assert sent["model"] == "gpt"
    assert sent["messages"] == [{"role": "user", "content": "Hello"}]
    assert sent["tools"][0]["function"]["name"] == "get_weather"


@pytest.mark.parametrize(
    ("fields", "param", "part"),
    [
        ({"model_id": "nowhere"}, "model_id", "does not exist"),
        ({"model_id": ""}, "model_id", "at least 1 character"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "robot", "content": ""}]}, "messages[0]", "role"),
        ({"messages": [{"role": "tool", "call_id": "c", "content": ""}]}, "messages[0].call_id", "no unanswered call"),
        ({"tools": [WEATHER, WEATHER]}, "tools", "declared 2 times"),
        ({"tools": [{"tool_name": "a b"}]}, "tools", "invalid name"),
        ({"tool_choice": "required"}, "tool_config.tool_choice", "tools has none"),
        ({"tool_config": {"tool_choice": "x"}}, "tool_config.tool_choice", "'x' is unknown"),
        ({"tool_choice": "auto", "tool_config": {"tool_choice": "none"}}, "body", "deprecated"),
        ({"response_format": {"type": "grammar", "bnf": {}}}, "response_format", "grammar is not supported"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"type": 7}}},
            "response_format.json_schema",
            "not a supported schema",
        ),
        ({"logprobs": {"top_k": 21}}, "logprobs.top_k", "less than or equal to 20"),
        ({"messages": says([{"type": "image", "image": {"data": "x"}}])}, "messages[0].content[0].image.data", ""),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_bad_request_is_an_error_that_names_its_field(
    http: httpx.Client, fields: dict[str, Any], param: str, part: str, stream: bool
) -> None:
    refused = ask(http, "say: Hi", stream=stream, **fields)

    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["param"] == param
    assert part in error["message"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_failure_before_the_first_byte_is_a_status(http: httpx.Client, stream: bool) -> None:
    failed = ask(http, "fail: before", stream=stream)

    assert (failed.status_code, failed.json()["error"]["code"]) == (502, "model_error")


def test_a_failure_in_a_stream_is_its_last_event(http: httpx.Client) -> None:
    *_, last = events_of(ask(http, "fail: after 1 words\nsay: one two", stream=True))

    assert last["error"]["code"] == "model_error"
    assert last["detail"] == last["error"]["message"]


def test_the_client_raises_for_an_unknown_model(client: LlamaStackClient) -> None:
    with pytest.raises(BadRequestError, match="does not exist"):
        client.inference.chat_completion(model_id="nowhere", messages=says("Hi"))


def test_an_unknown_path_and_method_are_errors_as_everywhere(http: httpx.Client) -> None:
    assert_error(http.post("/v1/inference/nothing", json={}), 404, "route_not_found")
    refused = http.get(CHAT)
    assert_error(refused, 405, "method_not_allowed")
    assert refused.headers["allow"] == "POST"
