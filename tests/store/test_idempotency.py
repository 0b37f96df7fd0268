import asyncio
import time

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, Interrupted
from stint.store import keys
from stint.store.idempotency import REMEMBERED_SECONDS, IdempotencyRecords


@pytest.fixture
def events(cloud: Cloud) -> IdempotencyRecords:
    return cloud.store.idempotency


async def test_the_lease_of_a_new_event_costs_one_write_of_one_unit(
    cloud: Cloud, events: IdempotencyRecords, tenant: str
) -> None:
    cloud.forget()

    with CLOCK.stop():
        record = await events.acquire(tenant, "order-7", "resp_1", 30)
        now = int(time.time())

    assert cloud.units == {"UpdateItem": 1}
    assert (record.began, record.outcome) == ("resp_1", None)
    [item] = cloud.items(tenant)
    assert int(item["expires_at"]["N"]) == now + REMEMBERED_SECONDS


async def test_one_of_many_gets_the_lease_of_an_event(events: IdempotencyRecords, tenant: str) -> None:
    async def acquire(number: int) -> str:
        try:
            return (await events.acquire(tenant, "order-7", f"resp_{number}", 30)).began
        except Conflict as conflict:
            return conflict.code

    taken = await asyncio.gather(*map(acquire, range(16)))

    assert taken.count("event_running") == 15


async def test_a_lapsed_lease_of_an_event_is_taken_over_with_what_it_began(
    events: IdempotencyRecords, tenant: str
) -> None:
    first = await events.acquire(tenant, "order-7", "", 30)
    await first.put_began("turn-1")
    await first.renew(0)
    CLOCK.move(0.002)

    second = await events.acquire(tenant, "order-7", "other", 30)

    assert second.began == "turn-1"
    with pytest.raises(Interrupted):
        await first.put_began("turn-2")
    with pytest.raises(Interrupted):
        await first.renew(30)
    await first.put_outcome("lost")
    assert await events.held_until(tenant, "order-7") is not None
    await second.put_outcome("done")
    assert (await events.acquire(tenant, "order-7", "other", 30)).outcome == "done"


async def test_what_is_done_is_done_whoever_asks(events: IdempotencyRecords, tenant: str) -> None:
    await (await events.acquire(tenant, "order-7", "resp_1", 30)).put_outcome('{"status":"completed"}')

    again = [await events.acquire(tenant, "order-7", "resp_2", 30) for _ in range(2)]

    assert [(record.began, record.outcome) for record in again] == [("resp_1", '{"status":"completed"}')] * 2


async def test_an_event_that_is_forgotten_begins_anew_whatever_the_table_still_holds(
    cloud: Cloud, events: IdempotencyRecords, tenant: str
) -> None:
    await (await events.acquire(tenant, "order-7", "resp_1", 30)).put_outcome("done")
    key = {name: {"S": value} for name, value in keys.event(tenant, "order-7")._asdict().items()}
    cloud.dynamodb.update_item(
        TableName=cloud.table_name,
        Key=key,
        UpdateExpression="SET expires_at = :past",
        ExpressionAttributeValues={":past": {"N": str(int(time.time()) - 1)}},
    )

    record = await events.acquire(tenant, "order-7", "resp_2", 30)

    assert (record.began, record.outcome) == ("resp_2", None)


async def test_events_of_tenants_are_their_own(events: IdempotencyRecords, tenant: str) -> None:
    first, second = [await events.acquire(name, "order-7", name, 30) for name in (tenant, f"{tenant}b")]

    assert (first.began, second.began) == (tenant, f"{tenant}b")
    assert await events.held_until(tenant, "unknown") is None
