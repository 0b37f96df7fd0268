"""Embeddings under budgets and stops: of requests, searches, and of the worker that ingests for a caller."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import until
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.errors import Forbidden, ModelError, QuotaExceeded, RateLimitExceeded, Stopped
from stint.domain.principals import Budgets, Principal
from stint.domain.usage import UsageSource
from stint.metering import find_meter
from stint.retrieval.port import Embeddings
from stint.spending.meters import Meters
from stint.spending.stop_monitor import WATCH_SECONDS
from stint.store.items import decode

LONG = "llama " * 200
PRICES = json.dumps({"words/*": {"input": 1_000, "output": 0}})


@pytest.fixture(autouse=True)
def _at_the_start_of_a_minute() -> Iterator[None]:
    CLOCK.move(60 - time.time() % 60 + 0.01)
    yield
    set_principal(None)


def act_as_key(tenant: str, **budgets: float) -> None:
    """Let the key k1 call, with budgets."""
    principal = Principal(tenant, "ann", frozenset({"use"}), "k1", budgets=Budgets.model_validate(budgets))
    set_principal(principal)


def knowledge_with(cloud: Cloud, tenant: str, **settings: object) -> KnowledgeFixture:
    return KnowledgeFixture(cloud, tenant, settings={"prices": PRICES} | settings)


def counter(cloud: Cloud, tenant: str) -> dict[str, int]:
    """Return the sums of the key's counter by what they count."""
    items = [decode(item) for item in cloud.items(tenant)]
    [found] = [item for item in items if item["pk"] == f"{tenant}#budget:key:k1"]
    return {str(name).split("_")[0]: value for name, value in found.items() if isinstance(value, int)}


def meters_of(knowledge: KnowledgeFixture) -> Meters:
    return knowledge.ingestion.meters


async def search(knowledge: KnowledgeFixture, store_id: str, query: str = "llama") -> list[str]:
    async with meters_of(knowledge).request():
        return await knowledge.find(store_id, query)


async def test_the_tokens_of_a_search_are_taken_from_the_budget_of_the_key(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant, tokens_per_minute=1_000)

    await search(knowledge, store_id, LONG)

    await search(knowledge, store_id, LONG)
    await search(knowledge, store_id, LONG)  # 301 tokens each
    with pytest.raises(RateLimitExceeded):
        await search(knowledge, store_id, LONG)
    assert counter(cloud, tenant)["tokens"] <= 1_000


async def test_a_search_is_a_request_of_the_budget(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant, requests_per_minute=1)
    assert await search(knowledge, store_id) == ["llama"]

    with pytest.raises(RateLimitExceeded, match="1 requests of this minute"):
        await search(knowledge, store_id)


async def test_the_price_of_embeddings_is_spent_from_the_money_of_the_month(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant, dollars_per_month=0.5)  # a query of 301 tokens costs 0.301

    await search(knowledge, store_id, LONG)

    assert counter(cloud, tenant)["microdollars"] == pytest.approx(301_000, abs=100)
    embedded = len(knowledge.embedder.texts)
    with pytest.raises(QuotaExceeded):
        await search(knowledge, store_id, LONG)
    assert len(knowledge.embedder.texts) == embedded


async def test_a_request_whose_embedding_was_refused_has_spent_no_tokens(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant, dollars_per_month=1)

    async def fail(*_: object, **__: object) -> Embeddings:
        raise ModelError("no", upstream_status=500)

    knowledge.embedder.embed = fail  # type: ignore[method-assign]  # a provider that fails
    with pytest.raises(ModelError):
        await search(knowledge, store_id, LONG)

    assert counter(cloud, tenant)["microdollars"] < 1_000


async def test_an_embedding_model_without_a_price_is_refused_where_money_is_limited(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant, prices=json.dumps({"Words/*": {"input": 1, "output": 0}}))
    store_id = await knowledge.create("llama")
    await knowledge.add(store_id, LONG)
    act_as_key(tenant, dollars_per_month=1)
    embedded = len(knowledge.embedder.texts)
    await knowledge.add(store_id, LONG)

    with pytest.raises(Forbidden, match="has no price"):
        await search(knowledge, store_id, LONG)

    assert len(knowledge.embedder.texts) == embedded
    act_as_key(tenant, tokens_per_minute=1_000)
    assert await search(knowledge, store_id, LONG) == ["llama"]


@pytest.mark.parametrize("tokens", [-5_000_000, 10**12])
async def test_tokens_of_an_embedding_that_cannot_be_true_are_estimated(cloud: Cloud, tenant: str, tokens: int) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant, dollars_per_month=1)
    embed = knowledge.embedder.embed

    async def tell(*told: Any, **options: Any) -> Embeddings:
        return Embeddings((await embed(*told, **options)).vectors, tokens)

    knowledge.embedder.embed = tell  # type: ignore[method-assign]  # a provider that reports false counts
    await search(knowledge, store_id, LONG)

    assert counter(cloud, tenant)["microdollars"] == pytest.approx(301_000, abs=100)


async def test_embeddings_are_in_the_sums_of_usage(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant, usage_sums=True)
    store_id = await knowledge.create("llama")
    act_as_key(tenant)

    await search(knowledge, store_id, LONG)
    found = await meters_of(knowledge).usage.read(None, None, ["key"], UsageSource("k1", "", ""))

    [own] = found.data
    assert (own.runs, own.model_calls, own.input_tokens) == (1, 1, 301)
    assert own.dollars == pytest.approx(0.301, abs=0.0001)


async def test_the_worker_counts_the_tokens_of_an_ingestion_for_the_key_that_added_the_file(
    cloud: Cloud, tenant: str
) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create()
    act_as_key(tenant, dollars_per_month=1, requests_per_minute=1)
    await knowledge.add(store_id, LONG)
    set_principal(None)  # the worker has no caller

    await knowledge.work()

    assert await knowledge.statuses(store_id) == ["completed"]
    assert counter(cloud, tenant)["microdollars"] == pytest.approx(301_000, abs=1_000)
    assert counter(cloud, tenant).get("requests", 0) == 0


async def test_a_document_fails_when_the_money_of_its_creator_is_spent(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create()
    act_as_key(tenant, dollars_per_month=0.4)
    await knowledge.add(store_id, LONG)
    await knowledge.add(store_id, LONG + "peru")

    await knowledge.work()

    assert sorted(await knowledge.statuses(store_id)) == ["completed", "failed"]


async def test_an_ingestion_waits_for_the_tokens_of_the_next_minute(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create()
    act_as_key(tenant, tokens_per_minute=400)
    await search(knowledge, store_id, LONG)
    await knowledge.add(store_id, LONG)

    working = asyncio.create_task(knowledge.work(120))
    ended, _ = await asyncio.wait({working}, timeout=0.5)
    CLOCK.move(60)
    await working

    assert not ended
    assert await knowledge.statuses(store_id) == ["completed"]


async def test_outside_of_a_run_nothing_is_counted(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant, tokens_per_minute=1)

    assert await knowledge.find(store_id, LONG) == ["llama"]


# ---- stops


class Blocking:
    """An embedding call that never ends."""

    def __init__(self) -> None:
        self.calls = 0

    async def embed(self, _model: str, _texts: Sequence[str], **_: object) -> Embeddings:
        self.calls += 1
        await asyncio.Event().wait()
        raise AssertionError


def block(knowledge: KnowledgeFixture) -> Blocking:
    blocking = Blocking()
    knowledge.embedder.embed = blocking.embed  # type: ignore[method-assign, assignment]  # a provider that does not answer
    return blocking


@pytest.mark.parametrize("name", ["key:k1", "tenant"])
async def test_a_stopped_caller_cannot_search(cloud: Cloud, tenant: str, name: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant)
    await cloud.store.stops.add(tenant, name, 1_700_000_000)

    with pytest.raises(Stopped):
        await search(knowledge, store_id)


async def test_a_stopped_key_does_not_stop_another_key(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant)
    await cloud.store.stops.add(tenant, "key:k2", 1_700_000_000)

    assert await search(knowledge, store_id) == ["llama"]


async def test_a_running_search_ends_at_the_next_read_of_the_stops(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create("llama")
    act_as_key(tenant)
    blocking = block(knowledge)

    running = asyncio.create_task(search(knowledge, store_id))
    await until(lambda: blocking.calls == 1)
    await cloud.store.stops.add(tenant, "key:k1", 1_700_000_000)
    CLOCK.move(WATCH_SECONDS)

    with pytest.raises(Stopped):
        await asyncio.wait_for(running, 30)


async def test_a_request_that_acts_does_not_begin_when_its_caller_was_stopped(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    act_as_key(tenant)
    await cloud.store.stops.add(tenant, "key:k1", 1_700_000_000)
    begun = False

    with pytest.raises(Stopped):
        async with meters_of(knowledge).request(acts=True):
            begun = True

    assert not begun


@pytest.mark.parametrize("name", ["key:k1", "tenant"])
async def test_a_queued_ingestion_of_a_stopped_caller_fails_without_an_embedding(
    cloud: Cloud, tenant: str, name: str
) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create()
    act_as_key(tenant)
    await knowledge.add(store_id, "llama")
    set_principal(None)
    await cloud.store.stops.add(tenant, name, 1_700_000_000)

    await knowledge.work()

    assert await knowledge.statuses(store_id) == ["failed"]
    assert knowledge.embedder.texts == []


async def test_a_running_ingestion_of_a_stopped_tenant_fails_at_the_next_read_of_the_stops(
    cloud: Cloud, tenant: str
) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create()
    act_as_key(tenant)
    await knowledge.add(store_id, "llama")
    blocking = block(knowledge)

    running = asyncio.create_task(knowledge.work())
    await until(lambda: blocking.calls == 1)
    await cloud.store.stops.add(tenant, "tenant", 1_700_000_000)
    CLOCK.move(WATCH_SECONDS)
    await asyncio.wait_for(running, 30)

    assert await knowledge.statuses(store_id) == ["failed"]
    assert knowledge.index.keys == []


async def test_a_task_names_the_caller_that_sent_it(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)
    store_id = await knowledge.create()
    act_as_key(tenant, tokens_per_minute=9_000)

    await knowledge.add(store_id, "llama")

    [task] = knowledge.queue.ingestions
    assert task.principal is not None
    assert (task.principal.key_id, task.principal.subject) == ("k1", "ann")
    assert task.principal.budgets.tokens_per_minute == 9_000


async def test_the_meter_of_a_request_ends_with_it(cloud: Cloud, tenant: str) -> None:
    knowledge = knowledge_with(cloud, tenant)

    async with meters_of(knowledge).request():
        meter = find_meter()

    assert meter is not None
    assert meter.closed
    assert meters_of(knowledge).stops.watching is None
