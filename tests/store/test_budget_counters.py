import asyncio
import time
from functools import partial

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud

from stint.domain.principals import Budgets
from stint.spending.blocks import ReservedBlocks
from stint.spending.budgets import RunBudgets
from stint.spending.holders import BudgetHolder, month_of
from stint.store import budget_keys
from stint.store.budgets import BudgetSpent, BudgetStore
from stint.store.keys import Key

LATER = 4_000_000_000


@pytest.fixture
def budgets(cloud: Cloud) -> BudgetStore:
    return BudgetStore(cloud.client, cloud.table_name)


@pytest.fixture
def counter(tenant: str) -> Key:
    return budget_keys.key_budget(tenant, "k1", "2026-11")


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
        budget_keys.tenant_budget(tenant, "2026-11"),
        budget_keys.tenant_budget(tenant, "2026-12"),
        budget_keys.key_budget(tenant, "tenant", "2026-11"),
    ]

    counted = [await budgets.reserve(each, {"microdollars": 5}, {"microdollars": 5}, expires_at) for each in names]

    assert [each["microdollars"] for each in counted] == [5, 5, 5]
    assert {item["expires_at"]["N"] for item in cloud.items(tenant)} == {str(expires_at)}


async def test_money_that_a_run_returns_after_the_end_of_its_month_is_not_money_of_the_next_one(
    budgets: BudgetStore, tenant: str
) -> None:
    key_of = partial(budget_keys.key_budget, tenant, "k1")
    holder = BudgetHolder("API key 'k1'", key_of, Budgets(dollars_per_month=1))
    run = RunBudgets(ReservedBlocks(budgets), [holder])
    first = month_of(time.time())
    await run.admit(dollars=0.6)

    CLOCK.move(32 * 86_400)
    await run.close(0.1, started=True)

    counted = [await budgets.add(key_of(month), {"microdollars": 0}, LATER) for month in (first, month_of(time.time()))]
    assert [each["microdollars"] for each in counted] == [100_000, 0]
