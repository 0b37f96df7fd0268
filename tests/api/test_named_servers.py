"""Named model servers over HTTP: routing, defaults, health, shields, stores, and keys that nobody sees."""

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error, open_session, say
from tests.api.app_fixture import AppFixture
from tests.servers import chat_completions as chat
from tests.servers import embeddings
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.embeddings import EmbeddingsServer
from tests.servers.llama_guard import LlamaGuardServer

LAB_KEY, TEI_KEY, CALLERS_KEY = "sk-lab-hunter2-hunter2", "sk-tei-hunter3-hunter3", "sk-caller-hunter4"
DATA = {"X-LlamaStack-Provider-Data": json.dumps({"lab_api_key": CALLERS_KEY, "openai_api_key": CALLERS_KEY})}


class Lab:
    """Two model servers, `lab` for chats and `tei` for embeddings, and one that is down."""

    def __init__(self) -> None:
        self.chat, self.guard, self.embeddings = ChatCompletionsServer(), LlamaGuardServer(), EmbeddingsServer()

    def environment(self) -> dict[str, str]:
        defaults = {"temperature": 0.3, "max_tokens": 64, "dimensions": 8}
        tei = {"id": "tei", "base_url": self.embeddings.base_url, "key_variable": "STINT_TEI_KEY"}
        servers = [
            {"id": "lab", "base_url": self.chat.base_url, "key_variable": "STINT_LAB_KEY", "defaults": defaults},
            {**tei, "defaults": {"dimensions": 4}},
            {"id": "safe", "base_url": self.guard.base_url},
            {"id": "down", "base_url": "http://127.0.0.1:9/v1"},
            {"id": "toy", "kind": "scripted"},
        ]
        keys = {"STINT_LAB_KEY": LAB_KEY, "STINT_TEI_KEY": TEI_KEY}
        return {"STINT_PROVIDERS": json.dumps(servers), "STINT_SCRIPTED_MODELS": "true", **keys}


@pytest.fixture(scope="module")
def shared_lab() -> Iterator[Lab]:
    lab = Lab()
    with ExitStack() as stack:
        for server in (lab.chat, lab.guard, lab.embeddings):
            server.closes_connections = True
            stack.enter_context(server)
        yield lab


@pytest.fixture
def lab(shared_lab: Lab, app_fixture: AppFixture) -> Iterator[Lab]:
    for server in (shared_lab.chat, shared_lab.guard, shared_lab.embeddings):
        server.forget()
    settings, app_fixture.settings = app_fixture.settings, app_fixture.read_settings(shared_lab.environment())
    app_fixture.made.clear()
    yield shared_lab
    app_fixture.settings = settings
    app_fixture.made.clear()


def complete(http: httpx.Client, model: str = "lab/m", **fields: Any) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], **fields}
    return http.post("/v1/chat/completions", json=body, headers=DATA)


def respond(http: httpx.Client, **fields: Any) -> httpx.Response:
    return http.post("/v1/responses", json={"model": "lab/m", "input": "Hello", **fields}, headers=DATA)


def turn(http: httpx.Client, **fields: Any) -> httpx.Response:
    return say(http, open_session(http, model="lab/m"), "Hello", **fields)


def test_the_providers_are_listed_with_the_health_that_was_looked_at(http: httpx.Client, lab: Lab) -> None:
    answer = http.get("/v1/providers")

    shown = {(each["api"], each["provider_id"]): each for each in answer.json()["data"]}
    assert {name: shown["inference", name]["health"]["status"] for name in ("lab", "tei", "toy", "down")} == {
        "lab": "Not Implemented",  # a server without a list of models
        "tei": "OK",
        "toy": "OK",
        "down": "Error",
    }
    assert "127.0.0.1:9" in shown["inference", "down"]["health"]["message"]
    assert shown["safety", "safe"]["config"] == {"url": lab.guard.base_url}
    assert ("safety", "toy") not in shown
    assert [each.headers["authorization"] for each in lab.embeddings.requests] == [f"Bearer {TEI_KEY}"]
    assert "hunter" not in answer.text
    assert http.get("/v1/providers/down").json()["health"]["status"] == "Error"


def test_a_request_gets_the_defaults_of_its_server_for_what_it_does_not_set(http: httpx.Client, lab: Lab) -> None:
    complete(http)
    complete(http, temperature=1.0, max_tokens=7)

    found = [(body["temperature"], body["max_tokens"]) for body in lab.chat.bodies]
    assert found == [(0.3, 64), (1.0, 7)]


def test_a_scripted_server_answers_under_its_own_name(http: httpx.Client, lab: Lab) -> None:
    answer = complete(http, "toy/demo", messages=[{"role": "user", "content": "say: Hi"}])

    assert answer.json()["choices"][0]["message"]["content"] == "Hi"
    assert (
        "no scripted model 'toy/other'" in assert_error(complete(http, "toy/other"), 400, "model_not_found")["message"]
    )
    embedded = http.post("/v1/embeddings", json={"model": "toy/demo", "input": "Hi"})
    assert_error(embedded, 400, "model_not_found")


def test_the_default_dimensions_of_a_server_are_those_of_its_vector_stores(http: httpx.Client, lab: Lab) -> None:
    asked = http.post("/v1/embeddings", json={"model": "tei/words", "input": "Hi"}).json()
    wide = http.post("/v1/embeddings", json={"model": "tei/words", "input": "Hi", "dimensions": 8}).json()
    body = {"vector_db_id": "animals", "embedding_model": "tei/words"}
    registered = http.post("/v1/vector-dbs", json=body).json()

    assert [len(each["data"][0]["embedding"]) for each in (asked, wide)] == [4, 8]
    assert registered["embedding_dimension"] == 4


@pytest.mark.parametrize("named", ["Llama-Guard-3-8B", "safe/Llama-Guard-3-8B"])
def test_a_shield_names_a_server_as_its_provider(http: httpx.Client, lab: Lab, named: str) -> None:
    body = {"shield_id": "guard", "provider_id": "safe", "provider_shield_id": named}
    registered = http.post("/v1/shields", json=body)
    messages = [{"role": "user", "content": "How do I build a bomb?"}]
    judged = http.post("/v1/safety/run-shield", json={"shield_id": "guard", "messages": messages, "params": {}})

    assert registered.json()["provider_id"] == "safe"
    assert judged.json()["violation"]["metadata"]["violation_type"] == "S9"
    assert [body["model"] for body in lab.guard.bodies] == ["Llama-Guard-3-8B"]


@pytest.mark.parametrize("provider", ["toy", "nobody"])
def test_a_shield_of_a_provider_without_shields_is_refused(http: httpx.Client, lab: Lab, provider: str) -> None:
    answer = http.post("/v1/shields", json={"shield_id": "guard", "provider_id": provider})

    assert assert_error(answer, 400, "provider_not_found")["param"] == "provider_id"


@pytest.mark.parametrize("path", ["/v1/vector_stores", "/v1/vector-dbs"])
def test_a_store_names_its_index_and_by_its_embedding_model_a_server(http: httpx.Client, lab: Lab, path: str) -> None:
    own = {"vector_db_id": "animals"} if path.endswith("dbs") else {}
    body = {**own, "embedding_model": "tei/words"}
    refused = http.post(path, json={**body, "provider_id": "tei"})

    error = assert_error(refused, 400, "provider_not_found")
    assert error["param"] == "provider_id"
    assert "Use 'packed'" in error["message"]
    assert http.post(path, json={**body, "provider_id": "packed"}).status_code == 200


@pytest.mark.parametrize("ask", [complete, respond, turn])
@pytest.mark.parametrize("fields", [{}, {"stream": True}])
@pytest.mark.parametrize("status", [400, 401])
def test_a_key_that_a_server_repeats_in_its_error_is_nowhere(
    http: httpx.Client, lab: Lab, written: io.StringIO, ask: Any, fields: dict[str, bool], status: int
) -> None:
    lab.chat.script(chat.error(status, f"Incorrect key provided: {LAB_KEY}"))
    answer = ask(http, **fields)

    assert answer.status_code == {400: 400, 401: 502}[status]
    assert "hunter" not in answer.text + written.getvalue()


@pytest.mark.parametrize("ask", [complete, respond, turn])
def test_a_key_that_a_server_repeats_in_the_middle_of_a_stream_is_nowhere(
    http: httpx.Client, lab: Lab, written: io.StringIO, ask: Any
) -> None:
    failure = f"data: {json.dumps({'error': {'message': f'{LAB_KEY} has expired'}})}\n\n".encode()
    lab.chat.script(chat.stream({"content": "Hel"}, failure, finish=None, done=False))
    answer = ask(http, stream=True)

    assert "has expired" in answer.text
    assert "hunter" not in answer.text + written.getvalue()


def test_a_key_that_a_server_of_embeddings_repeats_is_nowhere(
    http: httpx.Client, lab: Lab, written: io.StringIO
) -> None:
    for status in (400, 401):
        lab.embeddings.script(embeddings.error(status, f"Incorrect key provided: {TEI_KEY}"))
        answer = http.post("/v1/embeddings", json={"model": "tei/words", "input": "Hi"})
        assert answer.status_code == {400: 400, 401: 502}[status]
        assert "hunter" not in answer.text + written.getvalue()


def test_keys_for_models_in_the_provider_data_are_accepted_and_sent_to_no_server(
    http: httpx.Client, lab: Lab, written: io.StringIO
) -> None:
    session = open_session(http, model="lab/m")
    answers = [complete(http), respond(http), http.get("/v1/models", headers=DATA)]
    body = {"messages": [{"role": "user", "content": "Hello"}], "stream": False}
    answers.append(http.post(f"{session}/turn", json=body, headers=DATA))

    assert [answer.status_code for answer in answers] == [200] * 4
    assert {each.headers["authorization"] for each in lab.chat.requests} == {f"Bearer {LAB_KEY}"}
    assert "hunter" not in "".join(answer.text for answer in answers) + written.getvalue()
