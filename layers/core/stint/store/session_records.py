"""The record of a session: where it is, and how it moves from the list entry to the session's own partition.

The list entries of an agent's sessions are in one partition, which takes 1,000 write units a second (DynamoDB,
"Partitions and data distribution"). So what each turn changes is not there: lease, last turn, signals, end user and
mark are in the state, a record in the partition of the session's turns. The list entry changes only with what lists
show. Earlier releases wrote the entry alone, and a session moves when a process with `spread` first leases it:

    list entry                state     the session's record is
    without `moved_at`        none      the entry
    with `moved_at`           exists    the state
    with `deleted_at`         marked    hidden, and being deleted

    key layout    creates           reads and leases                             moves
    compatible    the entry         the entry, or the state of a moved session   none
    spread        entry and state   the state, or the entry if there is none     a session that is free, or lapsed

A creation and a move are one transaction each. A move writes the state with all that the entry has, and removes what
has moved from the entry, so that the condition of a late holder's next write does not hold. An entry with `moved_at` is
never leased. Processes with both layouts may run at once, and those with `compatible` beside the release before, which
knows the entry only.

A session is marked and removed in this order: entry marked, state marked, ..., state removed, entry removed. A move
requires an entry without a mark, and lists and repeated deletions find the entry as long as there is something left.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key, KeyLayout
from stint.store.records import mark_deleted
from stint.store.table import LIVE, Table

if TYPE_CHECKING:
    from stint.store.transactions import Transactions, Write

LISTED = frozenset({"name", "name_size", "name_start", "started_at", "expires_at"})
"""The attributes that lists show. The entry keeps them, and the state has them, too."""

OWN = frozenset({"pk", "sk", "nonce", "moved_at"})
"""The attributes that belong to one of the two records."""

CHANGING = (
    *("lease_id", "lease_until", "last_turn", "last_records", "cancelled_turn", "heartbeat_turn", "heartbeat_at"),
    *("vector_db_id", "files", "end_users", "unchecked", "settings", "input_at", "spent"),
)
"""The attributes by which a move recognizes that the entry was not changed since it was read."""

OF_LAST_TURN = "lease_id, lease_turn, lease_until, lease_seconds, last_turn, last_records, deleted_at, expires_at"
"""The attributes that show what the session's last turn is, and whether it may still run."""

UNMOVED = "attribute_not_exists(moved_at)"


class SessionRecords:
    """The records of sessions, each of which is addressed by tenant, agent and session."""

    def __init__(self, table: Table, transactions: "Callable[[], Transactions]", key_layout: KeyLayout) -> None:
        self._table = table
        self._transactions = transactions
        self.spread = key_layout == "spread"

    async def find(self, tenant: str, agent_id: str, session_id: str, *, consistent: bool = True) -> Item | None:
        """Return the record of a session, also of a deleted or expired one: one read, another one for an old form."""
        state = keys.session_state(tenant, agent_id, session_id)
        if self.spread and (found := await self._table.get(state, consistent=consistent)):
            return found
        entry = await self._table.get(keys.session(tenant, agent_id, session_id), consistent=consistent)
        if entry is None or "moved_at" not in entry:
            return entry
        # Moved in the meantime, or by a process with the other layout.
        return await self._table.get(state, consistent=consistent)

    async def find_listed(self, entries: Sequence[Item]) -> dict[str, Item]:
        """Return the records of sessions with these list entries, by their ids: one read unit each, 100 per call.

        A session whose record is not in its entry, and was removed in the meantime, is omitted.
        """
        own = {entry["sk"]: entry for entry in entries if "moved_at" not in entry}
        states = {entry["sk"]: keys.state_of(Key(entry["pk"], entry["sk"])) for entry in entries if "moved_at" in entry}
        found = await self._table.get_many(list(states.values()), attributes=OF_LAST_TURN) if states else {}
        return own | {session_id: found[key] for session_id, key in states.items() if key in found}

    async def create(self, tenant: str, agent_id: str, session: Item, others: "Sequence[Write]" = ()) -> None:
        """Store a new session, whose key is that of its list entry, with its entry in the list of all sessions.

        `others` are writes of the same transaction. Six units, or four with `compatible`. Raises ConditionFailed if
        there is one.
        """
        from stint.store.transactions import Put  # noqa: PLC0415 - few functions create sessions

        end = {"expires_at": session["expires_at"]} if "expires_at" in session else {}
        listed = Put(keys.listed_session(tenant, session["sk"])._asdict() | {"agent_id": agent_id} | end)
        if not self.spread:
            await self._transactions().write([Put(session), listed, *others])
            return
        entry = {name: value for name, value in session.items() if name in LISTED | OWN}
        # A retry of a write alone could store a record again that a deletion has removed in the meantime.
        own = Put(entry | {"moved_at": int(time.time())})
        await self._transactions().write([own, Put(state_of(session)), listed, *others])

    async def update(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        assign: Item,
        *,
        condition: str,
        values: Mapping[str, Any] | None = None,
    ) -> Item:
        """Change the record of a session, and return it. Raises ConditionFailed with the record, or None."""
        entry, state = keys.session(tenant, agent_id, session_id), keys.session_state(tenant, agent_id, session_id)
        if self.spread:
            try:
                return await self._table.update(state, assign, f"attribute_exists(pk) AND {condition}", values)
            except ConditionFailed as refused:
                if refused.item is not None:
                    raise
        try:
            return await self._table.update(entry, assign, f"{UNMOVED} AND {condition}", values)
        except ConditionFailed as refused:
            if refused.item is None or "moved_at" not in refused.item:
                raise
        return await self._table.update(state, assign, f"attribute_exists(pk) AND {condition}", values)

    async def update_with(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        assign: Item,
        *,
        condition: str,
        values: Mapping[str, Any],
        others: "Sequence[Write]",
    ) -> None:
        """Change the record of a session in one transaction with other writes, for two units and theirs.

        Raises ConditionFailed with the record, or None.
        """
        from stint.store.transactions import Update  # noqa: PLC0415 - few requests change settings

        found = await self.find(tenant, agent_id, session_id)
        if found is None:
            raise ConditionFailed(None)
        key = Key(found["pk"], found["sk"])
        in_place = UNMOVED if key == keys.session(tenant, agent_id, session_id) else "attribute_exists(pk)"
        change = Update(key, assign, f"attribute_exists(pk) AND {in_place} AND {condition}", values)
        await self._transactions().write([change, *others])

    async def move(self, entry: Item) -> Item | None:
        """Move a session to its own partition, and return its record there; None if its entry has changed.

        The caller has read the entry, and found that no turn runs. Four units.
        """
        from stint.store.transactions import Put, TransactionCancelled, Update  # noqa: PLC0415 - few sessions move

        state = state_of(entry)
        moved = dict.fromkeys(entry.keys() - LISTED - OWN) | {"moved_at": int(time.time())}
        unchanged = [f"{name} = :{name}" if name in entry else f"attribute_not_exists({name})" for name in CHANGING]
        condition = " AND ".join(["attribute_exists(pk)", LIVE, *unchanged])
        values = {f":{name}": entry[name] for name in CHANGING if name in entry} | {":now": int(time.time())}
        writes: list[Put | Update] = [Update(Key(entry["pk"], entry["sk"]), moved, condition, values), Put(state)]
        try:
            await self._transactions().write(writes)
        except TransactionCancelled:
            return await self._table.get(Key(state["pk"], state["sk"]))
        return state

    async def mark_deleted(self, tenant: str, agent_id: str, session_id: str) -> Item | None:
        """Hide a session from lists, and then refuse its lease. Return its record; None if there is none."""
        entry = await mark_deleted(self._table, keys.session(tenant, agent_id, session_id))
        return entry and await self.mark_state(tenant, agent_id, session_id, entry)

    async def mark_state(self, tenant: str, agent_id: str, session_id: str, entry: Item) -> Item:
        """Refuse the lease of a session whose entry is marked, and return its record. It may be repeated."""
        if "moved_at" not in entry:
            return entry
        # None: DynamoDB has removed it when it expired, or an earlier deletion has.
        state = await mark_deleted(self._table, keys.session_state(tenant, agent_id, session_id))
        return entry | state if state else entry

    async def remove(self, tenant: str, agent_id: str, session_id: str) -> None:
        """Delete the records of a session."""
        await self._table.delete(keys.session_state(tenant, agent_id, session_id))
        await self._table.delete(keys.listed_session(tenant, session_id))
        await self._table.delete(keys.session(tenant, agent_id, session_id))


def state_of(entry: Item) -> Item:
    """Return the state of a session whose record has the key and the attributes of a list entry."""
    key = keys.state_of(Key(entry["pk"], entry["sk"]))
    return key._asdict() | {name: value for name, value in entry.items() if name not in OWN}
