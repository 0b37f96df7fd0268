"""The lease on a session: one turn at a time. It stands on the session's record and costs one unit each time."""

import secrets
import time
from contextlib import suppress
from dataclasses import dataclass

from stint.domain.errors import Conflict, Interrupted, NotFound, StoreUnavailable
from stint.domain.ids import new_id
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.sessions import LastTurn, last_turn
from stint.store.table import LIVE, Table
from stint.store.tombstones import is_live

ATTEMPTS = 5
LEASE = ("lease_id", "lease_turn", "lease_until")
FREE = f"attribute_exists(pk) AND {LIVE} AND attribute_not_exists(lease_id)"
RUN_OUT = f"{LIVE} AND lease_id = :old_id AND lease_until = :old_until"
HELD = "lease_id = :held AND attribute_not_exists(deleted_at)"
IS_LAST = "last_turn = :set_lease_turn"
IS_NEWER = "(attribute_not_exists(last_turn) OR last_turn < :set_lease_turn)"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a session.

    `turn_id` may differ from the one asked for, when another machine's clock was ahead. `last` is where the
    session's history ended. `taken_over_turn` is the turn of a holder that let its lease run out: it is to be
    sealed, and the history read again, before anything else. `expires_at` is that of the session.
    """

    tenant: str
    agent_id: str
    session_id: str
    turn_id: str
    lease_id: str
    last: LastTurn | None
    expires_at: int | None
    taken_over_turn: str | None = None


class Leases:
    """Takes, prolongs and returns leases; their ends are milliseconds of the wall clock."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def acquire(
        self, tenant: str, agent_id: str, session_id: str, turn_id: str, *, resume: bool, seconds: float
    ) -> Lease:
        """Take the lease for a new turn, or for resuming the last one.

        One write when the session is free. A lease that has run out is taken over, by one winner. A new turn
        whose id does not sort behind the last turn gets another id.

        Raises:
            NotFound: the session does not exist, is deleted, or has expired.
            Conflict: `session_locked` while another turn runs; `not_last_turn` when the turn to resume is not
                the session's last one.
        """
        key = keys.session(tenant, agent_id, session_id)
        keys.turn(tenant, agent_id, session_id, turn_id)  # refuses an id that is none
        lease_id = secrets.token_hex(8)
        free = f"{FREE} AND {IS_LAST if resume else IS_NEWER}"
        condition, values, over = free, Item(), None
        for _ in range(ATTEMPTS):
            item = self._ask(key, lease_id, turn_id, seconds, condition, values)
            if item.get("lease_id") == lease_id:
                expires_at = item.get("expires_at")
                return Lease(tenant, agent_id, session_id, turn_id, lease_id, last_turn(item), expires_at, over)
            turn_id = _admitted(item, turn_id, resume)
            over = item.get("lease_turn")
            condition, values = (free, Item()) if over is None else (RUN_OUT, _run_out(item))
        raise Conflict(f"Many turns want session {session_id}: try again later.", code="session_locked")

    def _ask(self, key: keys.Key, lease_id: str, turn_id: str, seconds: float, condition: str, values: Item) -> Item:
        """Try to take a lease under a condition, and give the session's record as it then is.

        Raises:
            NotFound: the session does not exist, is deleted, or has expired.
        """
        now = time.time()
        taken = {"lease_id": lease_id, "lease_turn": turn_id, "lease_until": round((now + seconds) * 1000)}
        try:
            return self._table.update(key, taken, condition, values | {":now": int(now)})
        except ConditionFailed as refused:
            if not is_live(refused.item):
                raise NotFound("Session", key.sk) from None
            return refused.item
        except StoreUnavailable as error:
            if error.unsure:
                self._give_up(key, lease_id)
            raise

    def _give_up(self, key: keys.Key, lease_id: str) -> None:
        """Take back a lease that was given although no answer came: nobody would use it, and all would wait for it."""
        with suppress(ConditionFailed, StoreUnavailable):
            self._table.update(key, dict.fromkeys(LEASE), "lease_id = :held", {":held": lease_id})

    def renew(self, lease: Lease, seconds: float) -> None:
        """Let the lease end later. Raises Interrupted when it is lost or the session was deleted."""
        until = round((time.time() + seconds) * 1000)
        try:
            self._table.update(_key(lease), {"lease_until": until}, HELD, {":held": lease.lease_id})
        except ConditionFailed:
            message = f"Turn {lease.turn_id} lost its session: another request took it over, or it was deleted."
            raise Interrupted(message) from None

    def release(self, lease: Lease, last: LastTurn | None) -> None:
        """Give the lease back and note where the history ends; `lease.last` leaves that as it was.

        A lease that is lost is let go: whoever has it sees to the session.
        """
        noted = {"last_turn": last.turn_id, "last_records": last.records} if last else {}
        ended = noted | dict.fromkeys(LEASE)
        with suppress(ConditionFailed):
            self._table.update(_key(lease), ended, "lease_id = :held", {":held": lease.lease_id})


def _run_out(item: Item) -> Item:
    """Give the values of the condition that a session is still held by a lease that has run out."""
    return {":old_id": item["lease_id"], ":old_until": item["lease_until"]}


def _admitted(item: Item, turn_id: str, resume: bool) -> str:
    """Give the id with which a turn may follow what the session's record shows. Raises Conflict when none may."""
    running, last = item.get("lease_turn"), item.get("last_turn")
    if running is not None and item["lease_until"] > time.time() * 1000:
        message = f"Session {item['sk']} is running turn {running}: wait until it ends, or try again later."
        raise Conflict(message, code="session_locked")
    if resume and turn_id not in (running, last):
        raise Conflict(
            f"Turn {turn_id} is not the last one of session {item['sk']}: only that can be resumed.",
            code="not_last_turn",
        )
    latest = max(running or "", last or "")
    return turn_id if resume or turn_id > latest else new_id(after=latest)


def _key(lease: Lease) -> keys.Key:
    return keys.session(lease.tenant, lease.agent_id, lease.session_id)
