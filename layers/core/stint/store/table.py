"""The DynamoDB table: strongly consistent reads, and conditional writes that are safe to retry.

The client repeats a call whose answer was lost. So each write must have the same effect if it arrives twice:

    write                     arrives twice                                     who recognizes its own record
    put, put_many, delete     the same record, or none                          -
    put_new                   the condition refuses the second one              a random `nonce` in the record
    update                    the condition may refuse the second one           the caller, by what it has assigned
    update with `count`       counted twice                                     nobody: only a change matters
    ADD (budgets)             counted twice                                     -
    transaction               DynamoDB recognizes the token of the request      -

A batch may handle only a part of its records, so the rest is sent again, with pauses. Reads are strongly consistent: a
log, a lease or a mark that was written by another process is seen by the next read, on which all protocols here rely.
"""

import asyncio
import random
import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from stint.aws.errors import DynamoDBError, NoResponse
from stint.domain.errors import StoreUnavailable
from stint.domain.paging import MAX_ENTRIES, Window
from stint.metering import count_capacity
from stint.store.failures import ConditionFailed, table_error
from stint.store.items import Item, decode, encode
from stint.store.keys import Key
from stint.store.parallel import map_concurrently

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient


T = TypeVar("T")

GET_BATCH = 100
"""Maximum records of a BatchGetItem (DynamoDB, "Quotas")."""
WRITE_BATCH = 25
"""Maximum records of a BatchWriteItem (DynamoDB, "Quotas")."""
BATCH_ATTEMPTS = 8
"""Maximum calls for a batch. The pauses are random, up to 50 ms before the second call and 3.2 s before the last."""
SMALL_PAGE = 100
"""Minimum entries of a read for a list, so that hidden entries do not cost a call each."""
LARGE_PAGE = 50_000
"""Maximum entries of a read for a list, more than a response can contain."""

OVERLOADED = "The database is overloaded. Try again."

NEW = "attribute_not_exists(pk)"
"""The condition that there is no record."""

LIVE = "attribute_not_exists(deleted_at) AND (attribute_not_exists(expires_at) OR expires_at > :now)"
"""The condition that a record is neither marked for deletion nor expired. `:now` is in seconds."""


class Table:
    """One table with string keys `pk` and `sk`.

    All reads are strongly consistent. All methods raise StoreUnavailable if DynamoDB throttles or does not answer,
    after the client's own retries. `seen_leases` are those that this process has seen; see `is_unrenewed`.
    """

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self._name = name
        self.seen_leases: dict[Key, tuple[int, float]] = {}

    async def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        return await call_counted(self._client, operation, request)

    async def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """Read a record; None if there is none. Without `consistent`, it may be older, for half a unit."""
        answer = await self._call("GetItem", TableName=self._name, Key=_key(key), ConsistentRead=consistent)
        return decode(answer["Item"]) if "Item" in answer else None

    async def get_many(self, keys: Sequence[Key], attributes: str | None = None) -> dict[Key, Item]:
        """Read records, or some `attributes` of them, concurrently, up to 100 per call. Missing ones are omitted."""
        parts = [keys[at : at + GET_BATCH] for at in range(0, len(keys), GET_BATCH)]
        found = await map_concurrently(lambda part: self._get_part(part, attributes), parts)
        return {key: item for part in found for key, item in part}

    async def _get_part(self, keys: Sequence[Key], attributes: str | None) -> list[tuple[Key, Item]]:
        found: list[tuple[Key, Item]] = []
        chosen = {"ProjectionExpression": f"pk, sk, {attributes}"} if attributes else {}
        left: Any = {self._name: {"Keys": [_key(key) for key in keys], "ConsistentRead": True, **chosen}}
        for attempt in range(BATCH_ATTEMPTS):
            await _pause(attempt)
            answer = await self._call("BatchGetItem", RequestItems=left)
            items = map(decode, answer["Responses"].get(self._name, []))
            found += [(Key(item["pk"], item["sk"]), item) for item in items]
            left = answer.get("UnprocessedKeys")
            if not left:
                return found
        raise StoreUnavailable(OVERLOADED)

    def query(
        self,
        pk: str,
        *,
        prefix: str | None = None,
        before: str | None = None,
        since: str | None = None,
        after: str | None = None,
        model: str | None = None,
        newest_first: bool = False,
        attributes: str | None = None,
        page: int | None = None,
    ) -> AsyncGenerator[Item, None]:
        """Read a partition in key order: sort keys with a prefix, below `before`, from `since` on.

        A call reads 1 MB, or `page` records. `after` is the sort key to start after, in the requested order. `model`
        filters the records that have this attribute; the others are read, too.
        """
        request: dict[str, Any] = {"ScanIndexForward": not newest_first}
        if attributes:
            request["ProjectionExpression"] = attributes
        if page is not None:
            request["Limit"] = page
        if after is not None:
            request["ExclusiveStartKey"] = _key(Key(pk, after))
        if model is not None:
            request["FilterExpression"] = "model = :model"
        values = {} if model is None else {":model": model}
        condition, bounds = sk_condition(prefix=prefix, before=before, since=since)
        return self._items(pk, request, condition, values | bounds)

    async def _items(
        self, pk: str, request: dict[str, Any], condition: str = "", values: Item | None = None
    ) -> AsyncGenerator[Item, None]:
        while True:
            answer = await self._query(pk, request, condition, values)
            for item in answer["Items"]:
                yield decode(item)
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def _query(
        self, pk: str, request: dict[str, Any], condition: str = "", values: Item | None = None
    ) -> dict[str, Any]:
        return await self._call(
            "Query",
            TableName=self._name,
            ConsistentRead=True,
            KeyConditionExpression=f"pk = :pk AND {condition}" if condition else "pk = :pk",
            ExpressionAttributeValues=encode({":pk": pk} | (values or {})),
            **request,
        )

    async def live_page(self, pk: str, window: Window) -> tuple[list[Item], bool]:
        """Return the live records of a partition in a window, and whether more follow. Their names are not compared.

        Entries before the window are counted, not transferred: DynamoDB reads up to 1 MB per call to skip them.
        """
        request: dict[str, Any] = {"FilterExpression": LIVE, "ScanIndexForward": not window.newest_first}
        if window.after is not None:
            request["ExclusiveStartKey"] = _key(Key(pk, window.after))
        values = {":now": int(time.time())}
        skip = window.start
        # A few entries are skipped by reading them: another call would take longer.
        while skip >= SMALL_PAGE:
            counting = request | {"Select": "COUNT", "Limit": min(skip, LARGE_PAGE)}
            answer = await self._query(pk, counting, values=values)
            skip -= answer["Count"]
            if "LastEvaluatedKey" not in answer:
                return [], False
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        limit = MAX_ENTRIES if window.limit is None else min(window.limit, LARGE_PAGE)
        # One more than shown, which tells whether others follow.
        request["Limit"] = max(SMALL_PAGE, skip + limit + 1)
        found = (await take(self._items(pk, request, values=values), skip + limit + 1))[skip:]
        return found[:limit], len(found) > limit

    async def put(self, item: Item, *, condition: str | None = None) -> None:
        """Write a record, replacing an existing one. Raises ConditionFailed."""
        request: dict[str, Any] = {"ConditionExpression": condition} if condition else {}
        await self._call("PutItem", TableName=self._name, Item=encode(item), **request)

    async def put_many(self, items: Sequence[Item]) -> None:
        """Write records, replacing existing ones, 25 per call, concurrently. After an error some may be written."""
        await self._write_many([{"PutRequest": {"Item": encode(item)}} for item in items])

    async def put_new(self, item: Item, *, condition: str = NEW, values: Item | None = None) -> None:
        """Write a record if there is none, or if a condition holds.

        Raises ConditionFailed with the existing record.

        The client retries a write whose answer was lost. The retry then finds its own record, which a random `nonce`
        distinguishes from an equal record of another writer. An item may have its own.
        """
        sent = {"nonce": secrets.token_bytes(6)} | item
        bound: Any = {"ExpressionAttributeValues": encode(values)} if values else {}
        try:
            await self._call(
                "PutItem",
                TableName=self._name,
                Item=encode(sent),
                ConditionExpression=condition,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **bound,
            )
        except ConditionFailed as refused:
            found = decode(refused.found)
            # An equal record is that of this very call: its first try took effect, and the answer was lost.
            if found != sent:
                raise ConditionFailed(found) from refused

    async def update(
        self,
        key: Key,
        assign: Mapping[str, Any],
        condition: str,
        values: Mapping[str, Any] | None = None,
        *,
        previous: bool = False,
        count: str | None = None,
    ) -> Item:
        """Change attributes (None removes one), and return the whole new record, or the `previous` one.

        `count` is an attribute to which 1 is added. If the client repeats the call, it may be added twice.
        Raises ConditionFailed with the existing record, or None if there is none.
        """
        changed = {name: value for name, value in assign.items() if value is not None}
        removed = [name for name in assign if name not in changed]
        sets = [f"{name} = :set_{name}" for name in changed]
        sets += [f"{count} = if_not_exists({count}, :none) + :one"] if count else []
        expression = f"SET {', '.join(sets)}" if sets else ""
        expression += f" REMOVE {', '.join(removed)}" if removed else ""
        named = {f":set_{name}": value for name, value in changed.items()} | dict(values or {})
        named |= {":none": 0, ":one": 1} if count else {}
        try:
            answer = await self._call(
                "UpdateItem",
                TableName=self._name,
                Key=_key(key),
                UpdateExpression=expression,
                ConditionExpression=condition,
                ReturnValues="ALL_OLD" if previous else "ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **({"ExpressionAttributeValues": encode(named)} if named else {}),
            )
        except ConditionFailed as refused:
            raise ConditionFailed(decode(refused.item) if refused.item else None) from refused
        return decode(answer["Attributes"])

    async def delete(self, key: Key, *, condition: str | None = None, values: Item | None = None) -> None:
        """Delete a record if it exists and meets a condition."""
        request: dict[str, Any] = {"ConditionExpression": condition} if condition else {}
        request |= {"ExpressionAttributeValues": encode(values)} if values else {}
        # Whoever has changed the record in the meantime keeps it.
        with suppress(ConditionFailed):
            await self._call("DeleteItem", TableName=self._name, Key=_key(key), **request)

    async def pop(self, key: Key) -> Item | None:
        """Delete a record, and return it."""
        answer = await self._call("DeleteItem", TableName=self._name, Key=_key(key), ReturnValues="ALL_OLD")
        return decode(answer["Attributes"]) if "Attributes" in answer else None

    async def delete_many(self, keys: Sequence[Key]) -> None:
        """Delete records, up to 25 per call, concurrently. Missing ones are ignored."""
        await self._write_many([{"DeleteRequest": {"Key": _key(key)}} for key in keys])

    async def _write_many(self, requests: Sequence[Any]) -> None:
        parts = [requests[at : at + WRITE_BATCH] for at in range(0, len(requests), WRITE_BATCH)]
        await map_concurrently(self._write_part, parts)

    async def _write_part(self, requests: Sequence[Any]) -> None:
        left: Any = {self._name: requests}
        for attempt in range(BATCH_ATTEMPTS):
            await _pause(attempt)
            left = (await self._call("BatchWriteItem", RequestItems=left)).get("UnprocessedItems")
            if not left:
                return
        raise StoreUnavailable(OVERLOADED)


async def take(items: AsyncGenerator[T, None], count: int) -> list[T]:
    """Return the next items of a generator, at most `count`, and read no further."""
    found: list[T] = []
    while len(found) < count and (item := await anext(items, None)) is not None:
        found.append(item)
    return found


def _key(key: Key) -> dict[str, Any]:
    return encode(key._asdict())


async def _pause(attempt: int) -> None:
    """Wait before an attempt other than the first one, longer each time."""
    if attempt:
        await asyncio.sleep(random.uniform(0, 0.025 * 2**attempt))  # noqa: S311 - spreads the load, hides nothing


CONDITIONS = {
    "begins_with(sk, :prefix)": {":prefix"},
    "sk BETWEEN :since AND :before": {":since", ":before"},
    "sk < :before": {":before"},
    "sk >= :since": {":since"},
}
"""The conditions, and the values that each needs. DynamoDB accepts one condition of a sort key."""


def sk_condition(*, prefix: str | None, before: str | None, since: str | None) -> tuple[str, Item]:
    """Return the condition for the given bounds, or an empty text, and its values.

    With `since`, no record may have the key `before`, which BETWEEN includes.
    """
    bounds = {":prefix": prefix, ":before": before, ":since": since}
    values = {name: value for name, value in bounds.items() if value is not None}
    condition = next((text for text, names in CONDITIONS.items() if names <= values.keys()), "")
    return condition, {name: values[name] for name in CONDITIONS.get(condition, ())}


async def call_counted(
    client: "DynamoDBClient", operation: str, request: Mapping[str, Any], *, repeat_throttled: bool = True
) -> dict[str, Any]:
    """Call an operation, and count the units that it consumed. Raises what `table_error` returns."""
    try:
        counted = {**request, "ReturnConsumedCapacity": "TOTAL"}
        answer = await client.call(operation, counted, repeat_throttled=repeat_throttled)
    except (DynamoDBError, NoResponse) as error:
        raise table_error(error) from error
    if consumed := answer.get("ConsumedCapacity"):
        count_capacity(operation, consumed)
    return answer
