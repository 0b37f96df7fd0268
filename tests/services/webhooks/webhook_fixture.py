"""Webhook endpoints of a tenant, the messages of their deliveries, and a receiver on loopback."""

import time
from collections.abc import Sequence
from typing import Any

from infra.local.engine import Engine
from openai import DefaultHttpxClient, OpenAI
from tests.clock import CLOCK
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.store.conftest import Cloud

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose_webhook_endpoints
from stint.domain.schema import Schema
from stint.domain.tasks import TASK, WebhookTask
from stint.domain.webhooks import EVENT_TYPES, CreateWebhookEndpoint, WebhookEndpointWithSecret
from stint.services.webhooks.signing_secrets import SigningSecrets
from stint.services.webhooks.webhook_deliveries import WebhookDeliveries
from stint.settings import Settings

LOOPBACK = "127.0.0.1"


class WebhookFixture:
    """A process of the worker that delivers a tenant's webhooks. `messages` are those that it sends to its queue."""

    def __init__(self, cloud: Cloud, tenant: str, engine: Engine, allowed: str = LOOPBACK) -> None:
        self.tenant, self.store = tenant, cloud.store
        key = engine.running.hold_credentials_key()
        self.adapters = Adapters(Settings(credentials_key_arn=key, allowed_hosts=allowed, scripted_models=True))
        self.endpoints = compose_webhook_endpoints(tenant, self.adapters, cloud.store)
        self.messages: list[WebhookTask] = []
        secrets = SigningSecrets(tenant, self.adapters.credential_cipher)
        self.deliveries = WebhookDeliveries(
            tenant, cloud.store.webhook_endpoints, secrets, self.adapters.guard, self.send
        )

    async def send(self, task: Schema) -> None:
        """Accept a message as SQS does: as JSON, with a delay of 15 minutes at most."""
        assert isinstance(task, WebhookTask)
        assert task.delay_seconds <= 900
        read = TASK.validate_json(task.model_dump_json())
        assert isinstance(read, WebhookTask)
        self.messages.append(read.model_copy(update={"delay_seconds": task.delay_seconds}))

    async def create(self, url: str, *event_types: str) -> WebhookEndpointWithSecret:
        request = CreateWebhookEndpoint(name="shop", url=url, event_types=list(event_types or EVENT_TYPES))
        return await self.endpoints.create(request)

    def task(self, endpoint_id: str, **fields: Any) -> WebhookTask:
        """Return the message of an event."""
        event = {"event_id": "evt_1", "type": "response.completed", "created_at": 1, "data": {"id": "resp_1"}}
        return WebhookTask(**{"tenant": self.tenant, "endpoint_id": endpoint_id} | event | fields)

    async def receive_next(self) -> WebhookTask:
        """Advance the clock to the delivery of the next message, handle it, and return it."""
        task = self.messages.pop(0)
        CLOCK.move(task.delay_seconds)
        await self.deliveries.handle(task)
        return task

    async def receive_until_due(self) -> WebhookTask:
        """Advance the clock until a message is due, and return it before it is handled."""
        while (task := self.messages[0]).due_at - time.time() - task.delay_seconds >= 1:
            await self.receive_next()
        CLOCK.move(self.messages.pop().delay_seconds)
        return task


def answering(status: int = 200) -> ScriptedHTTPServer:
    """Return a receiver that answers each event with a status."""
    return ScriptedHTTPServer(lambda _: Reply((b"{}",), status=status))


def unwrap(received: Received, secret: str) -> Any:
    """Verify an event as OpenAI's client does, and return it. Raises InvalidWebhookSignatureError."""
    with OpenAI(api_key="none", http_client=DefaultHttpxClient(trust_env=False)) as client:
        return client.webhooks.unwrap(received.body.decode(), received.headers, secret=secret)


def types_of(tasks: Sequence[WebhookTask]) -> list[str]:
    return [task.type for task in tasks]
