"""The leases of sessions, for one turn at a time. A lease is in the session's record, and each write costs one unit."""

import time
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, Forbidden, NotFound
from stint.domain.ids import new_id
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import Attempt, Lease, Leases
from stint.store.log import ENDS
from stint.store.owners import add_entries
from stint.store.sessions import UNKNOWN, LastTurn, last_turn
from stint.store.table import LIVE, Table, take
from stint.store.tombstones import is_live

IS_LAST = "last_turn = :set_lease_turn"
IS_NEWER = "(attribute_not_exists(last_turn) OR last_turn < :set_lease_turn)"
IS_OWN = "end_users = :set_end_users"


@dataclass(slots=True)
class SessionLease:
    """The right to write to a session.

    `turn_id` may differ from the requested one, if another machine's clock was ahead. `last` is the end of the
    session's history: the holder updates it, and a release stores it. `taken_over_turn` is the turn of a holder whose
    lease lapsed: seal it, and read the history again, before anything else. `expires_at` is that of the session, and
    `vector_db_id` its own vector db, if it has one. `owner` is the hash of its end user, or empty. `files` names the
    list of the files for its code, if it has any.
    """

    tenant: str
    agent_id: str
    session_id: str
    turn_id: str
    lease: Lease
    last: LastTurn | None
    expires_at: int | None
    taken_over_turn: str | None
    vector_db_id: str | None = None
    owner: str = ""
    files: str | None = None

    def forget_last(self) -> None:
        """Note that the history may have changed in a way that is not known, so that no process trusts its memory."""
        if self.last is not None:
            self.last = LastTurn(self.last.turn_id, UNKNOWN)

    async def add_vector_db(self, vector_db_id: str) -> None:
        """Record that the session has a vector db of its own. Raises Interrupted as `renew`."""
        await self.lease.update({"vector_db_id": vector_db_id})
        self.vector_db_id = vector_db_id

    async def set_files(self, files: str) -> None:
        """Record the list of the files for the session's code. Raises Interrupted as `renew`."""
        await self.lease.update({"files": files})
        self.files = files

    async def renew(self, seconds: float) -> None:
        """Extend the lease. Raises Interrupted if it is lost or the session was deleted."""
        await self.lease.renew(seconds)

    async def release(self) -> None:
        """Release the lease and store the end of the history; do nothing if the lease is lost."""
        last = self.last
        await self.lease.release({"last_turn": last.turn_id, "last_records": last.records} if last else {})


class SessionLeases:
    """Acquires the leases of sessions."""

    def __init__(self, table: Table) -> None:
        lease = ("lease_id", "lease_turn", "lease_until", "lease_seconds", "lease_records")
        released = dict.fromkeys((*lease, "cancelled_turn", "heartbeat_turn", "heartbeat_at"))
        self._table = table
        self._leases = Leases(table, "lease_id", "lease_until", LIVE, released, "session_locked", "lease_turn")

    async def acquire(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        turn_id: str,
        *,
        resume: bool,
        seconds: float,
        owner: str = "",
    ) -> SessionLease:
        """Acquire the lease for a new turn, or to resume the last one.

        One write if the session is free. A new turn whose id does not sort after the last turn gets another id. A
        lease whose turn has ended is free, although its release failed. `owner` is the hash of the end user for whom
        the caller acts. A session without one becomes theirs.

        Raises:
            Forbidden: the session belongs to another end user.
            NotFound: the session does not exist, is deleted, or has expired.
            Conflict: `session_locked` while another turn runs; `not_last_turn` if the turn to resume is not the
                session's last one.
        """
        leases, key = self._leases, keys.session(tenant, agent_id, session_id)
        keys.turn(tenant, agent_id, session_id, turn_id)  # refuses an invalid id
        condition = f"attribute_exists(pk) AND {IS_LAST if resume else IS_NEWER}"
        own: Item = {"end_users": owner} if owner else {}
        claimed = f"{condition} AND (attribute_not_exists(end_users) OR {IS_OWN})" if owner else condition

        async def next_attempt(found: Item | None) -> Attempt:
            if not is_live(found):
                raise NotFound("Session", session_id)
            if owner:
                await add_owner(self._table, tenant, agent_id, found, owner)
            records = await self._count_if_free(keys.turns(tenant, agent_id, session_id), found)
            admitted_turn = admitted(found, turn_id, resume=resume)
            turn = {"lease_turn": admitted_turn, "lease_records": records if resume else None, "heartbeat_turn": None}
            return leases.attempt(found, turn | own, claimed)

        first = leases.attempt({}, {"lease_turn": turn_id} | own, f"{condition} AND {IS_OWN}" if owner else condition)
        lease = await leases.acquire(key, f"Session {session_id}", seconds, first, next_attempt)
        return session_lease(tenant, agent_id, session_id, lease)

    async def claim(self, tenant: str, agent_id: str, session_id: str, owner: str) -> str:
        """Return the hash of a session's end user, or empty. A session without one becomes that of `owner`, if given.

        Raises:
            Forbidden: the session belongs to another end user.
            NotFound: the session does not exist, is deleted, or has expired.
        """
        key = keys.session(tenant, agent_id, session_id)
        found = await self._table.get(key)
        while True:
            if not is_live(found):
                raise NotFound("Session", session_id)
            if not owner or found.get("end_users") == owner:
                return str(found.get("end_users", ""))
            await add_owner(self._table, tenant, agent_id, found, owner)
            condition = f"attribute_exists(pk) AND {LIVE} AND attribute_not_exists(end_users)"
            try:
                found = await self._table.update(key, {"end_users": owner}, condition, {":now": int(time.time())})
            except ConditionFailed as refused:
                found = refused.item

    async def find_holder(self, tenant: str, agent_id: str, session_id: str) -> str | None:
        """Return the turn that has a session's lease; None if it is free. Raises NotFound."""
        found = await self._leases.read(keys.session(tenant, agent_id, session_id))
        if not is_live(found):
            raise NotFound("Session", session_id)
        try:
            await self._count_if_free(keys.turns(tenant, agent_id, session_id), found)
        except Conflict:
            return str(found["lease_turn"])
        return None

    async def expire(self, tenant: str, agent_id: str, session_id: str, turn_id: str) -> None:
        """Make the lease for a turn lapse now; do nothing if the session is not leased for it."""
        with suppress(ConditionFailed):
            key = keys.session(tenant, agent_id, session_id)
            await self._table.update(key, {"lease_until": 0}, "lease_turn = :turn", {":turn": turn_id})

    async def _count_if_free(self, turns: str, found: Item) -> int | None:
        """Return what to store as the number of records with a lease that replaces the one of a record.

        It is None for a record without a lease, and UNKNOWN for a lease that has lapsed. A lease that has not lapsed is
        free if the newest record of its turn is an ending, and was written under it; its release has failed. A resumed
        turn has two more records before its next ending: the client's results, and a fence if it was complete.

        Raises:
            Conflict: the lease is held.
        """
        if "lease_id" not in found:
            return None
        if not self._leases.is_held(found):
            return UNKNOWN
        turn_id, before = found["lease_turn"], records_at_lease(found)
        newest = await take(self._table.query(turns, prefix=turn_id, newest_first=True, attributes=ENDS, page=1), 1)
        index = keys.index_of(newest[0]["sk"]) if newest and "ended_as" in newest[0] else None
        if index is None or before == UNKNOWN or index < before:
            raise Conflict(
                f"Session {found['sk']} is running turn {turn_id}. Wait until it ends, or try again later.",
                code="session_locked",
            )
        return index + 2


def records_at_lease(found: Item) -> int:
    """Return the number of records that a turn had when the lease in a session's record was acquired; or UNKNOWN."""
    if "lease_records" in found:
        return int(found["lease_records"])
    return int(found["last_records"]) if found["lease_turn"] == found.get("last_turn") else 0


def session_lease(tenant: str, agent_id: str, session_id: str, lease: Lease) -> SessionLease:
    """Return the lease of a session, with what its record has."""
    item = lease.item
    acquired = SessionLease(
        tenant,
        agent_id,
        session_id,
        turn_id=item["lease_turn"],
        lease=lease,
        last=last_turn(item),
        expires_at=item.get("expires_at"),
        taken_over_turn=lease.taken_over,
        vector_db_id=item.get("vector_db_id"),
        owner=item.get("end_users", ""),
        files=item.get("files"),
    )
    if lease.taken_over is not None:
        acquired.forget_last()
    return acquired


async def add_owner(table: Table, tenant: str, agent_id: str, found: Item, owner: str) -> None:
    """Write the entry of a session that becomes an end user's. Raises Forbidden if it is another's."""
    if found.get("end_users", owner) != owner:
        raise Forbidden(
            f"Session {found['sk']} belongs to another end user. Use a session of the one that X-Stint-User names.",
            code="other_end_user",
        )
    if "end_users" not in found:
        expires_at = found.get("expires_at")
        await add_entries(table, tenant, owner, "session", agent_id, found["sk"], expires_at=expires_at)


def admitted(found: Item, turn_id: str, *, resume: bool) -> str:
    """Return an id that sorts after a session's turns. Raises Conflict if the turn cannot be resumed."""
    lapsed, last = found.get("lease_turn"), found.get("last_turn")
    if resume:
        if turn_id not in (lapsed, last):
            message = f"Turn {turn_id} is not the last one of session {found['sk']}: only the last turn can be resumed."
            raise Conflict(message, code="not_last_turn")
        return turn_id
    latest = max(lapsed or "", last or "")
    return turn_id if turn_id > latest else new_id(after=latest)
