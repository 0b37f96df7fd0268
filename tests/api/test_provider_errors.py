"""A provider's refusal has the same meaning in every API, streamed or not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import httpx2
import llama_stack_client
import openai
import pytest
from llama_stack_client import LlamaStackClient
from openai import OpenAI
from tests.api.api_client import data, open_session, say, turn, turns_of
from tests.api.app_fixture import Served
from tests.api.responses_client import events_of, get, text_of
from tests.servers import chat_completions as provider
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.scripted_http import Reply

MODEL = "openai/m"
KEY = "sk-proj-1234567890"
Ask = Callable[..., httpx.Response]


def complete(http: httpx.Client, **fields: Any) -> httpx.Response:
    message = {"role": "user", "content": "Hello"}
    return http.post("/v1/chat/completions", json={"model": MODEL, "messages": [message]} | fields)


def respond(http: httpx.Client, **fields: Any) -> httpx.Response:
    return http.post("/v1/responses", json={"model": MODEL, "input": "Hello"} | fields)


def create_turn(http: httpx.Client, **fields: Any) -> httpx.Response:
    return say(http, open_session(http, model=MODEL), "Hello", **fields)


@contextmanager
def connect(server: Served, retries: int = 0) -> Iterator[OpenAI]:
    http = httpx2.Client(trust_env=False)
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=retries, http_client=http) as client:
        yield client


ASKS = [complete, respond, create_turn]
REFUSALS = [
    pytest.param(provider.error(400, "That is wrong"), 400, "invalid_request", id="400"),
    pytest.param(provider.error(404, "No such model"), 400, "model_not_found", id="404"),
    pytest.param(provider.error(413, "Too large a body"), 400, "invalid_request", id="413"),
    pytest.param(provider.error(422, "Not to be processed"), 400, "invalid_request", id="422"),
    pytest.param(provider.error(400, "", code="context_length_exceeded"), 400, "context_length_exceeded", id="length"),
    pytest.param(provider.error(401, f"Wrong key {KEY}"), 502, "model_unauthorized", id="401"),
    pytest.param(provider.error(403, f"Not for {KEY}"), 502, "model_unauthorized", id="403"),
    pytest.param(provider.error(429, "Slowly"), 429, "rate_limit_exceeded", id="429"),
    pytest.param(provider.error(429, "Pay", code="insufficient_quota"), 429, "insufficient_quota", id="quota"),
    pytest.param(provider.error(500, "It broke"), 502, "model_error", id="500"),
    pytest.param(provider.error(503, "No capacity"), 503, "model_overloaded", id="503"),
    pytest.param(provider.error(529, "Overloaded"), 503, "model_overloaded", id="529"),
    pytest.param(Reply((b"<html>",), headers={"Content-Type": "text/html"}), 502, "model_error", id="a page"),
    pytest.param(Reply(status=0), 502, "model_error", id="no answer"),
]


EVERYWHERE = ("404", "401", "429", "503")
"""Refusals, one of each kind of status, that every operation is sent."""


@pytest.mark.parametrize(
    ("ask", "stream", "refusal", "status", "code"),
    [
        pytest.param(
            ask, stream, *refusal.values, id=f"{ask.__name__}-{'streamed' if stream else 'whole'}-{refusal.id}"
        )
        for refusal in REFUSALS
        for ask in ASKS
        for stream in (True, False)
        if refusal.id in EVERYWHERE or (ask is complete and not stream)
    ],
)
def test_a_refusal_has_its_status_before_the_first_byte(
    http: httpx.Client, chat: ChatCompletionsServer, ask: Ask, stream: bool, refusal: Reply, status: int, code: str
) -> None:
    chat.script(refusal)

    answer = ask(http, stream=stream)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    assert KEY not in answer.text
    assert ("OPENAI_API_KEY" in answer.text) is (code == "model_unauthorized")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("ask", "params"),
    [
        (complete, {"messages[0].content": "messages[0].content", "max_tokens": "max_tokens", "top_p": "top_p"}),
        (
            respond,
            {
                "messages[0].content": "input",
                "tools[1].function": "tools",
                "max_tokens": "max_output_tokens",
                "response_format": "text.format",
                "reasoning_effort": "reasoning.effort",
                "top_p": "top_p",
            },
        ),
        (
            create_turn,
            {
                "messages[0].content": "messages",
                "top_p": "sampling_params",
                "tool_choice": "tool_config.tool_choice",
                "model": "model",
            },
        ),
    ],
)
def test_the_field_that_a_provider_names_has_the_name_that_the_caller_knows(
    http: httpx.Client, chat: ChatCompletionsServer, ask: Ask, params: dict[str, str], stream: bool
) -> None:
    for theirs, ours in params.items():
        chat.script(provider.error(400, "No.", param=theirs))

        assert ask(http, stream=stream).json()["error"]["param"] == ours


@pytest.mark.parametrize(("ask", "param"), [(complete, "messages"), (respond, "input"), (create_turn, "messages")])
def test_messages_that_do_not_fit_are_a_fault_of_theirs(
    http: httpx.Client, chat: ChatCompletionsServer, ask: Ask, param: str
) -> None:
    chat.script(provider.error(400, "This model's maximum context length is 10 tokens"))

    assert ask(http).json()["error"]["param"] == param


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("ask", "repeatable"),
    [(complete, True), (lambda http, **f: respond(http, store=False, **f), True), (respond, False)],
)
def test_a_rate_limit_says_when_to_ask_again_and_may_be_repeated_while_nothing_is_stored(
    http: httpx.Client, chat: ChatCompletionsServer, ask: Ask, repeatable: bool, stream: bool
) -> None:
    chat.script(provider.error(429, "Slowly", {"Retry-After": "6.5"}), provider.error(429, "Slowly"))

    told, untold = ask(http, stream=stream), ask(http, stream=stream)

    assert [answer.headers["retry-after"] for answer in (told, untold)] == ["7", "1"]
    assert (told.headers.get("x-should-retry") == "false") is not repeatable
    assert ("response_id" in told.json()["error"]) is not repeatable


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_refused_turn_and_a_refused_response_are_kept_as_failed(
    http: httpx.Client, chat: ChatCompletionsServer, stream: bool
) -> None:
    session = open_session(http, model=MODEL)
    chat.script(*[provider.error(429, "Slowly")] * 2)

    refused = say(http, session, "Hello", stream=stream).json()["error"]
    response_id = respond(http, stream=stream).json()["error"]["response_id"]

    [kept] = turns_of(http, session)
    assert (kept["turn_id"], kept["status"], kept["error"]["code"]) == (
        refused["turn_id"],
        "failed",
        "rate_limit_exceeded",
    )
    response = get(http, response_id)
    assert (response["status"], response["error"]["code"]) == ("failed", "rate_limit_exceeded")
    assert turn(http, session, "Hello")["output_message"]["content"] == "You said: Hello"


def test_what_goes_wrong_once_the_provider_has_accepted_is_an_event(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    failure = provider.sse({"error": {"message": "Slowly", "code": 429}})
    chat.script(*[provider.stream({"content": "Hi"}, failure, finish=None, done=False)] * 3)

    turned, responded, chatted = create_turn(http, stream=True), respond(http, stream=True), complete(http, stream=True)

    assert data(turned)[-1]["error"]["code"] == "rate_limit_exceeded"
    *_, error, failed = events_of(responded.text)
    assert (error["type"], error["code"]) == ("error", "rate_limit_exceeded")
    assert failed["response"]["error"]["code"] == "rate_limit_exceeded"
    assert '"rate_limit_exceeded"' in chatted.text.split("\n\n")[-3]


def test_a_provider_that_takes_its_time_to_refuse_is_not_waited_for(
    http: httpx.Client, chat: ChatCompletionsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stint.loop.run.ACCEPTANCE_SECONDS", 0.0)
    chat.script(*[replace(provider.error(429, "Slowly"), before=0.2)] * 2)

    turned, responded = create_turn(http, stream=True), respond(http, stream=True)

    started, *_, failed = data(turned)
    assert started["event"]["payload"]["event_type"] == "turn_start"
    assert failed["error"]["code"] == "rate_limit_exceeded"
    assert [event["type"] for event in events_of(responded.text)] == [
        "response.created",
        "response.in_progress",
        "error",
        "response.failed",
    ]


def test_a_conversation_that_is_too_long_is_shortened_before_anybody_hears_of_it(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    said = [{"role": role, "content": f"{n}"} for n in range(4) for role in ("user", "assistant")]
    chat.script(provider.error(400, "This model's maximum context length is 10 tokens"))

    events = events_of(
        respond(http, input=[*said, {"role": "user", "content": "now"}], truncation="auto", stream=True).text
    )

    assert text_of(events[-1]["response"]) == "You said: now"
    assert len(chat.bodies[1]["messages"]) < len(chat.bodies[0]["messages"])


class TestClients:
    """The unmodified clients raise their own kind of error."""

    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize(
        ("refusal", "error", "param"),
        [
            (provider.error(400, "No.", param="messages[0]"), openai.BadRequestError, "input"),
            (provider.error(400, "", code="context_length_exceeded"), openai.BadRequestError, "input"),
            (provider.error(429, "Slowly"), openai.RateLimitError, ""),
            (provider.error(503, "Busy"), openai.InternalServerError, ""),
        ],
    )
    def test_openai(
        self,
        server: Served,
        chat: ChatCompletionsServer,
        refusal: Reply,
        error: type[openai.APIStatusError],
        param: str,
        stream: bool,
    ) -> None:
        chat.script(refusal)

        with connect(server) as client, pytest.raises(error) as caught:
            client.responses.create(model=MODEL, input="Hello", stream=stream)

        assert (caught.value.param or "") == param

    @pytest.mark.parametrize("stream", [True, False])
    def test_openai_repeats_a_rate_limit_while_nothing_is_stored(
        self, server: Served, chat: ChatCompletionsServer, stream: bool
    ) -> None:
        chat.script(*[provider.error(429, "Slowly", {"retry-after-ms": "1", "Retry-After": "0"})] * 2)

        with connect(server, retries=2) as client:
            said: Any = [{"role": "user", "content": "Hello"}]
            answer: Any = client.chat.completions.create(model=MODEL, messages=said, stream=stream)
            answer = list(answer) if stream else answer

        assert answer
        assert len(chat.requests) == 3

    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize(
        ("refusal", "error"),
        [
            (provider.error(422, "No."), llama_stack_client.BadRequestError),
            (provider.error(429, "Slowly"), llama_stack_client.RateLimitError),
        ],
    )
    def test_llama_stack_client(
        self,
        client: LlamaStackClient,
        http: httpx.Client,
        server: Served,
        chat: ChatCompletionsServer,
        refusal: Reply,
        error: type[llama_stack_client.APIStatusError],
        stream: bool,
    ) -> None:
        chat.script(refusal)
        _, _, _, agent, _, session = open_session(http, model=MODEL).split("/")
        said: Any = [{"role": "user", "content": "Hello"}]

        with pytest.raises(error):
            client.agents.turn.create(session, agent_id=agent, messages=said, stream=stream)

        assert server.posts["turn"] == 1


class TestFaultsOfCallers:
    """An error about a missing or unreachable object names the request's field."""

    @pytest.mark.parametrize(
        ("fields", "status", "param"),
        [
            ({"conversation": "conv_0"}, 404, "conversation"),
            ({"conversation": {"id": f"conv_{'0' * 32}"}}, 404, "conversation"),
            ({"previous_response_id": "resp_0"}, 400, "previous_response_id"),
            (
                {
                    "tools": [
                        {"type": "web_search"},
                        {"type": "mcp", "server_label": "s", "server_url": "http://10.0.0.1"},
                    ]
                },
                400,
                "tools[1].server_url",
            ),
        ],
    )
    @pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
    def test_of_a_response(
        self, http: httpx.Client, fields: dict[str, Any], status: int, param: str, path: str
    ) -> None:
        answer = http.post(path, json={"model": "scripted/demo", "input": "Hello"} | fields)

        assert (answer.status_code, answer.json()["error"]["param"]) == (status, param), answer.text

    def test_a_conversation_that_another_response_runs_in(self, http: httpx.Client) -> None:
        conversation = http.post("/v1/conversations", json={}).json()["id"]
        body = {"model": "scripted/demo", "input": "slow: 1", "conversation": conversation}

        with http.stream("POST", "/v1/responses", json=body | {"stream": True}) as running:
            next(running.iter_lines())
            answer = http.post("/v1/responses", json=body)

        assert answer.status_code == 409
        assert answer.json()["error"]["param"] == "conversation"
