import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.store.conftest import Cloud

from stint.domain.errors import StintError, StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.paging import Window
from stint.store import clients
from stint.store.failures import ConditionFailed
from stint.store.keys import Key
from stint.store.table import Table


@pytest.fixture
def table(cloud: Cloud) -> Table:
    return cloud.table


def fill(cloud: Cloud, pk: str, count: int, hidden: Callable[[int], bool] = lambda _: False) -> None:
    marks = ({"deleted_at": 1} if hidden(number) else {} for number in range(count))
    cloud.write({"pk": pk, "sk": f"{number:04d}"} | mark for number, mark in enumerate(marks))


@pytest.mark.parametrize(
    ("start", "limit", "first", "count", "more"),
    [
        (0, None, 0, 300, False),
        (0, 300, 0, 300, False),
        (0, 299, 0, 299, True),
        (0, 0, 0, 0, True),
        (99, 1, 198, 1, True),
        (250, 10, 500, 10, True),
        (299, 10, 598, 1, False),
        (300, 10, 0, 0, False),
        (5_000, None, 0, 0, False),
        (0, 10**20, 0, 300, False),
        (10**20, 10**20, 0, 0, False),
    ],
)
async def test_a_page_counts_only_live_entries(
    cloud: Cloud, tenant: str, table: Table, start: int, limit: int | None, first: int, count: int, more: bool
) -> None:
    fill(cloud, tenant, 600, hidden=lambda number: number % 2 == 1)

    found, has_more = await table.live_page(tenant, Window(start, limit))

    assert [item["sk"] for item in found] == [f"{first + 2 * step:04d}" for step in range(count)]
    assert has_more is more


async def test_hidden_entries_cost_no_call_each(cloud: Cloud, tenant: str, table: Table) -> None:
    fill(cloud, tenant, 500, hidden=lambda number: number < 490)
    cloud.forget()

    found, _ = await table.live_page(tenant, Window(3, 5))

    assert [item["sk"] for item in found] == [f"{number:04d}" for number in range(493, 498)]
    assert cloud.calls["Query"] <= 6


async def test_a_list_without_a_limit_ends_at_a_thousand(cloud: Cloud, tenant: str, table: Table) -> None:
    fill(cloud, tenant, 1_001)

    found, has_more = await table.live_page(tenant, Window())

    assert len(found) == 1_000
    assert has_more


async def test_a_write_that_finds_another_record_tells_which(tenant: str, table: Table) -> None:
    await table.put_new({"pk": tenant, "sk": "b", "doc": "mine"})

    with pytest.raises(ConditionFailed) as refused:
        await table.put_new({"pk": tenant, "sk": "b", "doc": "mine"})

    assert refused.value.item is not None
    assert refused.value.item["doc"] == "mine"


async def test_reading_many_leaves_out_what_is_missing(cloud: Cloud, tenant: str, table: Table) -> None:
    fill(cloud, tenant, 250)
    wanted = [Key(tenant, f"{number:04d}") for number in range(0, 500, 2)]

    found = await table.get_many(wanted)

    assert sorted(found) == wanted[:125]


async def test_many_records_are_written_and_deleted_25_a_call(cloud: Cloud, tenant: str, table: Table) -> None:
    made = [Key(tenant, f"{number:04d}") for number in range(60)]
    cloud.forget()

    await table.put_many([key._asdict() | {"number": int(key.sk)} for key in made])
    found = await table.get_many(made)
    await table.delete_many(made)

    assert [found[key]["number"] for key in made] == list(range(60))
    assert cloud.calls == {"BatchWriteItem": 6, "BatchGetItem": 1}
    assert await table.get_many(made) == {}


async def test_a_record_that_is_taken_is_given_as_it_was(tenant: str, table: Table) -> None:
    await table.put({"pk": tenant, "sk": "a", "doc": "mine"})

    taken = [await table.pop(Key(tenant, "a")) for _ in range(2)]

    assert taken == [{"pk": tenant, "sk": "a", "doc": "mine"}, None]


@pytest.mark.parametrize("page", [None, 3])
async def test_a_partition_is_read_from_any_place_in_either_direction(
    cloud: Cloud, tenant: str, table: Table, page: int | None
) -> None:
    cloud.write({"pk": tenant, "sk": f"{number:04d}", "model": "odd" if number % 2 else "even"} for number in range(20))

    async def read(**asked: Any) -> list[int]:
        return [int(item["sk"]) async for item in table.query(tenant, page=page, **asked)]

    assert await read(after="0015") == [16, 17, 18, 19]
    assert await read(after="0003", newest_first=True) == [2, 1, 0]
    assert await read(since="0018") == [18, 19]
    assert await read(prefix="001", after="0012", newest_first=True) == [11, 10]
    assert await read(after="0011", model="odd") == [13, 15, 17, 19]
    assert await read(before="0003") == [0, 1, 2]


async def test_what_a_batch_leaves_over_is_asked_for_again(own_cloud: Cloud, tenant: str) -> None:
    table = own_cloud.table
    fill(own_cloud, tenant, 4)
    wanted = [Key(tenant, f"{number:04d}") for number in range(4)]
    refused: list[dict[str, Any]] = []

    def leave_over(answer: dict[str, Any]) -> None:
        if not refused:
            refused.append(answer["Responses"][own_cloud.table_name].pop())
            key = {name: refused[0][name] for name in ("pk", "sk")}
            answer["UnprocessedKeys"] = {own_cloud.table_name: {"Keys": [key], "ConsistentRead": True}}

    with own_cloud.proxy.editing("BatchGetItem", answer=leave_over):
        found = await table.get_many(wanted)

    assert refused
    assert sorted(found) == wanted


async def test_a_batch_that_is_never_finished_is_unavailable(own_cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stint.store.table.random.uniform", lambda *_: 0)
    left = {own_cloud.table_name: [{"DeleteRequest": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}]}

    with (
        own_cloud.proxy.editing("BatchWriteItem", answer=lambda answer: answer.update(UnprocessedItems=left)),
        pytest.raises(StoreUnavailable),
    ):
        await own_cloud.table.delete_many([Key("a", "b")])

    assert own_cloud.calls["BatchWriteItem"] == 8


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (400, "ThrottlingException", StoreUnavailable),
        (400, "ProvisionedThroughputExceededException", StoreUnavailable),
        (500, "InternalServerError", StoreUnavailable),
        (503, "Whatever", StoreUnavailable),
        (400, "ResourceNotFoundException", StintError),
        (400, "AccessDeniedException", StintError),
    ],
)
async def test_errors_are_those_of_the_domain(
    own_cloud: Cloud, status: int, code: str, error: type[StintError]
) -> None:
    with (
        own_cloud.proxy.fail("GetItem", code, status=status, message="arn:aws:secret"),
        pytest.raises(StintError) as raised,
    ):
        await own_cloud.table.get(Key("a", "b"))

    assert type(raised.value) is error
    assert "arn" not in raised.value.message


async def test_a_database_that_does_not_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9")
    client = clients.make_dynamodb()

    with pytest.raises(StoreUnavailable, match="does not respond"):
        await Table(client, "table").get(Key("a", "b"))

    await client.close()


def test_clients_have_time_outs_retries_and_a_pool() -> None:
    made: list[Any] = [clients.make_s3(), clients.make_sqs(), clients.make_events()]
    for client in made:
        config = client.meta.config

        assert config.retries == {"mode": "standard", "total_max_attempts": 3}
        assert config.connect_timeout <= 5
        assert config.read_timeout <= 20
        assert config.max_pool_connections >= 10
        client.close()


async def test_a_write_that_is_repeated_after_a_lost_answer_succeeds(own_cloud: Cloud, tenant: str) -> None:
    table = own_cloud.table
    sent = own_cloud.proxy.lose_first_answer("PutItem")

    await table.put_new({"pk": f"{tenant}#agent", "sk": new_id(), "doc": "x"})

    assert sent == [200, 400]


async def test_a_repeated_write_does_not_take_an_equal_record_of_another_for_its_own(cloud: Cloud, tenant: str) -> None:
    table = cloud.table
    item = {"pk": f"{tenant}#agent", "sk": new_id(), "doc": "x"}

    async def write() -> str:
        try:
            await table.put_new(dict(item))
        except ConditionFailed:
            return "refused"
        return "written"

    outcomes = await asyncio.gather(*(write() for _ in range(16)))

    assert sorted(outcomes) == ["refused"] * 15 + ["written"]
