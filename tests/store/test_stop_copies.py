"""The copies of a tenant's stops: one transaction keeps them equal, and an older release does not know them."""

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud

from stint.aws.dynamodb import DynamoDBClient
from stint.aws.errors import DynamoDBError
from stint.domain.errors import StoreUnavailable
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import decode, encode
from stint.store.stops import CHECK_SECONDS, SETTLING_SECONDS, StopStore
from stint.store.table import call_counted

ALL = range(keys.STOP_COPIES)


@pytest.fixture
def stops(cloud: Cloud) -> StopStore:
    """Return the stops of a process that remembers nothing."""
    return cloud.other_process().stops


class OlderRelease:
    """Changes the original alone, as the release before the copies."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    async def add(self, tenant: str, name: str, now: int) -> int:
        condition = "attribute_not_exists(#stop) AND (attribute_not_exists(stops) OR stops < :most)"
        values = {":now": now, ":one": 1, ":most": 50}
        try:
            await self._update(tenant, name, "SET #stop = :now ADD stops :one", condition, values=values)
        except ConditionFailed as refused:
            return int(decode(refused.found)[name])
        return now

    async def remove(self, tenant: str, name: str) -> None:
        expression, condition = "REMOVE #stop ADD stops :minus", "attribute_exists(#stop)"
        await self._update(tenant, name, expression, condition, values={":minus": -1})

    async def _update(self, tenant: str, name: str, expression: str, condition: str, values: dict[str, int]) -> None:
        request = {
            "TableName": self.cloud.table_name,
            "Key": encode({"pk": f"{tenant}#stop", "sk": "all"}),
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#stop": name},
            "ExpressionAttributeValues": encode(values),
            "ReturnValues": "ALL_OLD",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        await call_counted(self.cloud.client, "UpdateItem", request)


@pytest.fixture
def older(cloud: Cloud) -> OlderRelease:
    return OlderRelease(cloud)


def stored(cloud: Cloud, tenant: str) -> list[dict[str, Any]]:
    """Return what the original has, and then what each other content of a copy has."""
    found = {item["pk"]: item for item in map(decode, cloud.items(tenant))}
    original = found.pop(f"{tenant}#stop")
    assert found.keys() == {f"{tenant}#stop:{number}" for number in ALL}
    contents = [{name: item[name] for name in item if name != "pk"} for item in (original, *found.values())]
    return [each for place, each in enumerate(contents) if each not in contents[:place]]


async def test_a_change_makes_all_records_equal(stops: StopStore, cloud: Cloud, tenant: str) -> None:
    await stops.add(tenant, "session:a", 1)
    await stops.add(tenant, "tenant", 2)
    assert stored(cloud, tenant) == [{"sk": "all", "session:a": 1, "tenant": 2, "stops": 2}]

    await stops.remove(tenant, "session:a")
    assert stored(cloud, tenant) == [{"sk": "all", "tenant": 2, "stops": 1}]


async def test_a_change_costs_two_units_for_each_record(stops: StopStore, cloud: Cloud, tenant: str) -> None:
    await stops.add(tenant, "session:a", 1)

    assert cloud.units == {"GetItem": 1, "TransactWriteItems": 2 * (1 + keys.STOP_COPIES)}


async def test_changes_of_several_processes_at_once_are_all_kept(cloud: Cloud, tenant: str) -> None:
    names = [f"session:{number}" for number in range(8)]
    await asyncio.gather(*(cloud.other_process().stops.add(tenant, name, 1) for name in names))
    await asyncio.gather(*(cloud.other_process().stops.remove(tenant, name) for name in names[:4]))

    assert stored(cloud, tenant) == [{"sk": "all", "stops": 4} | dict.fromkeys(names[4:], 1)]


async def test_a_change_whose_answer_is_lost_is_made_once(own_cloud: Cloud, tenant: str) -> None:
    stops = own_cloud.store.stops
    own_cloud.proxy.lose_first_answer("TransactWriteItems")
    assert await stops.add(tenant, "session:a", 1) == 1
    own_cloud.forget()
    own_cloud.proxy.lose_first_answer("TransactWriteItems")

    assert await stops.remove(tenant, "session:a") == 1

    assert stored(own_cloud, tenant) == [{"sk": "all", "stops": 0}]


async def test_a_change_that_meets_another_transaction_is_repeated(
    stops: StopStore, cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = [{"Code": "TransactionConflict"}, *[{"Code": "None"}] * keys.STOP_COPIES]
    conflicts = iter([DynamoDBError("TransactionCanceledException", 400, reasons=reasons)] * 2)
    call = DynamoDBClient.call

    async def meet_others(client: DynamoDBClient, operation: str, request: Any, **options: Any) -> Any:
        if operation == "TransactWriteItems" and (conflict := next(conflicts, None)):
            raise conflict
        return await call(client, operation, request, **options)

    monkeypatch.setattr(DynamoDBClient, "call", meet_others)

    assert await stops.add(tenant, "session:a", 1) == 1

    assert next(conflicts, None) is None
    assert stored(cloud, tenant) == [{"sk": "all", "session:a": 1, "stops": 1}]


async def test_reads_are_spread_over_all_copies(stops: StopStore, cloud: Cloud, tenant: str) -> None:
    await stops.add(tenant, "session:a", 1)
    await stops.read(tenant)

    with cloud.proxy.watch() as seen:
        assert [await stops.read(tenant) for _ in range(200)] == [{"session:a": 1}] * 200

    read = Counter(json.loads(each.partition(" ")[2])["Key"]["pk"]["S"] for each in seen)
    assert read.keys() == {f"{tenant}#stop:{number}" for number in ALL}
    assert cloud.units["GetItem"] == 1 + 100  # the change reads the original


async def test_half_of_the_copies_suffice(own_cloud: Cloud, tenant: str) -> None:
    stops = own_cloud.store.stops
    await stops.add(tenant, "session:a", 1)
    throttled = [f"{tenant}#stop:{number}" for number in range(4)]

    with own_cloud.proxy.throttling(lambda _, body: any(key in body for key in throttled)):
        assert [await stops.read(tenant) for _ in range(50)] == [{"session:a": 1}] * 50


async def test_few_reads_fail_if_half_of_the_attempts_are_throttled(own_cloud: Cloud, tenant: str) -> None:
    stops, chance = own_cloud.store.stops, random.Random(1)  # the same in each run
    await stops.add(tenant, "session:a", 1)

    with own_cloud.proxy.throttling(lambda _, __: chance.random() < 0.5):
        found = await asyncio.gather(*(stops.read(tenant) for _ in range(200)), return_exceptions=True)

    failed = [each for each in found if each != {"session:a": 1}]
    assert all(isinstance(each, StoreUnavailable) for each in failed)
    assert len(failed) < 200 * 0.05  # with one record and three attempts: an eighth


async def test_a_read_that_is_throttled_everywhere_fails(own_cloud: Cloud, tenant: str) -> None:
    await own_cloud.store.stops.read(tenant)

    with own_cloud.proxy.fail("GetItem"), pytest.raises(StoreUnavailable):
        await own_cloud.store.stops.read(tenant)


async def test_a_process_that_cannot_compare_its_copy_has_no_answer(own_cloud: Cloud, tenant: str) -> None:
    """The original may have a stop that an older release has set."""
    original = f'"{tenant}#stop"'

    with own_cloud.proxy.throttling(lambda _, body: original in body), pytest.raises(StoreUnavailable):
        await own_cloud.store.stops.read(tenant)


async def test_a_comparison_that_is_throttled_later_leaves_the_answer_of_the_copy(
    own_cloud: Cloud, tenant: str
) -> None:
    await own_cloud.store.stops.add(tenant, "session:a", 1)
    await own_cloud.store.stops.read(tenant)
    CLOCK.move(CHECK_SECONDS)
    original = f'"{tenant}#stop"'

    with own_cloud.proxy.throttling(lambda _, body: original in body):
        assert await own_cloud.store.stops.read(tenant) == {"session:a": 1}


async def test_a_key_of_a_batch_that_is_throttled_is_read_again(own_cloud: Cloud, tenant: str) -> None:
    stops = own_cloud.store.stops
    await stops.add(tenant, "session:a", 1)
    left = iter([f"{tenant}#stop"])

    def leave_original(answer: dict[str, Any]) -> None:
        for pk in left:
            [(table, items)] = answer["Responses"].items()
            answer["Responses"] = {table: [item for item in items if item["pk"]["S"] != pk]}
            answer["UnprocessedKeys"] = {table: {"Keys": [{"pk": {"S": pk}, "sk": {"S": "all"}}]}}

    with own_cloud.proxy.editing("BatchGetItem", answer=leave_original), own_cloud.proxy.watch() as seen:
        assert await stops.read(tenant) == {"session:a": 1}

    assert [each.partition(" ")[0] for each in seen] == ["BatchGetItem", "GetItem"]
    assert f'"{tenant}#stop"' in seen[1]


async def test_a_stop_of_an_older_release_holds_in_a_process_that_starts(
    stops: StopStore, older: OlderRelease, tenant: str
) -> None:
    await older.add(tenant, "session:a", 1)

    assert [await stops.read(tenant) for _ in range(3)] == [{"session:a": 1}] * 3
    assert (await stops.read_with(tenant, []))[0] == {"session:a": 1}


async def test_a_stop_of_an_older_command_holds_after_the_next_comparison(
    stops: StopStore, older: OlderRelease, tenant: str
) -> None:
    await stops.add(tenant, "session:a", 1)
    await stops.read(tenant)

    await older.add(tenant, "session:b", 2)
    await older.remove(tenant, "session:a")
    CLOCK.move(CHECK_SECONDS)

    assert [await stops.read(tenant) for _ in range(3)] == [{"session:b": 2}] * 3


async def test_a_process_whose_wall_clock_was_set_back_compares_its_copy_again(
    stops: StopStore, older: OlderRelease, tenant: str
) -> None:
    await stops.read(tenant)
    await older.add(tenant, "session:a", 1)

    with CLOCK.wrong(-3_600):
        assert await stops.read(tenant) == {"session:a": 1}


@pytest.mark.parametrize("repeated", [True, False])
async def test_the_next_change_makes_the_records_of_an_older_release_equal(
    stops: StopStore, older: OlderRelease, cloud: Cloud, tenant: str, repeated: bool
) -> None:
    await older.add(tenant, "session:a", 1)
    await stops.read(tenant)

    if repeated:
        assert await stops.add(tenant, "session:a", 5) == 1
    else:
        assert await stops.remove(tenant, "session:none") is None

    assert stored(cloud, tenant) == [{"sk": "all", "session:a": 1, "stops": 1}]
    await stops.read(tenant)
    cloud.forget()
    assert await stops.read(tenant) == {"session:a": 1}
    assert (cloud.calls, cloud.units["GetItem"]) == ({"GetItem": 1}, 0.5)


async def test_changes_of_both_releases_at_once_are_all_kept(
    older: OlderRelease, stops: StopStore, cloud: Cloud, tenant: str
) -> None:
    names = [f"session:{number}" for number in range(10)]

    await asyncio.gather(*(older.add(tenant, name, 1) for name in names[:5]), *add_all(cloud, tenant, names[5:]))
    await stops.add(tenant, "tenant", 2)

    assert stored(cloud, tenant) == [{"sk": "all", "tenant": 2, "stops": 11} | dict.fromkeys(names, 1)]


def add_all(cloud: Cloud, tenant: str, names: list[str]) -> Iterator[Any]:
    return (cloud.other_process().stops.add(tenant, name, 1) for name in names)


async def test_a_difference_that_lasts_is_logged_once(
    stops: StopStore, older: OlderRelease, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "stint.store.stops")
    await older.add(tenant, "session:a", 1)

    logged = []
    for _ in range(3):
        await stops.read(tenant)
        logged.append(len(caplog.records))
        CLOCK.move(SETTLING_SECONDS)

    assert logged == [0, 1, 1]
    assert "Set a stop again with this release" in caplog.text


async def test_the_compatible_layout_writes_all_records_and_reads_the_original(
    cloud: Cloud, older: OlderRelease, tenant: str
) -> None:
    stops = StopStore(cloud.client, cloud.table_name, "compatible")
    await older.add(tenant, "session:a", 1)
    await stops.add(tenant, "session:b", 2)
    assert stored(cloud, tenant) == [{"sk": "all", "session:a": 1, "session:b": 2, "stops": 2}]
    await older.remove(tenant, "session:b")
    cloud.forget()

    with cloud.proxy.watch() as seen:
        assert await stops.read(tenant) == (await stops.read_with(tenant, []))[0] == {"session:a": 1}

    assert (cloud.calls, cloud.units["GetItem"]) == ({"GetItem": 1, "BatchGetItem": 1}, 0.5)
    assert [f"{tenant}#stop:" in each for each in seen] == [False, False]
