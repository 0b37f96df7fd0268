"""DynamoDB in this process, with its limits: the engine of `make run` behind a `Capacity`.

The engine evaluates the requests, so conditions, transactions and the limits of a request are those that the tests of
the store rely on. It is called directly, as a connection would cost more than the calls. What it lacks is added here:
the units of each partition key, and refusals when they are used up. A refusal is the error that the client repeats; of
a batch, only a part may be refused, which is returned to the caller.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html has the units.
"""

import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from infra.bench.scale.capacity import Capacity, Direction, read_units, write_units
from infra.local.engine import PYTHON, require_engine

from stint.http1.parser import HttpResponse

Document = dict[str, Any]
TABLES = count(1)
NAMESPACE = "com.amazonaws.dynamodb.v20120810"
THROTTLED = "ProvisionedThroughputExceededException"
KEY_ATTRIBUTES = {"pk": "S", "sk": "S"}
KEY_CONDITION = re.compile(r"pk = (:\w+)")
VALUE = re.compile(r":\w+")
CHOICES = {"FilterExpression", "ProjectionExpression", "Select"}
"""The members that change the answer of a Query, but not what it reads."""
SINGLE: Mapping[str, tuple[str, Direction]] = {
    "GetItem": ("Key", "read"),
    "PutItem": ("Item", "write"),
    "UpdateItem": ("Key", "write"),
    "DeleteItem": ("Key", "write"),
}
BATCHES: Mapping[str, tuple[str, Direction]] = {
    "BatchGetItem": ("UnprocessedKeys", "read"),
    "BatchWriteItem": ("UnprocessedItems", "write"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """The key of a record."""

    pk: str
    sk: str


class TableEngine:
    """An empty table, `name`. `handle` answers as DynamoDB; it never waits, so calls are in the order of the loop."""

    def __init__(self, clock: Callable[[], float], capacity: Capacity | None = None) -> None:
        self.name = f"scale-{next(TABLES)}"
        self.capacity = capacity or Capacity()
        self._clock = clock
        self._engine = load_engine()

    async def create(self) -> None:
        names = [{"AttributeName": name, "AttributeType": kind} for name, kind in KEY_ATTRIBUTES.items()]
        schema = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
        table = {"TableName": self.name, "BillingMode": "PAY_PER_REQUEST"}
        request = table | {"AttributeDefinitions": names, "KeySchema": schema}
        answer = await self._send("CreateTable", json.dumps(request).encode())
        if answer.status != 200:
            raise RuntimeError(f"The engine did not create a table: {answer.body!r}")

    async def drop(self) -> None:
        """Forget the records."""
        await self._send("DeleteTable", json.dumps({"TableName": self.name}).encode())

    async def handle(self, operation: str, body: bytes) -> HttpResponse:
        """Answer a request, or refuse it."""
        request = json.loads(body)
        if operation in BATCHES:
            return await self._handle_batch(operation, request)
        touched, direction = places(operation, request)
        if not self.capacity.admits({place.pk for place in touched}, self._clock()):
            return _refuse(operation, len(touched))
        return await self._run(operation, request, touched, direction, body)

    async def _handle_batch(self, operation: str, request: Document) -> HttpResponse:
        """Run the admitted part of a batch, and return the rest."""
        left_name, direction = BATCHES[operation]
        now, [(table, asked)] = self._clock(), request["RequestItems"].items()
        is_read = operation == "BatchGetItem"
        members = members_of(operation, request)
        sorted_out: tuple[list[Document], list[Document]] = ([], [])
        for member in members:
            sorted_out[self.capacity.admits([place_of(member).pk], now)].append(member)
        refused, chosen = sorted_out
        if not chosen:
            return _refuse(operation, len(members))

        def part(some: Sequence[Document]) -> Document:
            return {table: asked | {"Keys": some} if is_read else some}

        request["RequestItems"] = part(chosen)
        answer = await self._run(operation, request, [place_of(member) for member in chosen], direction)
        if not refused or answer.status != 200:
            return answer
        return _answer(200, json.loads(answer.body) | {left_name: part(refused)})

    async def _run(
        self,
        operation: str,
        request: Document,
        touched: Sequence[Place],
        direction: Direction,
        body: bytes = b"",
    ) -> HttpResponse:
        """Let the engine answer, and charge what the request consumes. `body` is that of an unchanged request."""
        if operation == "Query":
            before = [await self._size_of_query(request)]
        else:
            before = [self._size(place) for place in touched]
        answer = await self._send(operation, body or json.dumps(request).encode())
        now, doubled = self._clock(), 2 if operation.startswith("Transact") else 1
        consistent = operation == "TransactGetItems" or is_consistent(operation, request)
        for place, size in zip(touched, before, strict=True):
            if direction == "read":
                units = read_units(size, consistent=consistent)
            else:  # a write whose condition has failed is charged for the record that it found
                units = write_units(max(size, self._size(place)))
            self.capacity.charge(place.pk, direction, doubled * units, now)
        return answer

    async def _size_of_query(self, request: Document) -> int:
        """Return the bytes that a Query reads: of whole records, also of those that it filters."""
        condition, values = request["KeyConditionExpression"], request["ExpressionAttributeValues"]
        kept = {name: value for name, value in values.items() if name in VALUE.findall(condition)}
        whole = {name: value for name, value in request.items() if name not in CHOICES}
        answer = await self._send("Query", json.dumps(whole | {"ExpressionAttributeValues": kept}).encode())
        items = json.loads(answer.body)["Items"] if answer.status == 200 else []
        return sum(self._engine._item_size_bytes(item) for item in items)

    def _size(self, place: Place) -> int:
        item = self._engine._tables.get(self.name)["items"].get(place.pk, {}).get(place.sk)
        return int(self._engine._item_size_bytes(item)) if item else 0

    async def _send(self, operation: str, body: bytes) -> HttpResponse:
        headers = {"x-amz-target": f"DynamoDB_20120810.{operation}"}
        status, answered, answer = await self._engine.handle_request("POST", "/", headers, body, {})
        return HttpResponse(status, answered, answer if isinstance(answer, bytes) else answer.encode())


def load_engine() -> Any:
    """Import the engine's DynamoDB from its own environment of packages."""
    require_engine()
    [packages] = PYTHON.parents[1].glob("lib/python*/site-packages")
    # At the end, and only now: whatever both environments have is this one's.
    sys.path.append(str(packages))
    try:
        engine: Any = importlib.import_module("ministack.services.dynamodb")
    finally:
        sys.path.remove(str(packages))
    if not hasattr(engine._condition_syntax_error, "cache_info"):
        engine._condition_syntax_error = lru_cache(1_000)(engine._condition_syntax_error)
    return engine


def places(operation: str, request: Document) -> tuple[list[Place], Direction]:
    """Return the records that a request names, or the partition of a Query."""
    if operation in SINGLE:
        name, direction = SINGLE[operation]
        return [_place(request[name])], direction
    if operation == "Query":
        found = KEY_CONDITION.match(request["KeyConditionExpression"])
        if found is None:
            raise ValueError(f"A Query without `pk = :name`: {request['KeyConditionExpression']}")
        return [Place(request["ExpressionAttributeValues"][found[1]]["S"], "")], "read"
    members = [place_of(member) for member in request["TransactItems"]]
    return members, "read" if operation == "TransactGetItems" else "write"


def members_of(operation: str, request: Document) -> list[Document]:
    """Return the members of a batch for one table."""
    [asked] = request["RequestItems"].values()
    members: list[Document] = asked["Keys"] if operation == "BatchGetItem" else asked
    return members


def place_of(member: Document) -> Place:
    """Return the place of a member of a batch or a transaction."""
    if "pk" in member:
        return _place(member)
    [named] = member.values()
    return _place(named.get("Key") or named["Item"])


def _place(key: Document) -> Place:
    return Place(key["pk"]["S"], key["sk"]["S"])


def is_consistent(operation: str, request: Document) -> bool:
    if operation == "BatchGetItem":
        return all(bool(asked.get("ConsistentRead")) for asked in request["RequestItems"].values())
    return bool(request.get("ConsistentRead"))


def _refuse(operation: str, members: int) -> HttpResponse:
    """Return the answer to a request that is not admitted."""
    message = "The throughput of the table or of one or more of its partitions was exceeded."
    if not operation.startswith("Transact"):
        return _answer(400, {"__type": f"{NAMESPACE}#{THROTTLED}", "message": message})
    reasons = [{"Code": "ThrottlingError", "Message": message}] * members
    kind = f"{NAMESPACE}#TransactionCanceledException"
    return _answer(400, {"__type": kind, "message": message, "CancellationReasons": reasons})


def _answer(status: int, document: Document) -> HttpResponse:
    return HttpResponse(status, {}, json.dumps(document).encode())
