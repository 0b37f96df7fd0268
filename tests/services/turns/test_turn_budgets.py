"""Turns under budgets of their key and tenant."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, Script, script
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.errors import NotFound, QuotaExceeded, RateLimitExceeded
from stint.domain.inference import Finished, FinishReason, TextChunk, ToolCallChunk, Usage
from stint.domain.principals import Budgets, Principal
from stint.store.items import decode

USED = Usage(input_tokens=100, output_tokens=20, total_tokens=120)
ALL = {"requests_per_minute": 60, "tokens_per_minute": 100_000, "dollars_per_month": 100}
PRICES = json.dumps({"test/*": {"input": 1_000, "output": 10_000}})
SPENT = 0.3
"""Dollars of a model call at these prices."""


def answered() -> list[Part]:
    return [TextChunk("Hi"), Finished(FinishReason.stop, USED)]


RICH = ALL | {"dollars_per_month": 1_000_000}


def long_answer(tokens: int) -> list[Part]:
    used = Usage(input_tokens=10, output_tokens=tokens, total_tokens=10 + tokens)
    return [*[TextChunk("w")] * tokens, Finished(FinishReason.stop, used)]


def write_units(cloud: Cloud) -> float:
    return cloud.units["PutItem"] + cloud.units["UpdateItem"] + cloud.units["DeleteItem"]


@pytest.fixture(autouse=True)
def _at_the_start_of_a_minute() -> Iterator[None]:
    """Stop the clock at the start of a minute, and end with no principal."""
    with CLOCK.stop():
        to_next_minute()
        yield
    set_principal(None)


def to_next_minute() -> None:
    CLOCK.move(60 - time.time() % 60 + 0.01)


class Limited:
    """A tenant with a limited key."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        self.cloud, self.tenant = cloud, tenant

    async def open(
        self, model: Script, of_key: Mapping[str, float], of_tenant: Mapping[str, float] | None = None
    ) -> TurnFixture:
        tenants = json.dumps({self.tenant: {"budgets": of_tenant or {}}})
        fixture = TurnFixture(self.cloud.store, self.tenant, model, prices=PRICES, tenants=tenants)
        set_principal(Principal(self.tenant, "s", frozenset({"use"}), "k1", budgets=Budgets(**of_key)))
        return await fixture.open("add")

    def counter(self) -> dict[str, int]:
        """Return the counter of the key."""
        pk = f"{self.tenant}#budget:key:k1"
        [item] = [item for item in map(decode, self.cloud.items(self.tenant)) if item["pk"] == pk]
        return {name: value for name, value in item.items() if isinstance(value, int)}


@pytest.fixture
def limited(cloud: Cloud, tenant: str) -> Limited:
    return Limited(cloud, tenant)


async def test_a_simple_turn_costs_at_most_eight_write_units_with_all_budgets_of_key_and_tenant(
    limited: Limited, cloud: Cloud
) -> None:
    fixture = await limited.open(script(answered(), answered()), ALL, ALL)
    costs = []
    for _ in range(2):
        cloud.forget()
        await fixture.turn()
        costs.append(write_units(cloud))

    assert costs == [8, 8]


async def test_a_warm_turn_costs_four_write_units_with_budgets_of_a_minute(limited: Limited, cloud: Cloud) -> None:
    by_minute = {name: limit for name, limit in ALL.items() if name.endswith("minute")}
    fixture = await limited.open(script(answered(), answered()), by_minute, by_minute)
    costs = []
    for _ in range(2):
        cloud.forget()
        await fixture.turn()
        costs.append(write_units(cloud))

    assert costs == [6, 4]


@pytest.mark.parametrize(("tokens", "top_ups"), [(900, 0), (1_500, 1), (2_500, 2)])
async def test_each_top_up_of_an_answer_costs_a_write_unit_for_each_holder_of_money(
    limited: Limited, cloud: Cloud, tokens: int, top_ups: int
) -> None:
    fixture = await limited.open(script(long_answer(tokens)), RICH, RICH)
    cloud.forget()

    await fixture.turn()

    assert write_units(cloud) == 8 + 2 * top_ups


async def test_a_long_answer_costs_no_further_unit_where_no_money_is_limited(limited: Limited, cloud: Cloud) -> None:
    by_minute = {"requests_per_minute": 60, "tokens_per_minute": 1_000_000}
    fixture = await limited.open(script(long_answer(2_500), long_answer(2_500)), by_minute, by_minute)
    await fixture.turn()
    cloud.forget()

    await fixture.turn()

    assert write_units(cloud) == 4


async def test_a_turn_over_the_tokens_of_a_minute_is_not_cut_and_later_ones_wait(limited: Limited) -> None:
    fixture = await limited.open(script(long_answer(20_000), answered()), {"tokens_per_minute": 2_000})

    turn = await fixture.turn()

    assert (turn.status, len(str(turn.output_message.content))) == ("completed", 20_000)
    for _ in range(10):
        with pytest.raises(RateLimitExceeded, match="repays what earlier answers used"):
            await fixture.start()
        to_next_minute()
        CLOCK.move(1)


async def test_the_budgets_are_reserved_in_the_same_round_trip_as_the_lease(own_cloud: Cloud, tenant: str) -> None:
    fixture = await Limited(own_cloud, tenant).open(script(answered()), ALL, ALL)
    await fixture.agents.config(fixture.agent_id)
    await fixture.turns.planner.prepare()

    reads = ("GetItem", "BatchGetItem", "Query")  # BatchGetItem: the stops, which this process has not read before
    with own_cloud.proxy.held_together("UpdateItem", "UpdateItem", "UpdateItem", *reads) as seen:
        turn = await fixture.start()

    assert seen["UpdateItem"] == 3
    await fixture.play(turn)


async def test_requests_over_the_limit_are_refused_until_the_next_minute(limited: Limited) -> None:
    fixture = await limited.open(script(*(answered() for _ in range(4))), {"requests_per_minute": 2})
    await fixture.turn()
    await fixture.turn()
    CLOCK.move(10)

    with pytest.raises(RateLimitExceeded, match="API key 'k1' has used its 2 requests") as refused:
        await fixture.start()

    assert refused.value.retry_after == 50
    assert await fixture.lease_turn() is None
    to_next_minute()
    assert (await fixture.turn()).status == "completed"


async def test_a_hundred_parallel_turns_of_five_processes_are_never_more_than_the_limit(
    limited: Limited, cloud: Cloud
) -> None:
    fixtures = [
        await limited.open(script(*(answered() for _ in range(20))), {"requests_per_minute": 30}) for _ in range(5)
    ]
    pairs = [(f, await f.sessions.create(f.agent_id, f"talk {n}")) for f in fixtures for n in range(20)]

    async def attempt(fixture: TurnFixture, session_id: str) -> bool:
        other = fixture_for(fixture, session_id)
        try:
            return (await other.turn()).status == "completed"
        except RateLimitExceeded:
            return False

    done = await asyncio.gather(*(asyncio.create_task(attempt(*pair)) for pair in pairs))

    counted = limited.counter()
    assert 25 <= sum(done) <= 30
    assert max(value for name, value in counted.items() if name.startswith("requests_")) <= 30


def fixture_for(fixture: TurnFixture, session_id: str) -> TurnFixture:
    """Return the same process with another session."""
    other = object.__new__(TurnFixture)
    other.__dict__.update(fixture.__dict__, session_id=session_id)
    return other


async def test_tokens_that_were_used_are_counted_by_the_provider(limited: Limited) -> None:
    fixture = await limited.open(script(answered(), answered()), {"tokens_per_minute": 200})
    await fixture.turn()
    await fixture.turn()

    with pytest.raises(RateLimitExceeded, match="200 tokens"):
        await fixture.start()


async def test_a_turn_fails_before_the_model_call_that_its_tokens_do_not_allow(limited: Limited) -> None:
    many = Usage(input_tokens=900, output_tokens=200, total_tokens=1_100)
    asks: list[Part] = [ToolCallChunk(0, "c0", "get_tokens", "{}"), Finished(FinishReason.tool_calls, many)]
    model = script(asks, answered())
    fixture = await limited.open(model, {"tokens_per_minute": 1_000})

    turn = await fixture.turn()

    assert (turn.status, turn.error and turn.error.code) == ("failed", "rate_limit_exceeded")
    assert len(model.requests) == 1
    assert len(turn.steps) == 2


async def test_a_spent_month_is_refused_with_its_own_error(limited: Limited) -> None:
    fixture = await limited.open(script(answered(), answered()), {"dollars_per_month": SPENT})
    await fixture.turn()

    with pytest.raises(QuotaExceeded, match=r"has spent its 0\.3 dollars of this month"):
        await fixture.start()


async def test_money_that_was_reserved_and_not_spent_is_returned(limited: Limited) -> None:
    fixture = await limited.open(script(answered()), {"dollars_per_month": 100})

    turn = await fixture.turn()

    assert turn.receipt is not None
    assert turn.receipt.dollars is not None
    counted = limited.counter()["microdollars"]
    assert counted == pytest.approx(turn.receipt.dollars * 1e6, abs=2)
    assert counted >= SPENT * 1e6


async def test_a_turn_that_cannot_start_returns_its_money(limited: Limited) -> None:
    fixture = await limited.open(script(answered()), {"dollars_per_month": 100})
    fixture.session_id = fixture.session_id[:-1] + ("0" if fixture.session_id[-1] != "0" else "1")

    with pytest.raises(Exception, match="not found"):
        await fixture.start()

    assert limited.counter()["microdollars"] <= 10


async def test_a_turn_that_cannot_start_is_not_a_request(limited: Limited) -> None:
    fixture = await limited.open(script(answered()), {"requests_per_minute": 1})
    opened, fixture.session_id = fixture.session_id, "0" * 8 + fixture.session_id[8:]
    with pytest.raises(NotFound):
        await fixture.start()

    fixture.session_id = opened

    assert (await fixture.turn()).status == "completed"


async def test_the_tenants_budget_limits_all_its_keys(limited: Limited) -> None:
    fixture = await limited.open(script(answered(), answered()), {}, {"requests_per_minute": 1})
    await fixture.turn()
    set_principal(Principal(limited.tenant, "s", frozenset({"use"}), "k2"))

    with pytest.raises(RateLimitExceeded, match=f"Tenant '{limited.tenant}'"):
        await fixture.start()


async def test_a_caller_without_budgets_writes_no_counter(limited: Limited, cloud: Cloud) -> None:
    fixture = await limited.open(script(answered()), {})

    await fixture.turn()

    assert [item for item in cloud.items(limited.tenant) if "#budget" in item["pk"]["S"]] == []


async def test_a_caller_without_a_key_has_the_budgets_of_its_subject(limited: Limited) -> None:
    fixture = await limited.open(script(answered(), answered()), {})
    budgets = Budgets(requests_per_minute=1)
    set_principal(Principal(limited.tenant, "role/reader of @home", frozenset({"use"}), budgets=budgets))
    await fixture.turn()

    with pytest.raises(RateLimitExceeded, match="Subject 'role/reader of @home'"):
        await fixture.start()
