"""Webhooks of sessions of OpenAI's Agents API, whose turns a stream or the worker runs."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from infra.local.engine import Engine
from openai import OpenAI
from tests.api.agents_api_client import CALL, WEATHER, OpenStream, post_events, result_of, start_session
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client
from tests.services.webhooks.webhook_fixture import types_of

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose_webhook_endpoints
from stint.domain.webhooks import EVENT_TYPES, CreateWebhookEndpoint
from stint.settings import Settings


@pytest.fixture
def client(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as client:
        yield client


@pytest.fixture(autouse=True)
def _endpoint(app_fixture: AppFixture, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store an endpoint of the tenant for all events."""
    for name, value in engine.environment().items():
        if name.startswith(("AWS_ACCESS", "AWS_SECRET")) or name.endswith("_KMS"):
            monkeypatch.setenv(name, value)
    key = engine.running.hold_credentials_key()
    adapters = Adapters(Settings(credentials_key_arn=key, allowed_hosts="127.0.0.1", scripted_models=True))
    endpoints = compose_webhook_endpoints(app_fixture.tenant, adapters, app_fixture.store)
    request = CreateWebhookEndpoint(name="shop", url="http://127.0.0.1:9/hook", event_types=[*EVENT_TYPES])
    asyncio.run(endpoints.create(request))


@pytest.mark.parametrize("streamed", [False, True])
def test_each_event_of_a_session_is_announced_once(
    client: OpenAI, http: httpx.Client, server: Served, app_fixture: AppFixture, *, streamed: bool
) -> None:
    session = start_session(client, CALL, tools=[WEATHER])
    if streamed:
        with OpenStream(server, session.id) as stream:
            stream.wait_for("requires_action")
            post_events(
                http, session.id, result_of(client.beta.agents.sessions.retrieve(session.id).required_actions[0])
            )
            stream.wait_for("idle")
    else:
        app_fixture.run_waiting()
        post_events(http, session.id, result_of(client.beta.agents.sessions.retrieve(session.id).required_actions[0]))
    app_fixture.run_waiting()  # after a stream, it finds nothing to do
    sent = app_fixture.queue.webhooks

    assert [kind.removeprefix("agent.session.") for kind in types_of(sent)] == [
        "created",
        "in_progress",
        "action_required",
        "in_progress",
        "turn.completed",
        "idle",
    ]
    assert len({task.event_id for task in sent}) == len(sent)
    [turn] = client.beta.agents.sessions.turns.list(session.id).data
    *others, completed, idle = [task.data["id"] for task in sent]
    assert {*others, idle} == {session.id}
    assert completed == turn.id
