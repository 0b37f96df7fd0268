"""Events that begin something: each is claimed by one worker at a time, and known as long as it may come again."""

import secrets
import time
from contextlib import suppress
from dataclasses import dataclass

from stint.domain.errors import Conflict, Interrupted
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.table import Table

REMEMBERED_SECONDS = 7 * 86_400
"""How long an event is known: longer than EventBridge (a day) and Lambda (six hours) give one out again."""

RACES = 5
NEW = "attribute_not_exists(pk)"
GONE = "expires_at = :old_end"
RUN_OUT = "lock_id = :old_id AND lock_until = :old_until AND attribute_not_exists(outcome)"
HELD = "lock_id = :held"


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to do what an event asks for. `began` is what it has begun: the id of a turn or response, or empty.

    With an `outcome`, a JSON text, all is done, and the claim gives no right.
    """

    key: keys.Key
    lock_id: str
    began: str
    outcome: str | None = None


class Claims:
    """The events of a tenant's workers: a record each, which goes away by itself."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def take(self, tenant: str, event_id: str, began: str, seconds: float) -> Claim:
        """Claim an event: one write when it is new. `began` counts unless it was noted before.

        A claim that has run out is taken over. Raises Conflict `event_running` while another worker has it.
        """
        key, lock_id, now = keys.event(tenant, event_id), secrets.token_hex(8), time.time()
        condition, values = NEW, Item()
        first: Item = {"began": began, "expires_at": int(now) + REMEMBERED_SECONDS}
        for _ in range(RACES):
            taken = {"lock_id": lock_id, "lock_until": round((time.time() + seconds) * 1000)} | first
            try:
                item = self._table.update(key, taken, condition, values)
            except ConditionFailed as refused:
                item = refused.item or {}
            if item.get("lock_id") == lock_id:
                return Claim(key, lock_id, str(item.get("began", "")))
            if not item:
                condition, values = NEW, {}
            elif int(item["expires_at"]) <= now:
                condition, values, first = GONE, {":old_end": item["expires_at"]}, first | {"outcome": None}
            elif "outcome" in item:
                return Claim(key, lock_id, str(item["began"]), item["outcome"])
            elif item["lock_until"] > time.time() * 1000:
                break
            else:
                condition, values, first = RUN_OUT, {":old_id": item["lock_id"], ":old_until": item["lock_until"]}, {}
        raise Conflict(f"Event {event_id} is being worked on.", code="event_running")

    def held_until(self, tenant: str, event_id: str) -> int | None:
        """Tell when the claim of an event ends, in ms; None when there is none."""
        item = self._table.get(keys.event(tenant, event_id)) or {}
        return item.get("lock_until")

    def renew(self, claim: Claim, seconds: float) -> None:
        """Let a claim end later. Raises Interrupted when it is lost."""
        self._change(claim, {"lock_until": round((time.time() + seconds) * 1000)})

    def note(self, claim: Claim, began: str) -> None:
        """Note what an event begins, before it does. Raises Interrupted when the claim is lost."""
        self._change(claim, {"began": began})

    def finish(self, claim: Claim, outcome: str) -> None:
        """Note that all is done; a claim that is lost is let go."""
        with suppress(Interrupted):
            self._change(claim, {"outcome": outcome})

    def _change(self, claim: Claim, assign: Item) -> None:
        try:
            self._table.update(claim.key, assign, HELD, {":held": claim.lock_id})
        except ConditionFailed:
            raise Interrupted("The event was taken over by another worker.") from None
