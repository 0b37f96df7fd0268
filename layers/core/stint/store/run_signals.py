"""Signals to running turns and responses.

No process can be called: a run is somewhere in a function of Lambda. So a signal is an attribute of a record that the
run has already, and the run's process reads it once a second, together with the stops of its tenant
(`stint.store.stops`).

    signal       turn: session's record, while it is leased for it   response: lease record   read as
    cancelled    cancelled_turn = the turn                           cancelled_at             the run ends as cancelled
    heartbeat    heartbeat_turn, heartbeat_at                        heartbeat_at             the client is there

The signals of a turn have its id, and a release of the lease removes them. So a signal that arrives late cannot reach
the next turn. A response's lease record belongs to it alone.
"""

import time
from collections.abc import Mapping, Sequence

from stint.domain.errors import Forbidden, NotFound
from stint.domain.run_signals import ResponseRef, RunRef, RunSignals, TurnRef
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.records import is_live
from stint.store.session_records import SessionRecords
from stint.store.stops import StopStore
from stint.store.table import Table

SIGNAL_SECONDS = 86_400
"""Lifetime of a lease record that only has signals, which no run outlives."""


class RunSignalStore:
    """The signals to all runs. Each write costs one unit."""

    def __init__(self, sessions: SessionRecords, table: Table, stops: StopStore) -> None:
        self._sessions = sessions
        self._table = table
        self._stops = stops

    async def read(self, tenant: str, runs: Sequence[RunRef]) -> tuple[Mapping[str, int], Mapping[RunRef, RunSignals]]:
        """Read the stops of a tenant, and the signals to its runs, with one call for up to 98 records."""
        records = {run: self._records_of(tenant, run) for run in runs}
        wanted = {key for places in records.values() for key in places}
        stops, found = await self._stops.read_with(tenant, list(wanted))
        items = {run: [found[key] for key in places if key in found] for run, places in records.items()}
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
