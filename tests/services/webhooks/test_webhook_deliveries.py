"""Deliveries of webhooks: signatures, attempts over a day, and endpoints that fail."""

import asyncio
import base64
import hmac
import json
import logging
from hashlib import sha256
from typing import Any

import pytest
from functions.worker import app
from httpcore import ConnectError
from tests.clock import CLOCK
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.services.webhooks.conftest import MakeWebhookFixture
from tests.services.webhooks.webhook_fixture import WebhookFixture, answering, unwrap

from stint.domain.errors import StoreUnavailable
from stint.domain.tasks import WebhookTask
from stint.domain.webhooks import UpdateWebhookEndpoint
from stint.net.transport import CheckedBackend
from stint.services.webhooks.webhook_deliveries import DELAYS, FAILING_SECONDS, GRACE_SECONDS, Undelivered


async def test_an_event_is_signed_as_standard_webhooks_says(webhooks: WebhookFixture) -> None:
    with answering() as receiver:
        created = await webhooks.create(f"{receiver.url}/hook?token=1")
        await webhooks.deliveries.handle(webhooks.task(created.id))
    [received] = receiver.requests

    key = base64.b64decode(created.signing_secret.removeprefix("whsec_"))
    signed = f"{received.headers['webhook-id']}.{received.headers['webhook-timestamp']}.".encode() + received.body
    expected = base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()
    assert received.headers["webhook-signature"] == f"v1,{expected}"
    assert (received.method, received.path) == ("POST", "/hook?token=1")
    assert received.json() == {
        "id": "evt_1",
        "object": "event",
        "created_at": 1,
        "type": "response.completed",
        "data": {"id": "resp_1"},
    }
    assert received.headers["content-type"] == "application/json"
    assert unwrap(received, created.signing_secret).type == "response.completed"
    assert webhooks.messages == []


async def test_failed_attempts_are_repeated_over_a_day(webhooks: WebhookFixture) -> None:
    times = list[float]()
    with answering(500) as receiver:
        created = await webhooks.create(receiver.url)
        with CLOCK.stop():
            start = CLOCK.ahead
            await webhooks.deliveries.handle(webhooks.task(created.id))
            times.append(0)
            while len(times) < len(DELAYS):
                before = len(receiver.requests)
                await webhooks.receive_next()
                if len(receiver.requests) > before:
                    times.append(CLOCK.ahead - start)
            last = await webhooks.receive_until_due()
            with pytest.raises(Undelivered, match="evt_1"):
                await webhooks.deliveries.handle(last)
            times.append(CLOCK.ahead - start)

    assert times == [sum(DELAYS[:count]) for count in range(len(DELAYS) + 1)]
    assert sum(DELAYS) > 86_400
    assert {each.headers["webhook-id"] for each in receiver.requests} == {"evt_1"}
    assert {each.body for each in receiver.requests} == {receiver.requests[0].body}
    assert webhooks.messages == []


async def test_a_message_before_its_time_is_sent_again(webhooks: WebhookFixture) -> None:
    with answering() as receiver, CLOCK.stop():
        created = await webhooks.create(receiver.url)
        await webhooks.deliveries.handle(webhooks.task(created.id, due_at=CLOCK.read(lambda: 0) + 10**10))

    [again] = webhooks.messages
    assert (again.delay_seconds, again.due_at) == (900, CLOCK.read(lambda: 0) + 10**10)
    assert receiver.requests == []


async def test_an_endpoint_that_recovers_gets_the_event(webhooks: WebhookFixture) -> None:
    with answering() as receiver:
        created = await webhooks.create(receiver.url)
        receiver.script(Reply(status=503))
        await webhooks.deliveries.handle(webhooks.task(created.id))
        failing = await webhooks.endpoints.get(created.id)
        await webhooks.receive_next()
        recovered = await webhooks.endpoints.get(created.id)

    assert len(receiver.requests) == 2
    assert failing.failing_since is not None
    assert (recovered.failing_since, recovered.updated_at) == (None, created.updated_at)
    assert webhooks.messages == []


async def test_an_endpoint_that_is_gone_is_disabled(webhooks: WebhookFixture) -> None:
    with answering(410) as receiver:
        created = await webhooks.create(receiver.url)
        for number in (1, 2):
            await webhooks.deliveries.handle(webhooks.task(created.id, event_id=f"evt_{number}"))
        gone = await webhooks.endpoints.get(created.id)
        again = await webhooks.endpoints.update(created.id, UpdateWebhookEndpoint(url=receiver.url))
        await webhooks.deliveries.handle(webhooks.task(created.id, event_id="evt_3"))

    assert (gone.status, again.status, again.failing_since) == ("disabled", "enabled", None)
    assert [each.headers["webhook-id"] for each in receiver.requests] == ["evt_1", "evt_3"]
    assert webhooks.messages == []


async def test_a_url_that_is_corrected_during_an_attempt_gets_the_event(webhooks: WebhookFixture) -> None:
    events, loop = list[str](), asyncio.get_running_loop()

    with answering() as right:

        def correct(received: Received) -> Reply:
            update = webhooks.endpoints.update(created.id, UpdateWebhookEndpoint(url=right.url))
            asyncio.run_coroutine_threadsafe(update, loop).result()
            events.append(received.headers["webhook-id"])
            return Reply((), 410)

        with ScriptedHTTPServer(correct) as wrong:
            created = await webhooks.create(wrong.url)
            await webhooks.deliveries.handle(webhooks.task(created.id))
        await webhooks.receive_next()

    assert (await webhooks.endpoints.get(created.id)).status == "enabled"
    assert [each.headers["webhook-id"] for each in right.requests] == events == ["evt_1"]


async def test_an_event_of_a_deleted_endpoint_is_dropped(webhooks: WebhookFixture) -> None:
    with answering(500) as receiver:
        created = await webhooks.create(receiver.url)
        await webhooks.deliveries.handle(webhooks.task(created.id))
        await webhooks.endpoints.delete(created.id)
        await webhooks.receive_next()

    assert len(receiver.requests) == 1
    assert webhooks.messages == []


async def test_an_endpoint_that_fails_for_days_is_disabled(webhooks: WebhookFixture) -> None:
    with answering(500) as receiver:
        created = await webhooks.create(receiver.url)
        await webhooks.deliveries.handle(webhooks.task(created.id))
        webhooks.messages.clear()
        CLOCK.move(GRACE_SECONDS)
        await webhooks.deliveries.handle(webhooks.task(created.id, event_id="evt_2"))
        with pytest.raises(Undelivered, match="evt_2"):
            await webhooks.receive_next()
        CLOCK.move(FAILING_SECONDS - GRACE_SECONDS)
        await webhooks.deliveries.handle(webhooks.task(created.id, event_id="evt_3"))
        disabled = await webhooks.endpoints.get(created.id)

    assert disabled.status == "disabled"
    assert len(receiver.requests) == 4
    assert webhooks.messages == []


async def test_redirects_are_not_followed(webhooks: WebhookFixture) -> None:
    with answering() as other, answering() as receiver:
        created = await webhooks.create(receiver.url)
        receiver.script(Reply(status=307, headers={"Location": f"{other.url}/steal"}))
        await webhooks.deliveries.handle(webhooks.task(created.id))

    assert other.requests == []
    assert [task.attempt for task in webhooks.messages] == [1]


async def test_an_address_that_became_private_is_not_called(
    webhooks: WebhookFixture, make_webhook_fixture: MakeWebhookFixture
) -> None:
    with answering() as receiver:
        created = await webhooks.create(receiver.url)
        strict = make_webhook_fixture(allowed="")
        await strict.deliveries.handle(strict.task(created.id))

    assert receiver.requests == []
    assert [task.attempt for task in strict.messages] == [1]


async def test_plain_http_to_a_public_address_is_not_called(
    webhooks: WebhookFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = list[str]()

    async def connect(_: object, host: str, *__: object, **___: object) -> None:
        called.append(host)
        raise ConnectError("No connection is made.")

    created = await webhooks.create("http://127.0.0.1:9/hook")
    found = await webhooks.store.webhook_endpoints.get(webhooks.tenant, created.id)
    moved = found.stored.resource.model_copy(update={"url": "http://93.184.215.14/hook"})
    await webhooks.store.webhook_endpoints.replace(
        webhooks.tenant, found, found.stored.model_copy(update={"resource": moved})
    )
    monkeypatch.setattr(CheckedBackend, "connect_tcp", connect)
    await webhooks.deliveries.handle(webhooks.task(created.id))

    assert called == []
    assert [task.attempt for task in webhooks.messages] == [1]


async def test_the_last_message_goes_to_the_dead_letter_queue(
    webhooks: WebhookFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.composition, "make_webhook_deliveries", lambda _: webhooks.deliveries)
    with answering(500) as receiver:
        created = await webhooks.create(receiver.url)
        tasks = [webhooks.task(created.id, attempt=attempt) for attempt in (len(DELAYS) - 1, len(DELAYS))]
        answers = [await asyncio.to_thread(app.handler, message(task), Context()) for task in tasks]

    assert [each["batchItemFailures"] for each in answers] == [[], [{"itemIdentifier": "m1"}]]
    assert [task.attempt for task in webhooks.messages] == [len(DELAYS)]


class Context:
    aws_request_id = "request"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def message(task: WebhookTask) -> dict[str, Any]:
    """Return an event of the queue."""
    record = {
        "messageId": "m1",
        "receiptHandle": "handle",
        "body": task.model_dump_json(),
        "attributes": {"ApproximateReceiveCount": "1"},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:work",
    }
    return {"Records": [record]}


async def test_an_unreachable_endpoint_is_left_alone_for_a_minute(webhooks: WebhookFixture) -> None:
    with answering() as receiver:
        created = await webhooks.create(receiver.url)
        receiver.script(Reply(status=0))
        await webhooks.deliveries.handle(webhooks.task(created.id, event_id="evt_1"))
        await webhooks.deliveries.handle(webhooks.task(created.id, event_id="evt_2"))
        called = len(receiver.requests)
        await webhooks.receive_next()
        again = [each.headers["webhook-id"] for each in receiver.requests]
        receiver.script(Reply(status=0))
        await webhooks.deliveries.handle(webhooks.task(created.id, event_id="evt_4"))
        CLOCK.move(61)
        await webhooks.deliveries.handle(webhooks.task(created.id, event_id="evt_3"))

    assert (called, again) == (1, ["evt_1", "evt_1"])
    assert receiver.requests[-1].headers["webhook-id"] == "evt_3"
    assert [task.event_id for task in webhooks.messages] == ["evt_2", "evt_4"]


async def test_an_answer_is_neither_read_nor_logged(webhooks: WebhookFixture, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with answering() as receiver:
        created = await webhooks.create(f"{receiver.url}/hook?token=s3cret")
        receiver.script(Reply((b"tell-tale" * 1000,), status=500, ending="hang"))
        await webhooks.deliveries.handle(webhooks.task(created.id))

    logged = json.dumps([record.__dict__ for record in caplog.records], default=str)
    assert "it answered 500" in logged
    assert not [text for text in ("tell-tale", "s3cret", created.signing_secret[:20]) if text in logged]


async def test_a_key_that_fails_costs_an_attempt_only(
    webhooks: WebhookFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> str:
        raise StoreUnavailable("KMS is down.")

    with answering() as receiver:
        created = await webhooks.create(receiver.url)
        monkeypatch.setattr(type(webhooks.adapters.credential_cipher), "decrypt", fail)
        await webhooks.deliveries.handle(webhooks.task(created.id))

    assert receiver.requests == []
    assert [task.attempt for task in webhooks.messages] == [1]
    assert (await webhooks.endpoints.get(created.id)).failing_since is None
