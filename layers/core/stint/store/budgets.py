"""Counters of budgets in the table: one record per holder and month, which reservations never let pass its limits.

A reservation is one conditional addition: the counter plus the amount must not exceed the limit. So any number of
processes share a limit without a lock, and a refused one costs a write and changes nothing. What was reserved and not
spent is added back as a negative amount. `stint.spending.blocks` reserves more than one request needs, to write less
often.

    attribute            counts                            until
    microdollars         dollars of the month * 1,000,000  the record expires
    requests_<minute>    requests of a minute              a later reservation removes it (`forgotten`)
    tokens_<minute>      tokens of a minute                a later reservation removes it
    repaid_at            a second since 1970               it has passed

Tokens that were spent above a minute's limit are repaid by later minutes: `repaid_at` is the second until which no
tokens can be reserved. It counts seconds, not tokens, so that it remains right if the limit changes.

Sums of usage are counters, too: one record per day, caller, agent, session and model. A run adds to a record of each
model that it has called with ADD, which needs no read and no lock. A report reads the days that it sums up. Records of
a session are in one shard, by its id. A run without a session adds to any shard, so that a caller with many of them
does not write one record all the time.
"""

import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from stint.domain.usage import UsageSource
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item, decode, encode
from stint.store.keys import Key
from stint.store.parallel import map_concurrently
from stint.store.table import Table, call_counted

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient

Amounts = Mapping[str, int]
"""Amounts by attribute: `microdollars` of the month, and `requests_<minute>` and `tokens_<minute>`."""

REPAID_AT = "repaid_at"
NAMES = ("subject", "model_id")
"""Attributes of sums of usage that are texts: what is only a hash in their keys."""
NO_NAMES: Mapping[str, str] = {}


class BudgetSpent(Exception):
    """A counter does not allow an addition. `counted` has its amounts."""

    def __init__(self, counted: Item) -> None:
        super().__init__("the budget is spent")
        self.counted = counted


class BudgetStore:
    """The counters of budgets.

    A write whose answer is lost may be counted twice, because the client repeats it. If it reserved something, callers
    then spend less, not more.
    """

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table_name = table

    async def reserve(
        self,
        key: Key,
        amounts: Amounts,
        limits: Amounts,
        expires_at: int,
        forgotten: Iterable[str] = (),
        repaid_by: int | None = None,
    ) -> Item:
        """Add amounts to a counter, and return it. The amounts without a limit are added, too.

        `forgotten` are attributes of earlier minutes, which are removed. Raises BudgetSpent if an amount would pass its
        limit, or if tokens have to be repaid after the second `repaid_by`; nothing is added then.
        """
        # The condition is about the value before the addition. An amount above its limit could never be added.
        left = {name: limits[name] - amount for name, amount in amounts.items() if name in limits}
        if any(amount < 0 for amount in left.values()):
            raise BudgetSpent({})
        conditions = [f"(attribute_not_exists({name}) OR {name} <= :left_{name})" for name in left]
        values = {f":left_{name}": amount for name, amount in left.items()}
        if repaid_by is not None:
            conditions.append(f"(attribute_not_exists({REPAID_AT}) OR {REPAID_AT} <= :repaid_by)")
            values[":repaid_by"] = repaid_by
        try:
            return await self._add(
                key, amounts, expires_at, forgotten, condition=" AND ".join(conditions), values=values
            )
        # The refusal has the counter, from which the caller learns what is left, without a read.
        except ConditionFailed as refused:
            raise BudgetSpent(decode(refused.found)) from refused

    async def add(self, key: Key, amounts: Amounts, expires_at: int, names: Mapping[str, str] = NO_NAMES) -> Item:
        """Add amounts, which may be negative, to a counter, whatever its limits are, and return it.

        Its record also gets the `names`, by attribute.
        """
        set_names = {f":{name}": value for name, value in names.items() if value}
        return await self._add(key, amounts, expires_at, (), condition="", values=set_names)

    async def postpone(self, key: Key, begin: int, seconds: int, expires_at: int) -> Item:
        """Let no tokens be reserved for so many seconds from the second `begin` on, or after those of earlier calls.

        The counter is returned.
        """
        # If nothing is to be repaid any more, the time counts from `begin`; otherwise it is added to what is left.
        expires = "expires_at = :expires_at"
        first = f"attribute_not_exists({REPAID_AT}) OR {REPAID_AT} <= :begin"
        # Two writes at most: the second needs no condition, because later calls only postpone further.
        values = {":begin": begin, ":end": begin + seconds, ":expires_at": expires_at}
        try:
            return await self._update(key, f"SET {REPAID_AT} = :end, {expires}", values, first)
        except ConditionFailed:
            values = {":seconds": seconds, ":expires_at": expires_at}
            return await self._update(key, f"ADD {REPAID_AT} :seconds SET {expires}", values)

    async def _add(
        self, key: Key, amounts: Amounts, expires_at: int, forgotten: Iterable[str], condition: str, values: Item
    ) -> Item:
        added = ", ".join(f"{name} :{name}" for name in amounts)
        # Removed by the same write, so that a counter has attributes of few minutes, and costs one unit.
        removed = ", ".join(forgotten)
        named_by = "".join(f", {name} = :{name}" for name in NAMES if f":{name}" in values)
        expression = f"ADD {added} SET expires_at = :expires_at{named_by}" + (f" REMOVE {removed}" if removed else "")
        named = {f":{name}": amount for name, amount in amounts.items()} | values | {":expires_at": expires_at}
        return await self._update(key, expression, named, condition)

    async def _update(self, key: Key, expression: str, values: Item, condition: str = "") -> Item:
        request = {
            "TableName": self._table_name,
            "Key": encode(key._asdict()),
            "UpdateExpression": expression,
            "ExpressionAttributeValues": encode(values),
            "ReturnValues": "ALL_NEW",
        }
        if condition:
            request |= {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        return decode((await call_counted(self._client, "UpdateItem", request))["Attributes"])


KEPT_DAYS = 400
"""Days for which the sums of a day are stored, longer than a year."""
QUERIES = 16
"""Maximum concurrent Queries of a request."""


class UsageStore:
    """The sums of usage. Those of a day are in several shards, so that no tenant writes to one partition only."""

    def __init__(self, table: Table, counters: BudgetStore) -> None:
        self._table = table
        self._counters = counters

    async def add(self, tenant: str, day: str, source: UsageSource, amounts: Mapping[str, int]) -> None:
        """Add to the sum of a day and a source: one unit. An amount of 0 is not written."""
        # crc32, not hash(): all processes must find the same shard.
        shard = zlib.crc32(source.session_id.encode()) if source.session_id else secrets.randbelow(keys.SHARDS)
        key = keys.usage(tenant, day, shard % keys.SHARDS, source)
        expires_at = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=KEPT_DAYS)
        added = {name: amount for name, amount in amounts.items() if amount}
        names = {name: getattr(source, name) for name in NAMES}
        await self._counters.add(key, added, int(expires_at.timestamp()), names)

    async def read(self, tenant: str, days: Sequence[str]) -> list[tuple[str, UsageSource, dict[str, int]]]:
        """Read the sums of some days, with one Query for each shard of a day, several concurrently."""
        shards = [(day, pk) for day in days for pk in keys.usage_shards(tenant, day)]

        async def read_shard(shard: tuple[str, str]) -> list[tuple[str, UsageSource, dict[str, int]]]:
            day, pk = shard
            return [(day, source_of(item), amounts_of(item)) async for item in self._table.query(pk)]

        found = await map_concurrently(read_shard, shards, calls=QUERIES)
        return [each for part in found for each in part]


def source_of(item: Item) -> UsageSource:
    agent_id, session_id, key_id = item["sk"].split(":")[:3]
    return UsageSource(key_id, agent_id, session_id, *(item.get(name, "") for name in NAMES))


def amounts_of(item: Item) -> dict[str, int]:
    return {name: value for name, value in item.items() if isinstance(value, int) and name != "expires_at"}
