"""Transactions: writes that all take effect, or none of them.

They cost twice the units, so they are used only where an order of single writes would not do. Examples are the two
records of an agent, of which neither may exist alone, and the documents of a vector store, whose record must exist and
forget its usage in the same moment. Elsewhere an order of writes is enough, such as children before parents.
"""

import asyncio
import random
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from stint.aws.errors import DynamoDBError
from stint.dataclasses import dataclass, field
from stint.domain.errors import StintError, StoreUnavailable
from stint.store.failures import TRY_AGAIN, ConditionFailed
from stint.store.items import Item, decode, encode
from stint.store.keys import Key
from stint.store.table import NEW, call_counted

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient

MAX_WRITES = 100
"""Maximum writes of a transaction (DynamoDB, "Quotas")."""

ATTEMPTS = 10
"""Maximum attempts, with random pauses of up to 20 ms before the second and 5 s before the last."""
CONFLICTS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


class TransactionCancelled(ConditionFailed):
    """The condition of a write did not hold, so nothing was written. `place` is that of the write."""

    def __init__(self, place: int, item: Item | None) -> None:
        super().__init__(item)
        self.place = place


@dataclass(frozen=True, slots=True)
class Put:
    """Write a record if a condition holds; an empty one always holds. `names` are those of attributes in it."""

    item: Item
    condition: str = NEW
    values: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Update:
    """Change attributes of a record (None removes one) if a condition holds."""

    key: Key
    assign: Mapping[str, Any]
    condition: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a record if a condition holds; an empty one always holds."""

    key: Key
    condition: str = ""


Write: TypeAlias = Put | Update | Delete


class Transactions:
    """Transactions in one table. Each record costs twice its write units."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self._name = name

    async def write(self, writes: Sequence[Write]) -> None:
        """Write all or nothing. Others that write the same records at the same time make this try again.

        The client repeats a request whose answer was lost with the same token, which DynamoDB recognizes.

        Raises:
            TransactionCancelled: a condition did not hold.
            StoreUnavailable: DynamoDB did not answer, or the records are written too often.
        """
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - spreads the load
            if await self.try_to_write(writes):
                return
        raise StoreUnavailable("Too many requests write the same records. Try again.")

    async def try_to_write(self, writes: Sequence[Write]) -> bool:
        """Write all or nothing, and return whether it took effect; False if another attempt may succeed.

        Raises as `write`.
        """
        # The token is new for each attempt: DynamoDB would return the outcome of the cancelled one again.
        operations = [self._operation(write) for write in writes]
        request = {"TransactItems": operations, "ClientRequestToken": secrets.token_hex(16)}
        try:
            await call_counted(self._client, "TransactWriteItems", request)
        except StintError as error:
            if not isinstance(cause := error.__cause__, DynamoDBError) or not cause.reasons:
                raise
            return _check(cause.reasons, error)
        return True

    def _operation(self, write: Write) -> dict[str, Any]:
        common: dict[str, Any] = {"TableName": self._name}
        if write.condition:
            common |= {"ConditionExpression": write.condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if isinstance(write, Put):
            values = {"ExpressionAttributeValues": encode(dict(write.values))} if write.values else {}
            names = {"ExpressionAttributeNames": dict(write.names)} if write.names else {}
            return {"Put": common | values | names | {"Item": encode(write.item)}}
        if isinstance(write, Delete):
            return {"Delete": common | {"Key": encode(write.key._asdict())}}
        named = {f":set_{name}": value for name, value in write.assign.items() if value is not None}
        expression = f"SET {', '.join(f'{name[5:]} = {name}' for name in named)}" if named else ""
        removed = [name for name, value in write.assign.items() if value is None]
        expression += f" REMOVE {', '.join(removed)}" if removed else ""
        values = {"ExpressionAttributeValues": encode(named | dict(write.values))} if named or write.values else {}
        return {"Update": common | values | {"Key": encode(write.key._asdict()), "UpdateExpression": expression}}


def _check(reasons: Sequence[dict[str, Any]], error: StintError) -> bool:
    """Return False if a transaction may be repeated. Raises TransactionCancelled, or the error itself."""
    # A condition decides, even if another write conflicts: the caller must look at the record that it found.
    for place, reason in enumerate(reasons):
        if reason.get("Code") == "ConditionalCheckFailed":
            found = reason.get("Item")
            raise TransactionCancelled(place, decode(found) if found else None) from error
    # Another transaction or write had one of the records at this moment. Nothing was written.
    if any(reason.get("Code") in CONFLICTS | TRY_AGAIN for reason in reasons):
        return False
    raise error
