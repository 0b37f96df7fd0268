"""The engine of `make bench SCALE=1`: units of each partition key, and refusals, which the client's retries meet."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from infra.bench.scale.capacity import OF_A_KEY, Capacity, Limit
from infra.bench.scale.fleet import ROUND_TRIP_SECONDS, EngineClient, Throttles
from infra.bench.scale.table_engine import TableEngine
from infra.bench.scale.virtual_time import VirtualClock, run_virtually

from stint.aws.errors import DynamoDBError
from stint.domain.errors import StoreUnavailable
from stint.store.failures import ConditionFailed
from stint.store.items import encode
from stint.store.keys import Key
from stint.store.table import Table, take
from stint.store.transactions import ATTEMPTS, Put, Transactions

T = TypeVar("T")
UNPAID = Limit(0.001, 0.001)
"""One request is admitted, and none for a long time after it."""


class Scene:
    """A table, with a client of a process."""

    def __init__(self, clock: VirtualClock, capacity: Capacity | None = None) -> None:
        self.clock = clock
        self.engine = TableEngine(clock.read, capacity)
        self.throttles = Throttles()
        self.client = EngineClient(self.engine, self.throttles)
        self.table = Table(self.client, self.engine.name)

    async def fill(self, *keys: Key, size: int = 0) -> None:
        """Write records without limits."""
        kept, self.engine.capacity = self.engine.capacity, Capacity()
        await self.table.put_many([key._asdict() | {"text": "x" * size} for key in keys])
        self.engine.capacity = kept

    def units(self, pk: str) -> tuple[float, float]:
        """Return the writes and the reads of a key."""
        bucket = self.engine.capacity.key(pk, self.clock.now)
        return bucket.writes.total, bucket.reads.total


def on_table(act: Callable[[Scene], Awaitable[T]], capacity: Capacity | None = None) -> T:
    async def run(clock: VirtualClock) -> T:
        scene = Scene(clock, capacity)
        await scene.engine.create()
        try:
            return await act(scene)
        finally:
            await scene.engine.drop()

    return run_virtually(run)


A, B = Key("t#a", "1"), Key("t#b", "1")


def test_writes_of_a_key_are_those_that_the_engine_charges() -> None:
    async def act(scene: Scene) -> tuple[float, float]:
        charged = 0.0
        name = scene.engine.name

        async def call(operation: str, **request: Any) -> None:
            nonlocal charged
            answer = await scene.client.call(operation, request | {"ReturnConsumedCapacity": "TOTAL"})
            consumed = answer["ConsumedCapacity"]  # of a transaction, those of each table
            charged += sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed]))

        key = {"pk": {"S": A.pk}, "sk": {"S": A.sk}}
        item = key | {"text": {"S": "x" * 3_000}}
        await call("PutItem", TableName=name, Item=item)
        await call("PutItem", TableName=name, Item=key)  # a smaller record in place of a larger one
        await call("PutItem", TableName=name, Item=item)
        shorter = {"UpdateExpression": "REMOVE #t", "ExpressionAttributeNames": {"#t": "text"}}
        await call("UpdateItem", TableName=name, Key=key, **shorter)
        await call("PutItem", TableName=name, Item=item | {"text": {"S": "x" * 9_000}})
        await call("TransactWriteItems", TransactItems=[{"Put": {"TableName": name, "Item": item}}])
        await call("DeleteItem", TableName=name, Key=key)
        return charged, scene.units(A.pk)[0]

    charged, counted = on_table(act)
    assert charged == counted == 3 + 3 + 3 + 3 + 9 + 2 * 9 + 3


def test_reads_are_charged_for_whole_records_of_4_kb() -> None:
    async def act(scene: Scene) -> None:
        table, name = scene.table, scene.engine.name
        await scene.fill(*(Key(A.pk, str(at)) for at in range(6)), size=5_000)

        await table.get(A)
        assert scene.units(A.pk) == (0, 2)
        await scene.client.call("GetItem", {"TableName": name, "Key": encode(A._asdict())})
        assert scene.units(A.pk) == (0, 3)
        await table.get(Key(A.pk, "missing"))
        assert scene.units(A.pk) == (0, 4)
        await take(table.query(A.pk, attributes="sk"), 6)  # 30 KB in one call
        assert scene.units(A.pk) == (0, 12)
        await take(table.query(A.pk, model="other", since="4", before="9"), 1)  # filtered after it is read
        assert scene.units(A.pk) == (0, 15)

    on_table(act)


def test_each_key_of_a_batch_and_of_a_transaction_is_charged_by_itself() -> None:
    async def act(scene: Scene) -> None:
        await scene.fill(A, B, size=5_000)
        await scene.table.get_many([A, B, Key(A.pk, "2")])
        assert (scene.units(A.pk), scene.units(B.pk)) == ((0, 3), (0, 2))

        await scene.table.delete_many([A])
        transactions = Transactions(scene.client, scene.engine.name)
        await transactions.write(
            [Put({**A._asdict()}), Put({**B._asdict(), "text": ""}, condition="sk = :one", values={":one": "1"})]
        )
        assert (scene.units(A.pk), scene.units(B.pk)) == ((5 + 2, 3), (10, 2))

    on_table(act)


def test_a_write_whose_condition_fails_is_charged_for_the_record() -> None:
    async def act(scene: Scene) -> None:
        await scene.fill(A, size=2_500)
        with pytest.raises(ConditionFailed):
            await scene.table.put(A._asdict(), condition="attribute_not_exists(pk)")
        assert scene.units(A.pk) == (3, 0)

    on_table(act)


def test_a_refused_call_is_repeated_and_hidden() -> None:
    async def act(scene: Scene) -> float:
        await scene.fill(A)
        scene.engine.capacity.charge(A.pk, "read", 3_030, scene.clock.now)
        assert await scene.table.get(A) is not None
        assert scene.throttles.attempts["GetItem"] >= 1
        assert not +scene.throttles.calls
        return scene.clock.now

    assert on_table(act, Capacity(key=OF_A_KEY)) > 2 * ROUND_TRIP_SECONDS


def test_a_call_that_is_refused_three_times_is_unavailable() -> None:
    async def act(scene: Scene) -> None:
        await scene.fill(A)
        assert await scene.table.get(A) is not None
        with pytest.raises(StoreUnavailable) as raised:
            await scene.table.get(A)
        assert isinstance(raised.value.__cause__, DynamoDBError)
        assert raised.value.__cause__.code == "ProvisionedThroughputExceededException"
        assert (scene.throttles.attempts["GetItem"], scene.throttles.calls["GetItem"]) == (3, 1)

    on_table(act, Capacity(key=UNPAID))


def test_a_query_and_a_transaction_are_refused_too() -> None:
    async def act(scene: Scene) -> None:
        await scene.fill(A)
        await scene.table.get(A)
        with pytest.raises(StoreUnavailable):
            await take(scene.table.query(A.pk), 1)
        with pytest.raises(StoreUnavailable):
            await Transactions(scene.client, scene.engine.name).write([Put({**B._asdict()}), Put({**A._asdict()})])
        assert scene.throttles.calls == {"Query": 1, "TransactWriteItems": ATTEMPTS}
        assert await scene.table.get(B) is None

    on_table(act, Capacity(key=UNPAID))


def test_a_batch_is_refused_in_part() -> None:
    async def act(scene: Scene) -> None:
        await scene.fill(A, B)
        await scene.table.get(A)
        keys = [{name: {"S": value} for name, value in key._asdict().items()} for key in (A, B)]
        answer = await scene.client.call("BatchGetItem", {"RequestItems": {scene.engine.name: {"Keys": keys}}})
        assert [item["pk"] for item in answer["Responses"][scene.engine.name]] == [{"S": B.pk}]
        assert answer["UnprocessedKeys"][scene.engine.name]["Keys"] == keys[:1]
        assert scene.throttles.parts["BatchGetItem"] == 1

    on_table(act, Capacity(key=UNPAID))


def test_a_batch_of_writes_sends_the_rest_again() -> None:
    async def act(scene: Scene) -> None:
        scene.engine.capacity.charge(A.pk, "write", 1_010, scene.clock.now)
        await scene.table.put_many([A._asdict(), B._asdict()])
        assert await scene.table.get(A) is not None
        assert scene.throttles.parts["BatchWriteItem"] >= 1

    on_table(act, Capacity(key=OF_A_KEY))


@pytest.mark.parametrize(
    ("operation", "make"),
    [
        ("PutItem", lambda name: {"TableName": name, "Item": {**record("1"), "text": {"S": "x" * 410_000}}}),
        ("TransactWriteItems", lambda name: {"TransactItems": [put(name, str(at)) for at in range(101)]}),
        ("BatchWriteItem", lambda name: {"RequestItems": {name: [put_request(str(at)) for at in range(26)]}}),
        ("BatchGetItem", lambda name: {"RequestItems": {name: {"Keys": [record(str(at)) for at in range(101)]}}}),
    ],
)
def test_limits_of_a_request_are_refused(operation: str, make: Callable[[str], dict[str, Any]]) -> None:
    async def act(scene: Scene) -> tuple[int, str]:
        body = json.dumps(make(scene.engine.name)).encode()
        answer = await scene.engine.handle(operation, body)
        return answer.status, json.loads(answer.body)["__type"]

    assert on_table(act) == (400, "ValidationException")


def record(sk: str) -> dict[str, Any]:
    return {"pk": {"S": "t#a"}, "sk": {"S": sk}}


def put(name: str, sk: str) -> dict[str, Any]:
    return {"Put": {"TableName": name, "Item": record(sk)}}


def put_request(sk: str) -> dict[str, Any]:
    return {"PutRequest": {"Item": record(sk)}}


def test_an_attempt_takes_a_round_trip() -> None:
    async def act(scene: Scene) -> float:
        await asyncio.gather(scene.table.get(A), scene.table.get(B))
        return scene.clock.now

    assert on_table(act) == pytest.approx(ROUND_TRIP_SECONDS)
