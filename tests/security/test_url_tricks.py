"""No place that takes a URL leads inside, in whatever notation."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, say
from tests.api.test_hostile_urls import IMAGES, PLACES, Send, endpoint_at, generator_at
from tests.security.attacks import Attacks, Record
from tests.security.stack import Stack
from tests.security.tricks import PUBLIC, tricks
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.domain.errors import StoreUnavailable
from stint.oidc.fetch import fetch
from stint.oidc.key_set import DISCOVERY, KeySet

SECRET = "contents-of-the-inner-server"
REFUSED = ("url_not_allowed", "url_unavailable", "unsupported_document", "invalid_request")
UNREACHABLE = "webhook_endpoint_unreachable"
"""The code of a webhook endpoint whose host has no address: it may get one later, which is checked then."""
NOT_FOLLOWED = "tool_unavailable"
"""The code of an MCP server that answers with a redirect."""


def rag_insert(http: httpx.Client, url: str) -> httpx.Response:
    document = {"document_id": "d", "content": {"uri": url}, "mime_type": "text/plain", "metadata": {}}
    http.post("/v1/vector-dbs", json={"vector_db_id": "urls", "embedding_model": "hashed/words-384"})
    body = {"documents": [document], "vector_db_id": "urls", "chunk_size_in_tokens": 128}
    return http.post("/v1/tool-runtime/rag-tool/insert", json=body)


def october_document(http: httpx.Client, url: str) -> httpx.Response:
    bank = {"type": "vector", "identifier": "urls", "embedding_model": "hashed/words-384"}
    http.post("/memory_banks/register", json={"memory_bank": bank})
    document = {"document_id": "d", "content": {"uri": url}, "mime_type": "text/plain", "metadata": {}}
    return http.post("/memory/insert", json={"bank_id": "urls", "documents": [document]})


def october_agent(http: httpx.Client, tool: dict[str, Any]) -> httpx.Response:
    config = {"model": "scripted/demo", "instructions": "", "enable_session_persistence": True, "tools": [tool]}
    return http.post("/agents/create", json={"agent_config": config})


def october_endpoint(http: httpx.Client, url: str) -> httpx.Response:
    tool = {"type": "function_call", "function_name": "f", "description": "", "parameters": {}}
    return october_agent(http, {**tool, "remote_execution": {"url": {"uri": url}, "method": "POST"}})


def october_generator(http: httpx.Client, url: str) -> httpx.Response:
    generator = {"type": "custom", "provider_data": {"url": url}}
    tool = {"type": "memory", "memory_bank_configs": [], "max_tokens_in_context": 10, "max_chunks": 1}
    return october_agent(http, {**tool, "query_generator_config": generator})


def webhook_endpoint(http: httpx.Client, url: str) -> httpx.Response:
    """Create an endpoint, and send it an event if it is accepted."""
    body = {"name": "hook", "url": url, "event_types": ["response.failed"]}
    created = http.post("/v1/webhook_endpoints", json=body)
    if created.status_code != 200:
        return created
    path = f"/v1/webhook_endpoints/{created.json()['id']}"
    answer = http.post(f"{path}/test", json={"event_type": "response.failed"})
    http.delete(path)
    return answer


REGISTRATIONS = (
    "webhook_endpoint",
    *("other_toolgroup", "http_tool", "mcp_toolgroup", "agent_endpoint", "agent_generator", "agent_server"),
    *("october_endpoint", "october_generator"),
)
"""Places that only check a URL. It is called later."""

OCTOBER = (october_document, october_endpoint, october_generator)

WHERE: dict[str, Send] = {place.__name__: place for place in (*PLACES, rag_insert, *OCTOBER, webhook_endpoint)}


@pytest.fixture(scope="module")
def inner() -> Iterator[ScriptedHTTPServer]:
    """Yield a server on loopback that no caller may reach."""
    with ScriptedHTTPServer(lambda _: Reply((SECRET.encode(),), headers={"content-type": "text/plain"})) as server:
        yield server


@pytest.fixture
def http(stack: Stack) -> Iterator[httpx.Client]:
    with stack.client(stack.create_key("urls").key) as http:
        yield http


def port_of(server: ScriptedHTTPServer) -> int:
    return int(server.url.rsplit(":", 1)[1])


def judge(attacks: Attacks, what: str, answer: httpx.Response) -> None:
    """Note an answer that is not a refusal of the URL."""
    code = answer.json().get("error", {}).get("code")
    if (
        not ((answer.status_code == 400 and code in (*REFUSED, UNREACHABLE)) or code == NOT_FOLLOWED)
        or SECRET in answer.text
    ):
        attacks.got_in.append(f"{what}: {answer.status_code} {answer.text[:300]}")


@pytest.mark.parametrize("place", WHERE)
def test_a_url_that_leads_inside_is_refused_in(
    http: httpx.Client, inner: ScriptedHTTPServer, place: str, record_property: Record
) -> None:
    attacks = Attacks()
    inner.requests.clear()
    for url in tricks(port_of(inner)):
        with attacks.attack(place):
            answer = WHERE[place](http, url)
        judge(attacks, f"{place} {url!r}", answer)

    attacks.record(record_property)
    assert inner.requests == []


@pytest.mark.parametrize("place", IMAGES, ids=[place.__name__ for place in IMAGES])
def test_an_image_is_never_fetched_from_inside(
    http: httpx.Client, inner: ScriptedHTTPServer, place: Send, record_property: Record
) -> None:
    attacks = Attacks()
    inner.requests.clear()
    for url in tricks(port_of(inner)):
        with attacks.attack(place.__name__):
            answer = place(http, url)
        if SECRET in answer.text or answer.status_code >= 500:
            attacks.got_in.append(f"{url!r}: {answer.status_code} {answer.text[:300]}")

    attacks.record(record_property)
    assert inner.requests == []


def seen_in_response(http: httpx.Client, url: str) -> httpx.Response:
    message = {"role": "user", "content": [{"type": "input_image", "image_url": url}]}
    return http.post("/v1/responses", json={"model": "vision/any", "input": [message], "store": False})


def seen_in_chat(http: httpx.Client, url: str) -> httpx.Response:
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    return http.post("/v1/chat/completions", json={"model": "vision/any", "messages": [message]})


def image_at(url: str) -> dict[str, Any]:
    return {"type": "image", "image": {"url": {"uri": url}}}


def seen_in_turn(http: httpx.Client, url: str) -> httpx.Response:
    return say(http, open_session(http, model="vision/any"), image_at(url))


def seen_in_inference(http: httpx.Client, url: str) -> httpx.Response:
    body = {"model_id": "vision/any", "messages": [{"role": "user", "content": image_at(url)}]}
    return http.post("/v1/inference/chat-completion", json=body)


def seen_in_october(http: httpx.Client, url: str) -> httpx.Response:
    body = {"model": "vision/any", "messages": [{"role": "user", "content": {"image": {"uri": url}}}]}
    return http.post("/inference/chat_completion", json=body)


@pytest.mark.parametrize("place", [seen_in_response, seen_in_chat, seen_in_turn, seen_in_inference, seen_in_october])
def test_an_image_that_is_fetched_for_a_model_does_not_lead_inside(
    http: httpx.Client, inner: ScriptedHTTPServer, place: Send, record_property: Record
) -> None:
    attacks = Attacks()
    inner.requests.clear()
    for url in tricks(port_of(inner))[::4]:
        with attacks.attack(place.__name__):
            answer = place(http, url)
        judge(attacks, f"{place.__name__} {url!r}", answer)

    attacks.record(record_property)
    assert inner.requests == []
    place(http, f"http://{PUBLIC}:{port_of(inner)}/")
    assert len(inner.requests) == 1  # it would have been fetched


def called_in_turn(http: httpx.Client, url: str) -> httpx.Response:
    return say(http, open_session(http), "call: f {}", toolgroups=[endpoint_at(url)])


def generator_of_turn(http: httpx.Client, url: str) -> httpx.Response:
    return say(http, open_session(http), "Hello", toolgroups=[generator_at(url)])


def drawn(http: httpx.Client, _url: str) -> httpx.Response:
    return http.post("/v1/tool-runtime/invoke", json={"tool_name": "photogen", "kwargs": {"query": "a fox"}})


@pytest.mark.parametrize("place", [called_in_turn, generator_of_turn, drawn])
def test_a_url_that_is_called_later_does_not_lead_inside(
    http: httpx.Client,
    inner: ScriptedHTTPServer,
    model_server: ScriptedHTTPServer,
    place: Send,
    record_property: Record,
) -> None:
    attacks = Attacks()
    inner.requests.clear()

    def send(url: str) -> httpx.Response:
        model_server.forget()
        model_server.script(Reply((json.dumps({"data": [{"url": url}]}).encode(),)))
        return place(http, url)

    for url in tricks(port_of(inner))[::4]:
        with attacks.attack(place.__name__):
            answer = send(url)
        if SECRET in answer.text or answer.status_code >= 500:
            attacks.got_in.append(f"{url!r}: {answer.status_code} {answer.text[:300]}")
    assert inner.requests == []

    send(f"http://{PUBLIC}:{port_of(inner)}/")
    assert len(inner.requests) == 1  # it would have been called
    attacks.record(record_property)


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("place", [name for name in WHERE if name not in REGISTRATIONS])
def test_a_redirect_does_not_lead_inside(
    http: httpx.Client, inner: ScriptedHTTPServer, place: str, status: int, record_property: Record
) -> None:
    attacks = Attacks()
    inner.requests.clear()
    locations = tricks(port_of(inner))[::7]
    headers = iter(locations)

    def redirect(_: Received) -> Reply:
        return Reply(status=status, headers={"Location": next(headers, locations[0])})

    with ScriptedHTTPServer(redirect) as outer:
        for _ in locations:
            with attacks.attack(place):
                answer = WHERE[place](http, f"http://{PUBLIC}:{port_of(outer)}/")
            judge(attacks, f"{place} {status}", answer)
        assert len(outer.requests) >= len(locations)

    attacks.record(record_property)
    assert inner.requests == []


def test_the_keys_of_an_issuer_are_not_fetched_from_inside(inner: ScriptedHTTPServer, record_property: Record) -> None:
    attacks, issuer = Attacks(), "https://issuer.example"
    inner.requests.clear()
    for url in tricks(port_of(inner)):
        fetched: list[str] = []

        def fetch_noted(asked: str, url: str = url, fetched: list[str] = fetched) -> bytes:
            fetched.append(asked)
            if asked == issuer + DISCOVERY:
                return json.dumps({"issuer": issuer, "jwks_uri": url}).encode()
            return fetch(asked)

        with attacks.attack("STINT_OIDC_ISSUER"), pytest.raises(StoreUnavailable):
            KeySet(issuer, fetch_noted).find("key")
        if fetched != [issuer + DISCOVERY]:
            attacks.got_in.append(f"jwks_uri {url!r} was fetched")

    attacks.record(record_property)
    assert inner.requests == []
