import asyncio

import pytest
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict
from stint.domain.stops import MAX_STOPS, stop_name
from stint.store.stops import StopStore

KEY = stop_name("key", "k" * 64)


@pytest.fixture
def stops(cloud: Cloud) -> StopStore:
    return cloud.store.stops


async def test_a_tenant_without_stops_has_none(stops: StopStore, tenant: str) -> None:
    assert await stops.read(tenant) == {}


async def test_stops_are_listed_with_their_times_until_they_are_lifted(stops: StopStore, tenant: str) -> None:
    await stops.add(tenant, "session:a", 1)
    await stops.add(tenant, "tenant", 2)

    assert await stops.read_original(tenant) == {"session:a": 1, "tenant": 2}
    assert await stops.remove(tenant, "session:a") == 1
    assert await stops.read_original(tenant) == {"tenant": 2}


async def test_the_same_stop_again_keeps_its_time(stops: StopStore, tenant: str) -> None:
    await stops.add(tenant, "session:a", 1)

    assert await stops.add(tenant, "session:a", 5) == 1


async def test_a_stop_that_was_removed_before_has_no_time(stops: StopStore, tenant: str) -> None:
    await stops.add(tenant, "session:a", 1)

    assert [await stops.remove(tenant, "session:a") for _ in range(2)] == [1, None]
    assert await stops.read_original(tenant) == {}


async def test_a_full_record_refuses_another_stop_but_not_that_of_the_whole_tenant(
    stops: StopStore, tenant: str
) -> None:
    added = await asyncio.gather(
        *(stops.add(tenant, f"session:{number}", 1) for number in range(MAX_STOPS + 5)), return_exceptions=True
    )

    refused = [error for error in added if isinstance(error, Conflict)]
    assert [error.code for error in refused] == ["too_many_stops"] * 5
    assert f"{MAX_STOPS} stops" in refused[0].message
    await stops.add(tenant, "tenant", 1)
    await stops.remove(tenant, "tenant")
    [lifted, *_] = await stops.read_original(tenant)
    await stops.remove(tenant, lifted)
    await stops.add(tenant, "session:new", 1)


async def test_the_longest_stops_of_a_tenant_are_read_for_half_a_unit(
    stops: StopStore, tenant: str, cloud: Cloud
) -> None:
    for number in range(MAX_STOPS):
        await stops.add(tenant, f"{KEY[:-2]}{number:02}", 1_800_000_000)
    await stops.read(tenant)  # the first read of a process compares its copy with the original
    cloud.forget()

    assert len(await stops.read(tenant)) == MAX_STOPS

    assert cloud.units["GetItem"] == 0.5


async def test_stops_of_other_tenants_are_separate(stops: StopStore, tenant: str) -> None:
    await stops.add(tenant, "tenant", 1)

    assert await stops.read(f"{tenant}-b") == {}
