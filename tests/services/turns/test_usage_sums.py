"""Sums of usage: written when a run ends, and read by group."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, called, script
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.errors import Forbidden, InvalidRequest
from stint.domain.inference import Finished, FinishReason, TextChunk, Usage
from stint.domain.prices import ModelPrice, Prices
from stint.domain.principals import Principal, Scope
from stint.domain.usage import UsageGroup, UsageSource, UsageSum
from stint.metering import Meter, find_meter

USED = Usage(input_tokens=100, output_tokens=20, total_tokens=120)
EVERYWHERE = UsageSource()


def answered() -> list[Part]:
    return [TextChunk("Hi"), Finished(FinishReason.stop, USED)]


def meters_of_run() -> Meter:
    meter = find_meter()
    assert meter is not None
    return meter


def as_key(tenant: str, key_id: str, *scopes: Scope) -> None:
    set_principal(Principal(tenant, "s", frozenset(scopes or ("use",)), key_id))


@pytest.fixture(autouse=True)
def _no_principal_afterwards() -> Iterator[None]:
    yield
    set_principal(None)


async def summed(fixture: TurnFixture, *group_by: UsageGroup, source: UsageSource = EVERYWHERE) -> list[UsageSum]:
    return (await fixture.services.meters.usage.read(None, None, group_by, source)).data


def summing(cloud: Cloud, tenant: str, *answers: list[Part], **settings: Any) -> TurnFixture:
    return TurnFixture(cloud.store, tenant, script(*answers), usage_sums=True, **settings)


async def test_a_simple_turn_costs_five_write_units_with_sums(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered(), answered()).open()
    await fixture.turn()
    cloud.forget()

    await fixture.turn()

    assert sum(cloud.units[name] for name in ("PutItem", "UpdateItem", "DeleteItem")) == 5


async def test_usage_is_summed_by_session_agent_key_and_day(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered(), answered(), answered()).open()
    as_key(tenant, "k1", "admin")
    await fixture.turn()
    as_key(tenant, "k2", "admin")
    await fixture.turn()
    first = fixture.session_id
    fixture.session_id = await fixture.sessions.create(fixture.agent_id, "other")
    await fixture.turn()

    by_key = await summed(fixture, "key")
    by_session = await summed(fixture, "session", "agent")
    [by_day] = await summed(fixture)

    assert [(each.key_id, each.runs, each.input_tokens) for each in by_key] == [("k1", 1, 100), ("k2", 2, 200)]
    assert {each.session_id: each.runs for each in by_session} == {first: 2, fixture.session_id: 1}
    assert {each.agent_id for each in by_session} == {fixture.agent_id}
    assert (by_day.runs, by_day.model_calls, by_day.output_tokens, by_day.write_units) == (3, 3, 60, 12)
    assert (by_day.dollars or 0) > 0
    assert [each.runs for each in await summed(fixture, source=UsageSource("k1"))] == [1]


async def test_a_run_of_two_models_is_summed_by_model_for_one_more_unit(cloud: Cloud, tenant: str) -> None:
    meters = summing(cloud, tenant).services.meters
    meters.prices = Prices(models={"big/*": ModelPrice(input=10, output=20)})
    cloud.forget()

    async with meters.request():
        meter = meters_of_run()
        meter.count_call("small/free", Usage(input_tokens=1000, output_tokens=500, total_tokens=1500))
        for _ in range(2):
            meter.count_call("big/one:0", USED)

    by_model = {each.model_id: each for each in (await meters.usage.read(None, None, ["model"], EVERYWHERE)).data}
    big, small = by_model["big/one:0"], by_model["small/free"]
    assert cloud.units["UpdateItem"] == 2
    assert (big.runs, big.model_calls, big.input_tokens, big.output_tokens) == (1, 2, 200, 40)
    assert (small.runs, small.model_calls, small.input_tokens, small.output_tokens) == (0, 1, 1000, 500)
    assert big.dollars == pytest.approx(0.0028, abs=1e-4)
    assert small.dollars == 0
    [total] = (await meters.usage.read(None, None, [], EVERYWHERE)).data
    assert (total.runs, total.model_calls, total.input_tokens) == (1, 3, 1200)
    [filtered] = (await meters.usage.read(None, None, [], UsageSource(model_id="small/free"))).data
    assert filtered.input_tokens == 1000


async def test_a_run_without_a_model_has_an_empty_model(cloud: Cloud, tenant: str) -> None:
    meters = summing(cloud, tenant).services.meters

    async with meters.request():
        pass

    [found] = (await meters.usage.read(None, None, ["model"], EVERYWHERE)).data
    assert (found.model_id, found.runs, found.model_calls) == ("", 1, 0)


async def test_a_model_and_a_caller_of_the_same_name_have_sums_of_their_own(cloud: Cloud, tenant: str) -> None:
    meters = summing(cloud, tenant).services.meters
    async with meters.request():
        meters_of_run().count_call("one", USED)
    set_principal(Principal(tenant, "one", frozenset(["use", "admin"])))
    async with meters.request():
        pass

    found = (await meters.usage.read(None, None, ["subject", "model"], EVERYWHERE)).data

    assert {(each.subject, each.model_id, each.runs) for each in found} == {("", "one", 1), ("one", "", 1)}


async def test_a_resumed_turn_is_not_summed_twice(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, called("add"), answered()).open("add")
    paused = await fixture.turn()
    turn = await fixture.resumed(paused.turn_id, ("c0", "3"))

    [day] = await summed(fixture)

    assert turn.receipt is not None
    assert (day.model_calls, day.write_units) == (2, turn.receipt.write_units)


async def test_the_sums_of_another_day_are_those_of_that_day(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered(), answered()).open()
    await fixture.turn()
    [today] = await summed(fixture)
    CLOCK.move(86_400)
    await fixture.turn()

    start = date.fromisoformat(str(today.day))
    both = await fixture.services.meters.usage.read(start, start + timedelta(days=1), ["day"], EVERYWHERE)

    assert [each.runs for each in both.data] == [1, 1]
    assert both.data[0].day == today.day


async def test_a_key_without_admin_reads_its_own_usage_only(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered(), answered()).open()
    for key_id in ("k1", "k2"):
        as_key(tenant, key_id)
        await fixture.turn()

    [own] = await summed(fixture, "key")

    assert (own.key_id, own.runs) == ("k2", 1)
    with pytest.raises(Forbidden, match="needs the scope admin"):
        await summed(fixture, source=UsageSource("k1"))


def as_subject(tenant: str, subject: str, *scopes: Scope) -> None:
    set_principal(Principal(tenant, subject, frozenset(scopes or ("use",))))


async def test_a_caller_without_a_key_reads_the_usage_of_its_subject_only(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered(), answered(), answered(), answered()).open()
    as_key(tenant, "k1")  # a key whose owner has the name of a token's subject
    await fixture.turn()
    for subject in ("s", "o:ther/ö", "s"):
        as_subject(tenant, subject)
        await fixture.turn()

    [own] = await summed(fixture, "subject", "key")
    [filtered] = await summed(fixture, source=UsageSource(subject="s"))

    assert (own.subject, own.key_id, own.runs) == ("s", "", 2)
    assert filtered.runs == 2
    for source in (UsageSource("k1"), UsageSource(subject="o:ther/ö")):
        with pytest.raises(Forbidden, match="needs the scope admin"):
            await summed(fixture, source=source)


async def test_a_key_reads_no_usage_of_a_token_with_the_same_subject(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered(), answered()).open()
    as_subject(tenant, "s")
    await fixture.turn()
    as_key(tenant, "k1")
    await fixture.turn()

    [own] = await summed(fixture, "key", "subject", source=UsageSource(subject="s"))

    assert (own.key_id, own.subject, own.runs) == ("k1", "s", 1)


async def test_an_admin_sums_the_usage_of_each_subject(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered(), answered(), answered()).open()
    as_key(tenant, "k1")
    await fixture.turn()
    for subject in ("s", "t"):
        as_subject(tenant, subject)
        await fixture.turn()
    as_subject(tenant, "boss", "admin")

    by_subject = await summed(fixture, "subject")
    filtered = await summed(fixture, "subject", source=UsageSource(subject="t"))

    assert [(each.subject, each.runs) for each in by_subject] == [("s", 2), ("t", 1)]
    assert [(each.subject, each.runs) for each in filtered] == [("t", 1)]


async def test_sums_of_callers_without_a_key_cost_one_unit_too(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered(), answered()).open()
    as_subject(tenant, "s" * 255)
    await fixture.turn()
    cloud.forget()

    await fixture.turn()

    assert sum(cloud.units[name] for name in ("PutItem", "UpdateItem", "DeleteItem")) == 5


async def test_usage_of_other_tenants_is_not_read(cloud: Cloud, tenant: str) -> None:
    fixture = await summing(cloud, tenant, answered()).open()
    await fixture.turn()

    assert await summed(summing(cloud, f"{tenant}x")) == []


async def test_without_the_setting_there_are_no_sums(cloud: Cloud, tenant: str) -> None:
    fixture = await TurnFixture(cloud.store, tenant, script(answered())).open()
    await fixture.turn()

    assert [item for item in cloud.items(tenant) if "#usage" in item["pk"]["S"]] == []
    with pytest.raises(InvalidRequest, match="STINT_USAGE_SUMS"):
        await summed(fixture)


async def test_a_range_of_more_than_31_days_is_refused(cloud: Cloud, tenant: str) -> None:
    usage = summing(cloud, tenant).services.meters.usage

    for start, end in [(date(2026, 1, 1), date(2026, 2, 1)), (date(2026, 1, 2), date(2026, 1, 1))]:
        with pytest.raises(InvalidRequest, match="1 to 31 days"):
            await usage.read(start, end, [], EVERYWHERE)
