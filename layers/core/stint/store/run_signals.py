"""Stops of tenants, and signals to running turns and responses.

No process can be called: a run is somewhere in a function of Lambda. So a signal is an attribute of a record that the
run has already, and the run's process reads it once a second, together with the stops of its tenant.

    signal       turn: session's record, while it is leased for it   response: lease record   read as
    cancelled    cancelled_turn = the turn                           cancelled_at             the run ends as cancelled
    heartbeat    heartbeat_turn, heartbeat_at                        heartbeat_at             the client is there

The signals of a turn have its id, and a release of the lease removes them. So a signal that arrives late cannot reach
the next turn. A response's lease record belongs to it alone.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stint.domain.errors import Conflict, Forbidden, NotFound, StoreUnavailable
from stint.domain.run_signals import ResponseRef, RunRef, RunSignals, TurnRef
from stint.domain.stops import MAX_STOPS, WHOLE_TENANT
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item, decode, encode
from stint.store.keys import Key, KeyLayout, checked_tenant
from stint.store.parallel import map_concurrently
from stint.store.records import is_live
from stint.store.session_records import SessionRecords
from stint.store.table import Table, call_counted

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
    """The stops of all tenants. The value of a stop is its time, in seconds of the epoch.

    All processes read this record once a second while they run something, so it is one record of a tenant that costs
    half a read unit, and eventually consistent reads are enough. `stops` counts the attributes: the condition of a new
    stop compares it with MAX_STOPS, which no condition could count otherwise. The stop of the whole tenant can always
    be added. Each change requires that its stop is not there, or is there, so a repetition does not count it twice.
    """

    def __init__(self, client: "DynamoDBClient", table: str, key_layout: KeyLayout = "spread") -> None:
        self._client = client
        self._table_name = table
        self._key_layout = key_layout

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
            await self._update(tenant, name, "SET #stop = :now ADD stops :one", condition, values=values)
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
            before = await self._update(tenant, name, "REMOVE #stop ADD stops :minus", condition, values={":minus": -1})
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


SIGNAL_SECONDS = 86_400
"""Lifetime of a lease record that only has signals, which no run outlives."""


class RunSignalStore:
    """The signals to all runs. Each write costs one unit."""

    def __init__(self, sessions: SessionRecords, table: Table, stops: StopStore) -> None:
        self._sessions = sessions
        self._table = table
        self._stops = stops

    async def read(self, tenant: str, runs: Sequence[RunRef]) -> tuple[Mapping[str, int], Mapping[RunRef, RunSignals]]:
        """Read the stops of a tenant, and the signals to its runs, with one call for up to 99 runs."""
        records = {run: self._records_of(tenant, run) for run in runs}
        wanted = {key for keys in records.values() for key in keys}
        stops, found = await self._stops.read_with(tenant, list(wanted))
        items = {run: [found[key] for key in keys if key in found] for run, keys in records.items()}
        return stops, {run: signals_of(run, *some) for run, some in items.items() if some}

    def _records_of(self, tenant: str, run: RunRef) -> list[Key]:
        """Return the keys of the records that may have a run's signals."""
        match run:
            case ResponseRef():
                return [keys.response_lease(tenant, run.response_id)]
            case TurnRef():
                session = tenant, run.agent_id, run.session_id
                # The other layout's processes lease sessions in the list entry.
                entries = [] if self._sessions.spread else [keys.session(*session)]
                return [*entries, keys.session_state(*session)]

    async def cancel_turn(self, tenant: str, run: TurnRef, owner: str = "") -> bool:
        """Cancel a turn, and return whether the session is leased for it.

        `owner` is the hash of the end user for whom the caller acts.

        Raises:
            Forbidden: the session belongs to another end user.
            NotFound: there is no such session.
        """
        return await self._signal_turn(tenant, run, {"cancelled_turn": run.turn_id}, owner)

    async def put_turn_heartbeat(self, tenant: str, run: TurnRef, owner: str = "") -> bool:
        """Note a heartbeat of a turn's client, and return whether the session is leased for it. Raises as above."""
        beat = {"heartbeat_turn": run.turn_id, "heartbeat_at": milliseconds()}
        return await self._signal_turn(tenant, run, beat, owner)

    async def _signal_turn(self, tenant: str, run: TurnRef, assign: Item, owner: str) -> bool:
        # Only while the turn runs: otherwise the caller ends the turn itself, under the lease.
        condition, values = "lease_turn = :turn", {":turn": run.turn_id}
        if owner:
            condition += " AND (attribute_not_exists(end_users) OR end_users = :owner)"
            values[":owner"] = owner
        try:
            session = tenant, run.agent_id, run.session_id
            await self._sessions.update(*session, assign=assign, condition=condition, values=values)
        except ConditionFailed as refused:
            found = refused.item
            if not is_live(found):
                raise NotFound("Session", run.session_id) from None
            if owner and found.get("end_users", owner) != owner:
                raise Forbidden(
                    f"Session {run.session_id} belongs to another end user. Use a session of the one that "
                    "X-Stint-User names.",
                    code="other_end_user",
                ) from None
            return False
        return True

    async def cancel_response(self, tenant: str, response_id: str) -> None:
        """Cancel a response in the foreground. Raises NotFound if it was deleted."""
        await self._signal_response(tenant, response_id, {"cancelled_at": int(time.time())})

    async def put_first_heartbeat(self, tenant: str, response_id: str) -> None:
        """Note the first heartbeat of the client of a response in the foreground. Raises NotFound if it was deleted."""
        await self._signal_response(tenant, response_id, {"heartbeat_at": milliseconds()})

    async def put_next_heartbeat(self, tenant: str, response_id: str) -> bool:
        """Note another heartbeat of a response's client, and return whether the record has an earlier one.

        Raises NotFound as above.
        """
        try:
            beat = {"heartbeat_at": milliseconds()}
            await self._signal_response(tenant, response_id, beat, " AND attribute_exists(heartbeat_at)")
        except ConditionFailed:
            return False
        return True

    async def _signal_response(self, tenant: str, response_id: str, assign: Item, also: str = "") -> None:
        """Write a signal to a response. Raises NotFound, or ConditionFailed if `also` does not hold."""
        # The write makes the record if there is none. It must then expire, like one that a renewal has made.
        key, end = keys.response_lease(tenant, response_id), {"expires_at": int(time.time()) + SIGNAL_SECONDS}
        try:
            await self._table.update(key, assign | end, f"attribute_not_exists(sealed_at){also}")
        except ConditionFailed as refused:
            if also and "sealed_at" not in (refused.item or {}):
                raise
            raise NotFound("Response", response_id) from None


def signals_of(run: RunRef, *items: Item) -> RunSignals:
    """Return the signals in the records of a run, which may be to an earlier turn."""
    match run:
        case TurnRef():
            beats = [item.get("heartbeat_at") for item in items if item.get("heartbeat_turn") == run.turn_id]
            cancelled = any(item.get("cancelled_turn") == run.turn_id for item in items)
            return RunSignals(cancelled=cancelled, heartbeat_at=beats[0] if beats else None)
        case ResponseRef():
            [item] = items
            return RunSignals(cancelled="cancelled_at" in item, heartbeat_at=item.get("heartbeat_at"))


def milliseconds() -> int:
    """Return the time in milliseconds of the epoch."""
    return int(time.time() * 1000)
