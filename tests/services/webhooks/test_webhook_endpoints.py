"""Webhook endpoints: their limits, their secrets, and a sample event."""

import asyncio
import logging
import time

import pytest
from openai import InvalidWebhookSignatureError
from pydantic import ValidationError
from tests.clock import CLOCK
from tests.servers.scripted_http import Reply
from tests.services.webhooks.conftest import MakeWebhookFixture
from tests.services.webhooks.webhook_fixture import WebhookFixture, answering, unwrap
from tests.store.conftest import Cloud

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose_webhook_endpoints
from stint.domain.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable, UnresolvableURL
from stint.domain.webhooks import MOST_ENDPOINTS, CreateWebhookEndpoint, UpdateWebhookEndpoint, WebhookEndpoint
from stint.settings import Settings

URL = "http://127.0.0.1:9/hook"


async def test_a_stack_without_key_refuses_endpoints(cloud: Cloud, tenant: str) -> None:
    endpoints = compose_webhook_endpoints(tenant, Adapters(Settings(allowed_hosts="127.0.0.1")), cloud.store)

    with pytest.raises(InvalidRequest, match="CredentialsKeyArn"):
        await endpoints.create(CreateWebhookEndpoint(name="shop", url=URL, event_types=["response.completed"]))

    assert cloud.items(tenant) == []


async def test_the_secret_is_in_no_record_and_shown_twice_only(
    webhooks: WebhookFixture, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with answering() as receiver:
        created = await webhooks.create(receiver.url)
        rotated = await webhooks.endpoints.rotate_secret(created.id, keeps_previous=True)
        await webhooks.endpoints.send_test(created.id, "response.completed")
        shown = [
            await webhooks.endpoints.get(created.id),
            *(await webhooks.endpoints.list(None, 10)).data,
            await webhooks.endpoints.update(created.id, UpdateWebhookEndpoint(name="other")),
        ]

    for secret in (created.signing_secret, rotated.signing_secret):
        assert secret.startswith("whsec_")
        core = secret.removeprefix("whsec_")[:20]
        assert core not in f"{cloud.items(webhooks.tenant)}{shown}{caplog.text}{receiver.requests}"
        assert core not in "".join(str(record.__dict__) for record in caplog.records)


async def test_requests_at_the_same_time_do_not_exceed_the_limit(webhooks: WebhookFixture) -> None:
    made = await asyncio.gather(*(webhooks.create(URL) for _ in range(MOST_ENDPOINTS + 3)), return_exceptions=True)

    refused = [each for each in made if isinstance(each, Exception)]
    assert [type(each) for each in refused] == [Conflict] * 3
    assert len((await webhooks.endpoints.list(None, 100)).data) == MOST_ENDPOINTS


async def test_a_secret_that_is_copied_into_another_endpoint_is_useless(webhooks: WebhookFixture) -> None:
    mine, other = await webhooks.create(URL), await webhooks.create(URL)
    store = webhooks.store.webhook_endpoints
    source, target = [await store.get(webhooks.tenant, each.id) for each in (other, mine)]
    copied = target.stored.model_copy(update={"sealed": source.stored.sealed})
    await store.replace(webhooks.tenant, target, copied)

    with pytest.raises(StoreUnavailable, match="decrypted"):
        await webhooks.endpoints.send_test(mine.id, "response.completed")


async def test_a_page_starts_after_an_endpoint(webhooks: WebhookFixture) -> None:
    ids = [(await webhooks.create(URL)).id for _ in range(3)]

    first = await webhooks.endpoints.list(None, 2)
    second = await webhooks.endpoints.list(first.data[-1].id, 2)

    assert [each.id for each in (*first.data, *second.data)] == ids[::-1]
    assert (first.has_more, second.has_more) == (True, False)
    with pytest.raises(NotFound):
        await webhooks.endpoints.list("we_other", 2)


async def test_a_deleted_endpoint_leaves_its_place(webhooks: WebhookFixture) -> None:
    created = [await webhooks.create(URL) for _ in range(MOST_ENDPOINTS)]
    await webhooks.endpoints.delete(created[3].id)

    assert (await webhooks.create(URL)).id not in {each.id for each in created}
    with pytest.raises(NotFound):
        await webhooks.endpoints.delete(created[3].id)


async def test_another_tenant_finds_no_endpoint(
    webhooks: WebhookFixture, make_webhook_fixture: MakeWebhookFixture
) -> None:
    created, other = await webhooks.create(URL), make_webhook_fixture()
    other.endpoints = compose_webhook_endpoints(f"{webhooks.tenant}x", other.adapters, other.store)

    assert (await other.endpoints.list(None, 10)).data == []
    for call in (
        other.endpoints.get(created.id),
        other.endpoints.delete(created.id),
        other.endpoints.rotate_secret(created.id, keeps_previous=False),
        other.endpoints.send_test(created.id, "response.completed"),
        other.endpoints.update(created.id, UpdateWebhookEndpoint(name="mine")),
    ):
        with pytest.raises(NotFound):
            await call
    assert await webhooks.endpoints.get(created.id) == WebhookEndpoint.model_validate(created.model_dump())


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://10.0.0.7/hook", "private"),
        ("https://169.254.169.254/latest", "link-local"),
        ("http://203.0.114.1/hook", "not https"),
        ("ftp://127.0.0.1/hook", "scheme"),
        ("https://user:pw@127.0.0.1/hook", "user name"),
    ],
)
async def test_a_url_outside_is_https_and_public(webhooks: WebhookFixture, url: str, reason: str) -> None:
    created = await webhooks.create(URL)

    with pytest.raises(InvalidRequest, match=reason) as refused:
        await webhooks.create(url)
    with pytest.raises(InvalidRequest, match=reason):
        await webhooks.endpoints.update(created.id, UpdateWebhookEndpoint(url=url))

    assert refused.value.param == "url"


async def test_a_host_without_address_is_accepted_for_https(webhooks: WebhookFixture) -> None:
    created = await webhooks.create("https://shop.invalid/hook")
    await webhooks.deliveries.handle(webhooks.task(created.id))

    assert [task.attempt for task in webhooks.messages] == [1]
    with pytest.raises(UnresolvableURL):
        await webhooks.create("http://shop.invalid/hook")


async def test_loopback_is_refused_by_default(make_webhook_fixture: MakeWebhookFixture) -> None:
    with pytest.raises(InvalidRequest, match="loopback"):
        await make_webhook_fixture(allowed="").create(URL)


@pytest.mark.parametrize(
    "fields",
    [
        {"event_types": []},
        {"event_types": ["batch.completed"]},
        {"name": "a\nb"},
        {"name": " "},
        {"url": "https://example.com/\r\nx-other: 1"},
        {"url": f"https://example.com/{'x' * 2048}"},
        {"secret": "whsec_mine"},
    ],
)
def test_a_malformed_endpoint_is_refused(fields: dict[str, object]) -> None:
    valid = {"name": "shop", "url": "https://example.com", "event_types": ["response.completed"]}

    with pytest.raises(ValidationError):
        CreateWebhookEndpoint.model_validate(valid | fields)


async def test_a_rotated_secret_signs_beside_the_previous_one(webhooks: WebhookFixture) -> None:
    with answering() as receiver:
        created = await webhooks.create(receiver.url)
        rotated = await webhooks.endpoints.rotate_secret(created.id, keeps_previous=True)
        await webhooks.deliveries.handle(webhooks.task(created.id))
        CLOCK.move(86_401)
        await webhooks.deliveries.handle(webhooks.task(created.id))
    both, late = receiver.requests

    assert rotated.signing_secret != created.signing_secret
    assert rotated.signing_secret_hint != created.signing_secret_hint
    assert len(both.headers["webhook-signature"].split(" ")) == 2
    assert len(late.headers["webhook-signature"].split(" ")) == 1


async def test_a_rotation_ends_the_previous_secret_by_default(webhooks: WebhookFixture) -> None:
    with answering() as receiver:
        created = await webhooks.create(receiver.url)
        rotated = await webhooks.endpoints.rotate_secret(created.id, keeps_previous=False)
        await webhooks.deliveries.handle(webhooks.task(created.id))
        [received] = receiver.requests

        with pytest.raises(InvalidWebhookSignatureError):
            unwrap(received, created.signing_secret)
        assert unwrap(received, rotated.signing_secret).data.id == "resp_1"


async def test_an_unchanged_update_keeps_the_time_of_the_change(webhooks: WebhookFixture) -> None:
    created = await webhooks.create(URL)
    CLOCK.move(100)

    same = await webhooks.endpoints.update(created.id, UpdateWebhookEndpoint(name="shop"))
    changed = await webhooks.endpoints.update(created.id, UpdateWebhookEndpoint(event_types=["agent.session.idle"]))

    assert same.updated_at == created.updated_at
    assert changed.updated_at >= created.updated_at + 100
    assert changed.event_types == ["agent.session.idle"]


async def test_a_sample_event_returns_the_status(webhooks: WebhookFixture) -> None:
    with answering(503) as receiver:
        created = await webhooks.create(receiver.url)
        result = await webhooks.endpoints.send_test(created.id, "agent.session.turn.failed")
        event = unwrap(receiver.requests[0], created.signing_secret)

    assert (result.status_code, result.event_type, result.webhook_endpoint_id) == (
        503,
        "agent.session.turn.failed",
        created.id,
    )
    assert event.type == "agent.session.turn.failed"
    assert abs(event.created_at - time.time()) < 60


async def test_a_sample_event_without_answer_is_an_error(webhooks: WebhookFixture) -> None:
    with answering() as receiver:
        created = await webhooks.create(f"{receiver.url}/secret-path")
        receiver.script(Reply(status=0))
        with pytest.raises(InvalidRequest, match="gave no answer") as failed:
            await webhooks.endpoints.send_test(created.id, "response.completed")

    assert "secret-path" not in failed.value.message
