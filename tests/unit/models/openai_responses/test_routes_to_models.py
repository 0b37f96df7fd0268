"""The choice between Chat Completions and the Responses API, and servers that have one of them only."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.servers import chat_completions as chat
from tests.servers import model_responses as responses
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.unit.models.openai_responses.calling import asked, collect, text_in

from stint.domain.errors import InvalidRequest, ModelError, StintError
from stint.domain.inference import Decoding
from stint.http1.client import HttpClient, HttpTimeouts
from stint.http1.connector import Connector
from stint.http1.proxies import Proxies
from stint.http1.urls import Origin, parse_url
from stint.models.openai_compatible import ApiName, OpenAICompatible

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
JSON = {"Content-Type": "application/json"}

MISSING: dict[str, Callable[[str], Reply]] = {
    "FastAPI": lambda _: chat.document({"detail": "Not Found"}, 404),
    "FastAPI's method": lambda _: chat.document({"detail": "Method Not Allowed"}, 405),
    "nginx": lambda _: Reply(
        (b"<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>",),
        404,
        {"Content-Type": "text/html"},
    ),
    "nginx's method": lambda _: Reply((b"<html><h1>405 Not Allowed</h1></html>",), 405, {"Content-Type": "text/html"}),
    "Go": lambda _: Reply((b"404 page not found\n",), 404, {"Content-Type": "text/plain; charset=utf-8"}),
    "Groq": lambda path: chat.error(
        404,
        f"Unknown request URL: POST {path}. Please check the URL for typos, or see the docs at https://console.x/docs/",
        type="invalid_request_error",
        code="unknown_url",
    ),
    "Express": lambda path: Reply((f"<pre>Cannot POST {path}</pre>".encode(),), 404, {"Content-Type": "text/html"}),
    "llama.cpp": lambda _: chat.document(
        {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}, 404
    ),
    "nothing": lambda _: Reply((), 404),
    "an object": lambda _: chat.document({}, 404),
}
"""Answers of servers that lack an operation."""

NO_MODEL: dict[str, Reply] = {
    "OpenAI": chat.error(
        404,
        "The model `demo` does not exist or you do not have access to it.",
        type="invalid_request_error",
        code="model_not_found",
    ),
    "vLLM": chat.document(
        {"object": "error", "message": "The model `demo` does not exist.", "type": "NotFoundError", "code": 404}, 404
    ),
    "vLLM, later": chat.document(
        {"error": {"message": "The model `demo` does not exist.", "type": "NotFoundError", "code": 404}}, 404
    ),
    "Ollama": chat.document({"error": {"message": "model 'demo' not found", "type": "not_found_error"}}, 404),
    "Ollama's own": chat.document({"error": "model 'demo' not found, try pulling it first"}, 404),
    "Azure": chat.error(404, "The API deployment for this resource does not exist.", code="DeploymentNotFound"),
    "a name in one word": chat.error(404, "Not here", code="ModelNotFound"),
    "OpenRouter": chat.error(404, "No endpoints found for demo."),
    "NVIDIA": chat.document({"status": 404, "title": "Not Found", "detail": "Function 'demo': Not found"}, 404),
    "code only": chat.error(404, "Not found", code="model_not_found"),
    "a method": chat.error(405, "The model `demo` does not support this method", param="model"),
}
"""Answers of servers that have the operation, and not the model."""


class OneServer(ScriptedHTTPServer):
    """A server with some of the operations. `missing` makes the answer to the others."""

    def __init__(self, responding: responses.ModelResponsesServer) -> None:
        super().__init__(self.answer)
        self.has = {CHAT, RESPONSES}
        self.missing = MISSING["FastAPI"]
        self._responses = responding

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def answer(self, received: Received) -> Reply:
        if received.path not in self.has:
            return self.missing(received.path)
        if received.path == CHAT:
            return chat.answer(received)
        return self._responses.answer(received)


@pytest.fixture
def server() -> Iterator[OneServer]:
    with responses.ModelResponsesServer() as responding, OneServer(responding) as server:
        yield server


@pytest.fixture
async def model(server: OneServer) -> AsyncIterator[OpenAICompatible]:
    model = OpenAICompatible(f"{server.url}/v1", repeats=0)
    yield model
    await model.aclose()


class LoopbackClient(HttpClient):
    """Sends all requests to a server of this machine, whatever their host is."""

    def __init__(self, url: str) -> None:
        super().__init__(Proxies({}), HttpTimeouts())
        self.server = parse_url(url).origin
        self.hosts: set[str] = set()

    def connect_to(self, origin: Origin) -> Connector:
        self.hosts.add(origin.host)
        return super().connect_to(self.server)


@pytest.fixture
async def openai(server: OneServer) -> AsyncIterator[Callable[..., OpenAICompatible]]:
    """Make clients of OpenAI's own address."""
    client = LoopbackClient(server.url)
    yield lambda **options: OpenAICompatible(
        options.pop("base_url", "https://api.openai.com/v1"), "key", client=client, repeats=0, **options
    )
    await client.close()
    assert all(host.endswith("api.openai.com") for host in client.hosts)


async def test_other_servers_are_called_by_chat_completions(server: OneServer, model: OpenAICompatible) -> None:
    await collect(model)

    assert server.paths == [CHAT]


@pytest.mark.parametrize(("api", "path"), [("chat", CHAT), ("responses", RESPONSES)])
async def test_a_server_is_called_by_the_api_that_is_set(server: OneServer, api: Any, path: str) -> None:
    model = OpenAICompatible(f"{server.url}/v1/", api=api, repeats=0)

    assert text_in(await collect(model)) == "You said: Hello you"
    server.has.clear()
    with pytest.raises(StintError):
        await collect(model)

    assert server.paths == [path] * 2
    await model.aclose()


@pytest.mark.parametrize("base_url", ["https://api.openai.com/v1", "https://eu.api.openai.com/v1/"])
async def test_openai_is_called_by_the_responses_api(
    server: OneServer, openai: Callable[..., OpenAICompatible], base_url: str
) -> None:
    assert text_in(await collect(openai(base_url=base_url))) == "You said: Hello you"
    assert server.paths == [RESPONSES]


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(stop=("END",)),
        Decoding(seed=7),
        Decoding(frequency_penalty=0.5),
        Decoding(presence_penalty=0.5),
        Decoding(max_tokens=15),
    ],
)
async def test_openai_is_called_by_chat_completions_for_what_only_they_have(
    server: OneServer, openai: Callable[..., OpenAICompatible], decoding: Decoding
) -> None:
    model, request = openai(), asked(decoding=decoding)

    model.check(request)
    await collect(model, request)
    await collect(model, asked(decoding=Decoding(max_tokens=16, temperature=0.0)))

    assert server.paths == [CHAT, RESPONSES]


@pytest.mark.parametrize("decoding", [Decoding(top_k=2), Decoding(repetition_penalty=2)])
async def test_openai_refuses_what_it_has_in_neither(
    server: OneServer, openai: Callable[..., OpenAICompatible], decoding: Decoding
) -> None:
    with pytest.raises(InvalidRequest, match="OpenAI's models do not support"):
        openai().check(asked(decoding=decoding))

    assert server.paths == []


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_openai_is_called_by_the_api_that_is_set(
    server: OneServer, openai: Callable[..., OpenAICompatible], api: Any
) -> None:
    await collect(openai(api=api))

    assert server.paths == [{"chat": CHAT, "responses": RESPONSES}[api]]


@pytest.mark.parametrize("name", MISSING)
async def test_openai_is_not_called_by_the_other_one(
    server: OneServer, openai: Callable[..., OpenAICompatible], name: str
) -> None:
    server.has, server.missing = set(), MISSING[name]
    model = openai()

    for decoding in (Decoding(), Decoding(seed=7)):
        with pytest.raises(StintError):
            await collect(model, asked(decoding=decoding))

    assert server.paths == [RESPONSES, CHAT]


@pytest.mark.parametrize("name", MISSING)
async def test_a_server_without_chat_completions_is_called_by_the_responses_api(
    server: OneServer, model: OpenAICompatible, name: str
) -> None:
    server.has, server.missing = {RESPONSES}, MISSING[name]

    for request in (asked(), asked(), asked(model="another")):
        assert text_in(await collect(model, request)) == "You said: Hello you"

    assert server.paths == [CHAT, RESPONSES, RESPONSES, RESPONSES]


async def test_what_the_other_one_lacks_is_refused_by_name(server: OneServer, model: OpenAICompatible) -> None:
    server.has = {RESPONSES}

    for _ in range(2):
        with pytest.raises(InvalidRequest, match="seed"):
            await collect(model, asked(decoding=Decoding(seed=7)))
        await collect(model)


async def test_what_chat_completions_have_is_asked_of_them_again(server: OneServer, model: OpenAICompatible) -> None:
    server.script(MISSING["FastAPI"](CHAT))
    await collect(model)

    await collect(model, asked(decoding=Decoding(seed=7)))
    await collect(model)

    assert server.paths == [CHAT, RESPONSES, CHAT, RESPONSES]


async def test_a_server_that_loses_one_is_called_by_the_other(server: OneServer, model: OpenAICompatible) -> None:
    server.has = {RESPONSES}
    await collect(model)
    server.has = {CHAT}

    for _ in range(2):
        assert text_in(await collect(model)) == "You said: Hello you"

    assert server.paths == [CHAT, RESPONSES, RESPONSES, CHAT, CHAT]


@pytest.mark.parametrize(("api", "path"), [("chat", "chat/completions"), ("responses", "responses")])
async def test_a_server_without_the_chosen_one_is_an_error_for_the_operator(
    server: OneServer, api: ApiName, path: str
) -> None:
    server.has = set()
    model = OpenAICompatible(f"{server.url}/v1", api=api, repeats=0)

    with pytest.raises(ModelError, match=rf"it has no POST /{path} \(check its api, and OPENAI_BASE_URL\)"):
        await collect(model)

    await model.aclose()


@pytest.mark.parametrize("name", NO_MODEL)
async def test_a_server_without_the_model_is_not_called_again(
    server: OneServer, model: OpenAICompatible, name: str
) -> None:
    server.script(NO_MODEL[name])

    with pytest.raises(StintError) as raised:
        await collect(model)

    assert raised.value.message
    assert server.paths == [CHAT]


async def test_a_server_with_a_name_of_models_is_still_one_that_lacks_an_operation(server: OneServer) -> None:
    """The text that names the URL is not about a model."""
    server.has, server.missing = set(), lambda path: Reply((f"Cannot POST {path}".encode(),), 404)
    model = OpenAICompatible(f"{server.url}/models/v1", repeats=0)

    with pytest.raises(StintError, match="Cannot POST /models/v1/chat/completions"):
        await collect(model)

    assert server.paths == ["/models/v1/chat/completions", "/models/v1/responses"]
    await model.aclose()


@pytest.mark.parametrize("name", MISSING)
async def test_without_either_the_first_error_is_raised(server: OneServer, model: OpenAICompatible, name: str) -> None:
    server.has, server.missing = set(), MISSING[name]

    for place in range(2):
        with pytest.raises(StintError) as raised:
            await collect(model)

        assert "usually ends in /v1" in raised.value.message
        assert isinstance(raised.value, InvalidRequest | ModelError)
        assert server.paths[2 * place :] == [CHAT, RESPONSES]


async def test_the_error_of_the_other_one_is_raised_if_it_is_about_the_request(
    server: OneServer, model: OpenAICompatible
) -> None:
    """A server that has the operation knows what is wrong."""
    server.script(MISSING["Go"](CHAT), NO_MODEL["OpenAI"])

    with pytest.raises(InvalidRequest, match="does not exist"):
        await collect(model)


async def test_a_server_error_does_not_select_the_other_api(server: OneServer, model: OpenAICompatible) -> None:
    for status in (400, 401, 403, 429, 500, 502, 503):
        server.script(chat.error(status, "Not Found"))
        with pytest.raises(StintError):
            await collect(model)

    assert set(server.paths) == {CHAT}


async def test_a_failure_of_the_other_one_is_not_remembered(server: OneServer, model: OpenAICompatible) -> None:
    server.script(MISSING["Go"](CHAT), chat.error(500, "Out of order"))

    with pytest.raises(ModelError, match="Out of order"):
        await collect(model)
    await collect(model)

    assert server.paths == [CHAT, RESPONSES, CHAT]


OTHER_OPERATION = [
    "This model is only supported in v1/responses and not in v1/chat/completions.",
    "The model 'demo' does not support the '/v1/chat/completions' API",
    "This model is not supported on this route",
]


@pytest.mark.parametrize("text", OTHER_OPERATION)
async def test_a_model_that_the_server_has_in_the_other_one_only_is_remembered(
    server: OneServer, model: OpenAICompatible, text: str
) -> None:
    server.script(chat.error(404 if "only" in text else 400, text, type="invalid_request_error", param="model"))

    for request in (asked(), asked(), asked(model="another")):
        await collect(model, request)

    assert server.paths[:3] == [CHAT, RESPONSES, RESPONSES]
    assert server.paths[3:] == [CHAT]


async def test_neither_learns_from_what_the_other_refuses(server: OneServer, model: OpenAICompatible) -> None:
    server.has = {RESPONSES}
    server.script(
        MISSING["Go"](CHAT),
        chat.error(400, "'temperature' is not supported", type="invalid_request_error", param="temperature"),
    )

    await collect(model, asked(decoding=Decoding(temperature=0.0)))

    sent = [body.get("temperature") for body in server.bodies]
    assert sent == [0.0, 0.0, None]
    assert json.dumps(server.bodies[-1]["input"]).count("Hello you") == 1


async def test_a_client_without_a_choice_keeps_no_state_of_others(server: OneServer) -> None:
    server.has = {RESPONSES}
    for _ in range(2):
        model = OpenAICompatible(f"{server.url}/v1", repeats=0)
        await collect(model, replace(asked(), model="m"))
        await model.aclose()

    assert server.paths == [CHAT, RESPONSES] * 2
