"""Background responses run for their creator, whoever has queued them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.clock import CLOCK
from tests.script_model import said, script
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import find_principal, set_principal
from stint.domain.principals import ANONYMOUS, Budgets, Principal
from stint.domain.usage import UsageSource


@pytest.fixture
def creator(tenant: str) -> Iterator[Principal]:
    """The principal of the requests that create responses."""
    budgets = Budgets(requests_per_minute=5)
    yield Principal(tenant, "ann", frozenset({"use"}), "k1", models=("test/*",), budgets=budgets)
    set_principal(None)


@pytest.fixture
def worker_fixture(cloud: Cloud, tenant: str) -> WorkerFixture:
    return WorkerFixture(cloud, tenant, script(said("Hi"), said("Hi")))


async def created_by(worker_fixture: WorkerFixture, principal: Principal | None) -> str:
    set_principal(principal)
    response_id = await worker_fixture.create()
    set_principal(None)
    return response_id


async def test_the_budget_of_the_creators_key_is_used(
    worker_fixture: WorkerFixture, creator: Principal, cloud: Cloud
) -> None:
    with CLOCK.stop():
        await worker_fixture.run(await created_by(worker_fixture, creator))

    [counter] = [item for item in cloud.items(creator.tenant) if "#budget" in item["pk"]["S"]]
    assert counter["pk"]["S"].endswith("#budget:key:k1")


@pytest.mark.parametrize("reader", [None, "another"])
async def test_usage_of_a_response_queued_again_is_its_creators(
    worker_fixture: WorkerFixture, creator: Principal, reader: str | None
) -> None:
    """Somebody else has queued it, with another key."""
    meters = worker_fixture.turns.meters
    meters.sums_usage = True
    response_id = await created_by(worker_fixture, creator)
    current = reader and replace(ANONYMOUS, tenant=creator.tenant, key_id=reader)
    set_principal(current or None)

    await worker_fixture.run(response_id)

    assert find_principal() == (current or None)
    set_principal(replace(creator, scopes=frozenset({"admin"})))
    sums = await meters.usage.read(None, None, ["key"], UsageSource("", "", ""))
    assert [(each.key_id, each.runs) for each in sums.data] == [("k1", 1)]


async def test_models_are_limited_as_those_of_the_creator(worker_fixture: WorkerFixture, creator: Principal) -> None:
    allowed = await created_by(worker_fixture, creator)
    refused = await created_by(worker_fixture, creator)
    header = (await worker_fixture.stored(refused)).header
    limited = header.model_copy(update={"creator": replace(creator, models=("openai/*",)).to_context()})
    await worker_fixture.store.responses.put(worker_fixture.tenant, limited, ())

    for response_id in (allowed, refused):
        await worker_fixture.run(response_id)

    ended = await worker_fixture.get(refused)
    assert (await worker_fixture.get(allowed)).status == "completed"
    assert (ended.status, ended.error and ended.error.code) == ("failed", "model_not_allowed")


async def test_the_creator_is_stored_without_a_credential_and_returned_to_nobody(
    worker_fixture: WorkerFixture, creator: Principal
) -> None:
    response_id = await created_by(worker_fixture, creator)

    assert (await worker_fixture.stored(response_id)).creator == creator
    assert "creator" not in (await worker_fixture.get(response_id)).model_dump_json()


async def test_the_creator_costs_no_write_unit(worker_fixture: WorkerFixture, creator: Principal, cloud: Cloud) -> None:
    units = []
    for principal in (None, creator):
        before = written(cloud)
        await created_by(worker_fixture, principal)
        units.append(written(cloud) - before)

    assert units == [2, 2]


def written(cloud: Cloud) -> float:
    return sum(cloud.units[name] for name in ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem"))


async def test_a_response_of_an_event_has_no_creator(worker_fixture: WorkerFixture) -> None:
    response_id = await created_by(worker_fixture, None)

    assert (await worker_fixture.stored(response_id)).creator is None
