import asyncio
import time
from collections.abc import AsyncGenerator
from functools import partial

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud

from stint.domain.errors import QuotaExceeded, RateLimitExceeded
from stint.domain.inference import (
    Decoding,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    TextChunk,
    UserInput,
)
from stint.domain.prices import MILLION, ModelPrice, Prices
from stint.domain.principals import Budgets
from stint.metering import Meter, set_meter
from stint.models.answer_money import MOST_TOP_UP
from stint.models.metered import MeteredModel
from stint.spending.blocks import ReservedBlocks
from stint.spending.budgets import RunBudgets
from stint.spending.holders import BudgetHolder, month_of
from stint.store import keys
from stint.store.budgets import BudgetSpent, BudgetStore
from stint.store.keys import Key

LATER = 4_000_000_000


@pytest.fixture
def budgets(cloud: Cloud) -> BudgetStore:
    return BudgetStore(cloud.client, cloud.table_name)


@pytest.fixture
def counter(tenant: str) -> Key:
    return keys.key_budget(tenant, "k1", "2026-11")


async def test_a_counter_never_passes_its_limit_under_a_hundred_parallel_writers(
    budgets: BudgetStore, counter: Key
) -> None:
    async def reserve() -> int:
        try:
            await budgets.reserve(counter, {"tokens_1": 7, "requests_1": 1}, {"tokens_1": 500}, LATER)
        except BudgetSpent:
            return 0
        return 1

    granted = sum(await asyncio.gather(*(reserve() for _ in range(100))))

    counted = await budgets.add(counter, {"tokens_1": 0}, LATER)
    assert granted == 500 // 7
    assert (counted["tokens_1"], counted["requests_1"]) == (7 * granted, granted)


async def test_one_amount_over_its_limit_refuses_all(budgets: BudgetStore, counter: Key) -> None:
    limits = {"tokens_1": 100, "microdollars": 10}
    await budgets.reserve(counter, {"tokens_1": 90, "microdollars": 10}, limits, LATER)

    with pytest.raises(BudgetSpent) as spent:
        await budgets.reserve(counter, {"tokens_1": 5, "microdollars": 1}, limits, LATER)

    assert (spent.value.counted["tokens_1"], spent.value.counted["microdollars"]) == (90, 10)


async def test_a_reservation_costs_one_unit_and_removes_earlier_minutes(
    budgets: BudgetStore, counter: Key, cloud: Cloud
) -> None:
    await budgets.reserve(counter, {"tokens_1": 5, "requests_1": 1}, {}, LATER)
    cloud.forget()

    counted = await budgets.reserve(counter, {"tokens_2": 5}, {"tokens_2": 5}, LATER, ["tokens_1", "requests_1"])

    assert cloud.units["UpdateItem"] == 1
    assert {name for name in counted if "_" in name} == {"tokens_2", "expires_at"}


async def test_what_was_spent_is_counted_above_the_limit_too(budgets: BudgetStore, counter: Key) -> None:
    await budgets.reserve(counter, {"tokens_1": 5}, {"tokens_1": 5}, LATER)

    counted = await budgets.add(counter, {"tokens_1": 20}, LATER)

    assert counted["tokens_1"] == 25


async def test_counters_of_tenants_keys_and_months_are_separate_and_expire(
    budgets: BudgetStore, tenant: str, cloud: Cloud
) -> None:
    expires_at = int(time.time()) + 60
    names = [
        keys.tenant_budget(tenant, "2026-11"),
        keys.tenant_budget(tenant, "2026-12"),
        keys.key_budget(tenant, "tenant", "2026-11"),
    ]

    counted = [await budgets.reserve(each, {"microdollars": 5}, {"microdollars": 5}, expires_at) for each in names]

    assert [each["microdollars"] for each in counted] == [5, 5, 5]
    assert {item["expires_at"]["N"] for item in cloud.items(tenant)} == {str(expires_at)}


async def test_money_that_a_run_returns_after_the_end_of_its_month_is_not_money_of_the_next_one(
    budgets: BudgetStore, tenant: str
) -> None:
    key_of = partial(keys.key_budget, tenant, "k1")
    holder = BudgetHolder("API key 'k1'", key_of, Budgets(dollars_per_month=1))
    run = RunBudgets(ReservedBlocks(budgets), [holder])
    first = month_of(time.time())
    await run.admit(dollars=0.6)

    CLOCK.move(32 * 86_400)
    await run.close(0.1, started=True)

    counted = [await budgets.add(key_of(month), {"microdollars": 0}, LATER) for month in (first, month_of(time.time()))]
    assert [each["microdollars"] for each in counted] == [100_000, 0]


CALLS = 64


def runs_of(blocks: ReservedBlocks, tenant: str, key_id: str, **budgets: float) -> RunBudgets:
    """Return the budgets of a run of a limited key in a limited tenant."""
    limits = Budgets.model_validate(budgets)
    tenants = BudgetHolder("Tenant", partial(keys.tenant_budget, tenant), limits)
    return RunBudgets(blocks, [tenants, BudgetHolder("Key", partial(keys.key_budget, tenant, key_id), limits)])


class Endless:
    """A model that streams words, each of them a token, until it is closed, and counts them."""

    def __init__(self) -> None:
        self.words = 0

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return 1

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        most = request.decoding.max_tokens or 40_000
        for word in range(most):
            self.words += 1
            if word % 100 == 0:
                await asyncio.sleep(0)
            yield TextChunk("word")
        yield Finished(FinishReason.stop)


@pytest.mark.parametrize("key_count", [1, 4])
async def test_a_burst_exceeds_the_money_by_at_most_one_top_up_for_each_open_call(
    budgets: BudgetStore, tenant: str, key_count: int
) -> None:
    tokens = 400_000
    processes = [ReservedBlocks(budgets) for _ in range(4)]
    models = [Endless() for _ in range(CALLS)]
    prices = Prices({"test/*": ModelPrice(input=0, output=10)})

    async def call(number: int, model: Endless) -> FinishReason | None:
        run = runs_of(processes[number % 4], tenant, f"k{number % key_count}", dollars_per_month=tokens * 10 / MILLION)
        set_meter(Meter(prices, spending=run))
        reason = None
        try:
            await run.admit(dollars=0.01)
            request = InferenceRequest("m", (UserInput("Hi"),), decoding=Decoding())
            async for chunk in MeteredModel(model, "test").stream(request):
                reason = chunk.reason if isinstance(chunk, Finished) else reason
        except QuotaExceeded:
            return None
        finally:
            await run.close(0, started=True)
        return reason

    ends = await asyncio.gather(*(asyncio.create_task(call(*each)) for each in enumerate(models)))

    streamed = sum(model.words for model in models)
    assert {FinishReason.budget} <= {*ends}
    assert tokens <= streamed <= tokens + CALLS * MOST_TOP_UP
    counted = await budgets.add(keys.tenant_budget(tenant, month_of(time.time())), {"microdollars": 0}, LATER)
    assert abs(int(counted["microdollars"]) - streamed * 10) <= CALLS * 20


async def test_tokens_above_a_minutes_limit_are_repaid_by_later_minutes(budgets: BudgetStore, tenant: str) -> None:
    with CLOCK.stop():
        CLOCK.move(60 - time.time() % 60 + 0.01)
        blocks, others = ReservedBlocks(budgets), ReservedBlocks(budgets)
        run = runs_of(blocks, tenant, "k1", tokens_per_minute=2_000)
        await run.admit()
        calls = [await run.admit_call(1_000, 0, 0) for _ in range(4)]
        for call in calls:
            await call.settle(5_003, 0)

        waits = []
        for _ in range(11):
            with pytest.raises(RateLimitExceeded, match="repays what earlier answers used") as refused:
                await runs_of(others, tenant, "k1", tokens_per_minute=2_000).admit()
            waits.append(refused.value.retry_after)
            CLOCK.move(60)
        CLOCK.move(4 - 60)
        assert waits == [waits[0] - 60 * minute for minute in range(11)]
        assert 60 + 18_012 / 2_000 * 60 <= waits[0] <= 60 + 18_012 / 2_000 * 60 + 4
        await runs_of(others, tenant, "k1", tokens_per_minute=2_000).admit()
        await runs_of(blocks, tenant, "k1", tokens_per_minute=2_000).admit()


async def test_parallel_excesses_are_all_repaid(budgets: BudgetStore, counter: Key) -> None:
    await asyncio.gather(*(budgets.postpone(counter, 1_000, 7, LATER) for _ in range(20)))

    counted = await budgets.postpone(counter, 1_000, 7, LATER)

    assert counted["repaid_at"] == 1_000 + 21 * 7
    assert (await budgets.postpone(counter, 5_000, 7, LATER))["repaid_at"] == 5_007


async def test_a_reservation_is_capped_at_what_is_left(budgets: BudgetStore, tenant: str) -> None:
    first, second = (runs_of(ReservedBlocks(budgets), tenant, "k1", dollars_per_month=1) for _ in range(2))
    await first.admit(dollars=0.9)

    await second.admit(dollars=0.9)

    call = await second.admit_call(1, 0.5, 0.02)
    assert call.dollars == pytest.approx(0.1)
    assert call.most_dollars == pytest.approx(0.1)
    assert await call.top_up(0.1) == 0
    with pytest.raises(QuotaExceeded, match="has spent its 1 dollars of this month, or requests that still run"):
        await second.admit_call(1, 0.5, 0.02)


async def test_money_whose_return_is_throttled_is_subtracted_from_the_next_reservation(
    own_cloud: Cloud, tenant: str
) -> None:
    budgets = BudgetStore(own_cloud.client, own_cloud.table_name)
    blocks = ReservedBlocks(budgets)
    run = runs_of(blocks, tenant, "k1", dollars_per_month=1)
    await run.admit(dollars=0.9)
    with own_cloud.proxy.fail("UpdateItem"):
        await run.close(0.1, started=True)
    own_cloud.forget()
    assert set(blocks.unsettled.values()) == {-800_000}

    again = runs_of(blocks, tenant, "k1", dollars_per_month=1)
    await again.admit(dollars=0.9)
    assert own_cloud.calls["UpdateItem"] == 2
    await again.close(0, started=True)

    counted = await budgets.add(keys.key_budget(tenant, "k1", month_of(time.time())), {"microdollars": 0}, LATER)
    assert counted["microdollars"] == 100_000
    assert +blocks.unsettled == {}


async def test_money_that_was_spent_and_could_not_be_counted_is_added_to_the_next_reservation(
    own_cloud: Cloud, tenant: str
) -> None:
    budgets = BudgetStore(own_cloud.client, own_cloud.table_name)
    blocks = ReservedBlocks(budgets)
    run = runs_of(blocks, tenant, "k1", dollars_per_month=1)
    await run.admit(dollars=0.1)
    with own_cloud.proxy.fail("UpdateItem"):
        await run.close(0.7, started=True)
    own_cloud.forget()

    call = runs_of(blocks, tenant, "k1", dollars_per_month=1)
    await call.admit(dollars=0.9)

    assert (await call.admit_call(1, 0.9, 0.1)).dollars == pytest.approx(0.3)


async def test_a_return_that_may_have_taken_effect_is_not_repeated(own_cloud: Cloud, tenant: str) -> None:
    blocks = ReservedBlocks(BudgetStore(own_cloud.client, own_cloud.table_name))
    run = runs_of(blocks, tenant, "k1", dollars_per_month=1)
    await run.admit(dollars=0.9)

    with own_cloud.proxy.failing("UpdateItem", lost=True):
        await run.close(0.1, started=True)

    assert +blocks.unsettled == {}
