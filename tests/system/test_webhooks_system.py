"""Webhooks of `make run` with OpenAI's client: an endpoint on this machine gets what runs cause."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openai import APIStatusError, DefaultHttpxClient, OpenAI
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.system.run_process import Run

MODEL = "scripted/demo"


@pytest.fixture
def receiver() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(lambda _: Reply((b"{}",))) as receiver:
        yield receiver


def wait_for_events(receiver: ScriptedHTTPServer, *types: str) -> dict[str, Received]:
    """Return the first request of each type, when all have arrived."""
    deadline = time.monotonic() + 60
    while not {*types} <= (found := {each.json()["type"]: each for each in reversed(receiver.requests)}).keys():
        assert time.monotonic() < deadline, found.keys()
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def webhooks_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run `make run` with processes that learn of new endpoints at once."""
    run = Run(tmp_path_factory.mktemp("webhooks"), 0, shell={"STINT_AGENT_CACHE_SECONDS": "0"})
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


@pytest.fixture
def client(webhooks_run: Run) -> Iterator[OpenAI]:
    url, http = f"http://127.0.0.1:{webhooks_run.port}/v1", DefaultHttpxClient(trust_env=False)
    with OpenAI(base_url=url, api_key="key", http_client=http) as client:
        yield client
        for endpoint in client.webhooks.list():
            client.webhooks.delete(endpoint.id)


def create_endpoint(client: OpenAI, receiver: ScriptedHTTPServer, *types: str) -> str:
    """Create an endpoint, and return its secret."""
    body: dict[str, Any] = {"name": "shop", "url": f"{receiver.url}/hook", "event_types": [*types]}
    return client.webhooks.create(**body).signing_secret


def verify(client: OpenAI, received: Received, secret: str) -> Any:
    """Verify an event as the client does, whose clock other tests may have moved, and return it."""
    client.webhooks.verify_signature(received.body.decode(), received.headers, secret=secret, tolerance=10**9)
    return received.json()


def test_endpoints_are_managed_with_the_client(client: OpenAI, receiver: ScriptedHTTPServer) -> None:
    webhooks = client.webhooks
    created = webhooks.create(name="shop", url=receiver.url, event_types=["response.failed"])
    rotated = webhooks.rotate_secret(created.id, keep_old_secret_active_for_24_hours=True)
    updated = webhooks.update(created.id, name="other")
    result = webhooks.test(created.id, event_type="response.failed")
    [received] = receiver.requests

    assert [each.id for each in webhooks.list(limit=1)][:1] == [created.id]
    assert webhooks.retrieve(created.id) == updated
    assert (updated.name, result.status_code) == ("other", 200)
    assert "agent.session.idle" in webhooks.event_types.list().data
    for secret in (created.signing_secret, rotated.signing_secret):
        assert verify(client, received, secret)["type"] == "response.failed"
    assert webhooks.delete(created.id).deleted
    with pytest.raises(APIStatusError, match="not found"):
        webhooks.retrieve(created.id)


def test_background_and_foreground_responses_are_announced(client: OpenAI, receiver: ScriptedHTTPServer) -> None:
    secret = create_endpoint(client, receiver, "response.completed", "response.cancelled")
    queued = client.responses.create(model=MODEL, input="say: hi", background=True)
    event = wait_for_events(receiver, "response.completed")["response.completed"]
    receiver.forget()
    answered = client.responses.create(model=MODEL, input="say: hi")
    second = wait_for_events(receiver, "response.completed")["response.completed"]

    assert verify(client, event, secret)["data"] == {"id": queued.id}
    assert second.json()["data"] == {"id": answered.id}


def test_turns_of_a_session_are_announced(webhooks_run: Run, client: OpenAI, receiver: ScriptedHTTPServer) -> None:
    create_endpoint(client, receiver, "agent.session.created", "agent.session.turn.completed", "agent.session.idle")
    with httpx.Client(base_url=f"http://127.0.0.1:{webhooks_run.port}", trust_env=False, timeout=60) as http:
        config = {"agent_config": {"model": MODEL, "instructions": ""}}
        agent_id = http.post("/v1/agents", json=config).json()["agent_id"]
        place = f"/v1/agents/{agent_id}/session"
        session_id = http.post(place, json={"session_name": "s"}).json()["session_id"]
        body = {"messages": [{"role": "user", "content": "say: hi"}]}
        turn = http.post(f"{place}/{session_id}/turn", json=body).json()
    found = wait_for_events(receiver, "agent.session.created", "agent.session.turn.completed", "agent.session.idle")

    data = {kind: received.json()["data"] for kind, received in found.items()}
    assert data["agent.session.created"]["id"] == data["agent.session.idle"]["id"] == session_id
    assert data["agent.session.turn.completed"]["id"] == turn["turn_id"]
