"""Pages of the list of running runs."""

import time

import pytest
from tests.clock import CLOCK
from tests.listed_runs import put_run
from tests.store.conftest import Cloud

from stint.domain.errors import InvalidRequest
from stint.domain.ids import new_id, new_name
from stint.domain.running_runs import RunningRun
from stint.store.running_runs import RunningRunStore


def turn(key: str | None = "k1", seconds: int = 60) -> RunningRun:
    now = int(time.time())
    ids = {"id": new_id(), "agent_id": new_id(), "session_id": new_id()}
    return RunningRun(kind="turn", model="m", key_id=key, began_at=now, until=now + seconds, **ids)


def response(seconds: int = 60) -> RunningRun:
    now = int(time.time())
    return RunningRun(kind="response", id=new_name("resp"), model="m", began_at=now, until=now + seconds)


@pytest.fixture
def runs(cloud: Cloud) -> RunningRunStore:
    return cloud.store.running_runs


def everything(_: RunningRun) -> bool:
    return True


async def test_runs_of_both_kinds_are_listed_by_their_creation_in_pages(runs: RunningRunStore, tenant: str) -> None:
    made = [turn() if number % 2 else response() for number in range(30)]
    for run in made:
        await put_run(runs, tenant, run)
    found: list[RunningRun] = []
    after: str | None = None

    for _ in range(4):
        page = await runs.list_page(tenant, after, 8, everything)
        found += page.data
        after = found[-1].id
        assert page.has_more == (len(found) < 30)

    assert found == made[::-1]


async def test_a_page_of_few_among_many_is_full(runs: RunningRunStore, tenant: str) -> None:
    made = [turn("k2" if number % 40 == 0 else "k1") for number in range(200)]
    for run in made:
        await put_run(runs, tenant, run)

    page = await runs.list_page(tenant, None, 3, lambda run: run.key_id == "k2")

    assert ([run.key_id for run in page.data], page.has_more) == (["k2"] * 3, True)


async def test_a_page_follows_a_run_that_has_ended(runs: RunningRunStore, tenant: str) -> None:
    first, second, third = made = [turn() for _ in range(3)]
    for run in made:
        await put_run(runs, tenant, run)
    await runs.delete(tenant, second.id, "h")

    assert (await runs.list_page(tenant, second.id, 5, everything)).data == [first]
    assert (await runs.list_page(tenant, None, 5, everything)).data == [third, first]


async def test_expired_runs_and_those_of_others_are_not_listed(runs: RunningRunStore, tenant: str) -> None:
    await put_run(runs, tenant, turn(seconds=5))
    await put_run(runs, f"{tenant}-b", turn())
    CLOCK.move(5)

    assert (await runs.list_page(tenant, None, 5, everything)).data == []


async def test_a_process_deletes_its_own_record_only(runs: RunningRunStore, tenant: str) -> None:
    run = turn()
    await put_run(runs, tenant, run, "one")
    await runs.delete(tenant, run.id, "two")
    assert (await runs.list_page(tenant, None, 5, everything)).data == [run]
    await runs.delete(tenant, run.id, "one")
    assert (await runs.list_page(tenant, None, 5, everything)).data == []


@pytest.mark.parametrize("after", ["", "x", "resp_1", "conv_" + "0" * 32, "0" * 32, "T#stop"])
async def test_a_page_follows_only_the_id_of_a_run(runs: RunningRunStore, tenant: str, after: str) -> None:
    with pytest.raises(InvalidRequest, match="not the id of a turn or a response"):
        await runs.list_page(tenant, after, 5, everything)


async def test_a_write_costs_a_unit_and_an_empty_list_one_read_unit_per_shard(
    runs: RunningRunStore, cloud: Cloud, tenant: str
) -> None:
    run = turn().model_copy(update={"model": "m" * 200, "user_hash": "0" * 32, "key_id": "0" * 32})

    cloud.units.clear()
    await put_run(runs, tenant, run, "0" * 16)
    await runs.delete(tenant, run.id, "0" * 16)
    written = dict(cloud.units)
    cloud.units.clear()
    await runs.list_page(tenant, None, 100, everything)

    assert written == {"PutItem": 1, "DeleteItem": 1}
    assert dict(cloud.units) == {"Query": 8}
