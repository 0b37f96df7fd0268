"""A lease on any record: one holder at a time. It stands in the record's own attributes."""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from stint.domain.errors import Conflict, Interrupted, NotFound, StoreUnavailable
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.table import LIVE, Table
from stint.store.tombstones import is_live

ATTEMPTS = 5
LOCK = ("lock_id", "lock_holder", "lock_until")
FREE = f"attribute_exists(pk) AND {LIVE} AND attribute_not_exists(lock_id)"
OWN = f"{LIVE} AND lock_holder = :holder"
RUN_OUT = f"{LIVE} AND lock_id = :old_id AND lock_until = :old_until"
HELD = "lock_id = :held AND attribute_not_exists(deleted_at)"


@dataclass(frozen=True, slots=True)
class Lock:
    """The right to a record, which `kind` and `identifier` name to the caller.

    `item` is the record as it stood when the lock was taken. `taken_over` is the holder that let its lock run out:
    it may still write until it looks at its clock.
    """

    key: Key
    kind: str
    identifier: str
    lock_id: str
    holder: str
    item: Item
    taken_over: str | None = None


class Locks:
    """Takes, prolongs and returns locks; each costs what the record weighs. Their ends are ms of the wall clock."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def acquire(
        self,
        key: Key,
        kind: str,
        identifier: str,
        holder: str,
        seconds: float,
        waits: Callable[[str], bool] = lambda _: False,
        *,
        again: bool = False,
    ) -> Lock:
        """Take the lock of a record for a holder (a response's id).

        One write when it is free. A lock that has run out is taken over, by one winner, unless its holder `waits`: it
        keeps the record without renewing the lock. `again` expects the holder's own lock, which is then one write, too.

        Raises:
            NotFound: the record does not exist, or is deleted.
            Conflict: `{kind}_locked`; the message names who holds it.
        """
        lock_id = secrets.token_hex(8)
        condition, values, over = FREE, Item(), None
        if again:
            condition, values = OWN, {":holder": holder}
        for _ in range(ATTEMPTS):
            now = time.time()
            taken = {"lock_id": lock_id, "lock_holder": holder, "lock_until": round((now + seconds) * 1000)}
            try:
                item = self._table.update(key, taken, condition, values | {":now": int(now)})
            except ConditionFailed as refused:
                if not is_live(refused.item):
                    raise NotFound(kind, identifier) from None
                item = refused.item
            except StoreUnavailable as error:
                if error.unsure:
                    self._give_up(key, lock_id)
                raise
            if item.get("lock_id") == lock_id:
                return Lock(key, kind, identifier, lock_id, holder, item, over)
            over = item.get("lock_holder")
            if over is None:
                condition, values = FREE, {}
            elif item["lock_until"] > time.time() * 1000 or waits(over):
                message = f"{kind} {identifier} is running {over}: wait until it ends, or try again later."
                raise Conflict(message, code=f"{kind.lower()}_locked")
            else:
                condition, values = RUN_OUT, {":old_id": item["lock_id"], ":old_until": item["lock_until"]}
        message = f"Many requests want {kind.lower()} {identifier}: try again later."
        raise Conflict(message, code=f"{kind.lower()}_locked")

    def renew(self, lock: Lock, seconds: float) -> None:
        """Let the lock end later. Raises Interrupted when it is lost or the record was deleted."""
        until = round((time.time() + seconds) * 1000)
        try:
            self._table.update(lock.key, {"lock_until": until}, HELD, {":held": lock.lock_id})
        except ConditionFailed:
            message = f"{lock.holder} lost {lock.kind.lower()} {lock.identifier}: it was taken over, or deleted."
            raise Interrupted(message) from None

    def release(self, lock: Lock) -> None:
        """Give the lock back; one that is lost is let go."""
        with suppress(ConditionFailed):
            self._table.update(lock.key, dict.fromkeys(LOCK), "lock_id = :held", {":held": lock.lock_id})

    def _give_up(self, key: Key, lock_id: str) -> None:
        """Take back a lock that was given although no answer came: nobody would use it, and all would wait for it."""
        with suppress(ConditionFailed, StoreUnavailable):
            self._table.update(key, dict.fromkeys(LOCK), "lock_id = :held", {":held": lock_id})
