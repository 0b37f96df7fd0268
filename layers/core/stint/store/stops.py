"""The stops of a tenant: one small record, with an attribute for each stop and the number of stops.

All processes read this record once a second while they run something, so it is one record of a tenant that costs half a
read unit, and eventually consistent reads are enough. `stops` counts the attributes: the condition of a new stop
compares it with MAX_STOPS, which no condition could count otherwise. The stop of the whole tenant can always be added.
Each change requires that its stop is not there, or is there, so a repetition does not count it twice.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stint.domain.errors import Conflict, StoreUnavailable
from stint.domain.stops import MAX_STOPS, WHOLE_TENANT
from stint.store.failures import ConditionFailed
from stint.store.items import Item, decode, encode
from stint.store.keys import Key, checked_tenant
from stint.store.parallel import map_concurrently
from stint.store.table import call_counted

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient

OTHERS = frozenset({"pk", "sk", "stops"})
"""The attributes that are not stops."""

BATCH = 100
"""Maximum records of a call."""

TOO_MANY = "The tenant has {} stops, which is the maximum. Lift one of them, or stop the whole tenant."


def stop_record(tenant: str) -> Key:
    return Key(f"{checked_tenant(tenant)}#stop", "all")


class StopStore:
    """The stops of all tenants. The value of a stop is its time, in seconds of the epoch."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table_name = table

    async def read(self, tenant: str, *, consistent: bool = False) -> Mapping[str, int]:
        """Read the stops of a tenant: half a read unit, or one if `consistent`."""
        request = {"TableName": self._table_name, "Key": encode(stop_record(tenant)._asdict())}
        answer = await call_counted(self._client, "GetItem", request | {"ConsistentRead": consistent})
        return stops_of(decode(answer["Item"])) if "Item" in answer else {}

    async def read_with(self, tenant: str, keys: Sequence[Key]) -> tuple[Mapping[str, int], Mapping[Key, Item]]:
        """Read the stops of a tenant and other records, up to BATCH per call: half a read unit for each of 4 KB.

        Missing records are omitted. Raises StoreUnavailable if a part was not read.
        """
        own = stop_record(tenant)
        wanted = [own, *keys]
        parts = [wanted[at : at + BATCH] for at in range(0, len(wanted), BATCH)]
        found = {key: item for part in await map_concurrently(self._read_part, parts) for key, item in part.items()}
        return stops_of(found.pop(own, {})), found

    async def _read_part(self, keys: Sequence[Key]) -> dict[Key, Item]:
        request = {"RequestItems": {self._table_name: {"Keys": [encode(key._asdict()) for key in keys]}}}
        answer = await call_counted(self._client, "BatchGetItem", request)
        # Not repeated here: the caller reads again in a second.
        if answer.get("UnprocessedKeys"):
            raise StoreUnavailable("The database is overloaded. Try again.")
        items = map(decode, answer["Responses"].get(self._table_name, []))
        return {Key(item["pk"], item["sk"]): item for item in items}

    async def add(self, tenant: str, name: str, now: int) -> int:
        """Add a stop, and return its time, which is earlier if it exists. Raises Conflict if there are too many."""
        # A tenant that must be stopped must not be refused, because it has many stops.
        counted = "" if name == WHOLE_TENANT else " AND (attribute_not_exists(stops) OR stops < :most)"
        condition = f"attribute_not_exists(#stop){counted}"
        values = {":now": now, ":one": 1} | ({":most": MAX_STOPS} if counted else {})
        try:
            await self._update(tenant, name, "SET #stop = :now ADD stops :one", condition, values)
        except ConditionFailed as refused:
            found = stops_of(decode(refused.found))
            # Found: it was added before, perhaps by this very call, whose answer was lost.
            if name not in found:
                raise Conflict(TOO_MANY.format(len(found)), code="too_many_stops") from refused
            return found[name]
        return now

    async def remove(self, tenant: str, name: str) -> int | None:
        """Remove a stop, and return its time; None if there is none."""
        condition = "attribute_exists(#stop)"
        try:
            before = await self._update(tenant, name, "REMOVE #stop ADD stops :minus", condition, {":minus": -1})
        except ConditionFailed:
            return None
        return stops_of(before)[name]

    async def _update(self, tenant: str, name: str, expression: str, condition: str, values: Item) -> Item:
        """Change the record, and return it as it was before. Raises ConditionFailed."""
        request = {
            "TableName": self._table_name,
            "Key": encode(stop_record(tenant)._asdict()),
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#stop": name},
            "ExpressionAttributeValues": encode(values),
            "ReturnValues": "ALL_OLD",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return decode((await call_counted(self._client, "UpdateItem", request)).get("Attributes", {}))


def stops_of(item: Item) -> Mapping[str, int]:
    return {name: int(value) for name, value in item.items() if name not in OTHERS}
