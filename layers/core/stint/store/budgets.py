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
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from stint.store.capacity import call_counted
from stint.store.failures import ConditionFailed
from stint.store.items import Item, decode, encode
from stint.store.keys import Key

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient

Amounts = Mapping[str, int]
"""Amounts by attribute: `microdollars` of the month, and `requests_<minute>` and `tokens_<minute>`."""

REPAID_AT = "repaid_at"


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
            return await self._add(key, amounts, expires_at, forgotten, " AND ".join(conditions), values)
        # The refusal has the counter, from which the caller learns what is left, without a read.
        except ConditionFailed as refused:
            raise BudgetSpent(decode(refused.found)) from refused

    async def add(self, key: Key, amounts: Amounts, expires_at: int, subject: str = "") -> Item:
        """Add amounts, which may be negative, to a counter, whatever its limits are, and return it.

        With a `subject`, the record names it.
        """
        return await self._add(key, amounts, expires_at, (), "", {":subject": subject} if subject else {})

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
        named_by = ", subject = :subject" if ":subject" in values else ""
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
