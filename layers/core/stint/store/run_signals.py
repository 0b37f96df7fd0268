"""Signals to running turns and responses, in records that they have already.

Those to a turn are in the session's record as long as the session is leased for it. Those to a response are in its
lease record.
"""

import time
from collections.abc import Mapping, Sequence

from stint.domain.errors import Forbidden, NotFound
from stint.domain.run_signals import ResponseRef, RunRef, RunSignals, TurnRef
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.stops import StopStore
from stint.store.table import Table
from stint.store.tombstones import is_live

SIGNAL_SECONDS = 86_400
"""Lifetime of a lease record that only has signals, which no run outlives."""


class RunSignalStore:
    """The signals to all runs. Each write costs one unit."""

    def __init__(self, table: Table, stops: StopStore) -> None:
        self._table = table
        self._stops = stops

    async def read(self, tenant: str, runs: Sequence[RunRef]) -> tuple[Mapping[str, int], Mapping[RunRef, RunSignals]]:
        """Read the stops of a tenant, and the signals to its runs, with one call. Only the first 99 runs are read."""
        named = {signal_record(tenant, run): run for run in runs}
        stops, found = await self._stops.read_with(tenant, list(named))
        return stops, {named[key]: signals_of(named[key], item) for key, item in found.items()}

    async def cancel_turn(self, tenant: str, run: TurnRef, owner: str = "") -> bool:
        """Cancel a turn, and return whether the session is leased for it.

        `owner` is the hash of the end user for whom the caller acts.

        Raises:
            Forbidden: the session belongs to another end user.
            NotFound: there is no such session.
        """
        return await self._signal_turn(tenant, run, {"cancelled_turn": run.turn_id}, owner)

    async def _signal_turn(self, tenant: str, run: TurnRef, assign: Item, owner: str) -> bool:
        condition, values = "lease_turn = :turn", {":turn": run.turn_id}
        if owner:
            condition += " AND (attribute_not_exists(end_users) OR end_users = :owner)"
            values[":owner"] = owner
        try:
            await self._table.update(signal_record(tenant, run), assign, condition, values)
        except ConditionFailed as refused:
            found = refused.item
            if not is_live(found):
                raise NotFound("Session", run.session_id) from None
            if owner and found.get("end_users", owner) != owner:
                raise Forbidden(
                    f"Session {run.session_id} belongs to another end user. Only that user's turns can be cancelled.",
                    code="other_end_user",
                ) from None
            return False
        return True

    async def cancel_response(self, tenant: str, response_id: str) -> None:
        """Cancel a response in the foreground. Raises NotFound if it was deleted."""
        now = int(time.time())
        await self._signal_response(tenant, response_id, {"cancelled_at": now})

    async def _signal_response(self, tenant: str, response_id: str, assign: Item) -> None:
        key, end = keys.response_lease(tenant, response_id), {"expires_at": int(time.time()) + SIGNAL_SECONDS}
        try:
            await self._table.update(key, assign | end, "attribute_not_exists(sealed_at)")
        except ConditionFailed:
            raise NotFound("Response", response_id) from None


def signal_record(tenant: str, run: RunRef) -> Key:
    """Return the key of the record that has a run's signals."""
    match run:
        case TurnRef():
            return keys.session(tenant, run.agent_id, run.session_id)
        case ResponseRef():
            return keys.response_lease(tenant, run.response_id)


def signals_of(run: RunRef, item: Item) -> RunSignals:
    """Return the signals in a record, which may be to an earlier turn."""
    match run:
        case TurnRef():
            return RunSignals(cancelled=item.get("cancelled_turn") == run.turn_id)
        case ResponseRef():
            return RunSignals(cancelled="cancelled_at" in item)
