"""The leases of sessions, for one turn at a time. A lease is in the session's record, and each write costs one unit.

`stint.store.session_records` has the places of the record. An old one moves when it is leased first.

The record has two facts that each acquisition needs: the lease, and the end of the history (`last_turn`, and the number
of its records, `last_records`). A release writes both, so the next turn knows with one write whether the history that
its process remembers is current. What the acquisitions do (see also `stint.store.lease`):

    session                acquire for a new turn             resume a turn                        find_holder
    free                   one write if the id sorts after    one write if it is the last turn,    None
                           `last_turn`; otherwise two,        otherwise 409 `not_last_turn`
                           with a later id
    held                   409 `session_locked`               409 `session_locked`                 the turn
    lapsed                 takes over                         takes over: the last turn, or the    None
                                                              one that the lease is for
    ended, not released    takes over                         takes over, as above                 None
    deleted, expired       404                                404                                  404

A turn has ended without a release if its lease is held and the newest record of its log is an ending with an index of
at least `lease_records`, the number of records when the lease was acquired. An older ending is that of an earlier part
of the turn, before this holder resumed it. `lease_records` is written as follows:

    acquired by                       `lease_records`, or what stands for it
    a new turn                        none: 0
    resume of a free session          none: `last_records`
    resume after a release failed     the index of the ending + 2: the next record has the client's results or, if the
                                      turn was complete, is a fence, which looks like an ending
    resume of a lapsed lease          UNKNOWN: the last holder may still write, so the lease is held until it lapses
"""

import time
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from stint.dataclasses import dataclass, replace
from stint.domain.errors import Conflict, Forbidden, NotFound
from stint.domain.ids import new_id
from stint.domain.inference import Usage
from stint.domain.session_budgets import SessionLedger
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.lease import Attempt, Lease, Leases, NextAttempt
from stint.store.log import ENDS
from stint.store.owners import add_entries
from stint.store.records import is_live
from stint.store.session_ledgers import find_ledger, noting
from stint.store.session_records import UNMOVED, SessionRecords
from stint.store.sessions import UNKNOWN, LastTurn, last_turn, pack_usage, unpack_usage
from stint.store.table import LIVE, Table, take

IS_LAST = "last_turn = :set_lease_turn"
# Turns are in the order of their ids. A process whose clock is behind would add its turn before those that exist.
IS_NEWER = "(attribute_not_exists(last_turn) OR last_turn < :set_lease_turn)"
IS_OWN = "end_users = :set_end_users"

SessionIds: TypeAlias = tuple[str, str, str]
"""The ids of tenant, agent and session."""


class ClaimedSession(NamedTuple):
    """The hash of a session's end user, or empty, and its budget; None if it is not limited."""

    owner: str
    ledger: SessionLedger | None


@dataclass(slots=True)
class SessionLease:
    """The right to write to a session."""

    tenant: str
    """The tenant whose session it is."""
    agent_id: str
    """The agent of the session."""
    session_id: str
    """The session, whose turns the holder may write."""
    turn_id: str
    """The turn that the lease is for. It differs from the requested one if another machine's clock was ahead."""
    lease: Lease
    """The lease itself, with the session's record as it was when the lease was acquired."""
    last: LastTurn | None
    """The end of the session's history; None if it has no turn. The holder updates it, and a release stores it."""
    expires_at: int | None
    """The end of the session, in seconds since 1970; None if it does not expire."""
    taken_over_turn: str | None
    """The turn of a holder that did not release its lease. Seal it, and read the history, before anything else."""
    vector_db_id: str | None = None
    """The session's own vector db, if it has one."""
    owner: str = ""
    """The hash of the session's end user, or empty."""
    files: str | None = None
    """The name, bytes and SHA-256 of the list of the files for the session's code, with colons; None without files."""
    settings: str | None = None
    """The version of the session's own settings; None if it has none."""
    usage: str | None = None
    """The tokens of the session's turns, as its record has them."""
    ledger: SessionLedger | None = None
    """What the session may spend, and has spent, with the run that has the lease; None if it is not limited."""

    def add_usage(self, usage: Usage) -> None:
        """Count tokens of the session, which a release stores."""
        self.usage = pack_usage(usage if self.usage is None else unpack_usage(self.usage) + usage)

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

    async def note_spent(self, spent: str | None) -> None:
        """Record what a log says that the session has spent, unless its record knows. Raises Interrupted as `renew`."""
        if self.ledger is not None and self.ledger.note(spent):
            await self.lease.update(self.lease.noted())

    async def renew(self, seconds: float) -> None:
        """Extend the lease. Raises Interrupted if it is lost or the session was deleted."""
        await self.lease.renew(seconds)

    async def release(self) -> None:
        """Release the lease and store the end of the history; do nothing if the lease is lost."""
        last = self.last
        ended: Item = {"last_turn": last.turn_id, "last_records": last.records} if last else {}
        await self.lease.release(ended | ({"used_tokens": self.usage} if self.usage else {}))


class SessionLeases:
    """Acquires the leases of sessions."""

    def __init__(self, table: Table, records: SessionRecords) -> None:
        lease = ("lease_id", "lease_turn", "lease_until", "lease_seconds", "lease_records")
        # Signals to the turn go with its lease, so that none reaches a later turn, or a later part of this one.
        released = dict.fromkeys((*lease, "cancelled_turn", "heartbeat_turn", "heartbeat_at"))
        self._table = table
        self._records = records
        self._leases = Leases(
            table, "lease_id", "lease_until", LIVE, released=released, busy="session_locked", holder_name="lease_turn"
        )

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
        keys.turn(tenant, agent_id, session_id, turn_id)  # refuses an invalid id
        session = tenant, agent_id, session_id
        entry, state = keys.session(*session), keys.session_state(*session)
        condition = f"attribute_exists(pk) AND {IS_LAST if resume else IS_NEWER}"
        own: Item = {"end_users": owner} if owner else {}
        # Only a session that is the end user's already: its entry in their index is written before `end_users`.
        first = self._leases.attempt(
            {}, {"lease_turn": turn_id} | own, f"{condition} AND {IS_OWN}" if owner else condition
        )

        async def next_attempt(found: Item | None) -> Attempt:
            if not is_live(found):
                raise NotFound("Session", session_id)
            if owner:
                await add_owner(self._table, session, found, owner)
            records = await self._count_if_free(session, found)
            admitted_turn = admitted(session_id, found, turn_id, resume=resume)
            # A lapsed lease leaves attributes that a release would have removed. A heartbeat of the turn's earlier
            # client must not count for the one that resumes it.
            turn = {"lease_turn": admitted_turn, "lease_records": records if resume else None, "heartbeat_turn": None}
            claimed = f"{condition} AND (attribute_not_exists(end_users) OR {IS_OWN})" if owner else condition
            return self._leases.attempt(found, turn | own, claimed)

        async def after_state(found: Item | None) -> Attempt:
            found = found or await self._move(session)
            return await next_attempt(found) if found else first

        async def after_entry(found: Item | None) -> Attempt | Lease:
            if found is not None and "moved_at" in found:
                return await acquire(state, first, after_state)
            attempt = await next_attempt(found)
            return replace(attempt, condition=f"{attempt.condition} AND {UNMOVED}")

        async def acquire(key: Key, attempt: Attempt, following: NextAttempt) -> Lease:
            return await self._leases.acquire(key, f"Session {session_id}", seconds, attempt, next_attempt=following)

        if self._records.spread:
            lease = await acquire(state, first, after_state)
        else:
            lease = await acquire(entry, replace(first, condition=f"{first.condition} AND {UNMOVED}"), after_entry)
        return session_lease(tenant, agent_id, session_id, lease)

    async def _move(self, session: SessionIds) -> Item | None:
        """Move an old session to its own partition, and return its record there; None if others have changed it.

        Raises as `acquire`.
        """
        entry = await self._leases.read(keys.session(*session))
        if not is_live(entry):
            raise NotFound("Session", session[-1])
        if "moved_at" in entry:
            return await self._table.get(keys.session_state(*session))
        # A holder that runs renews its lease in the entry. So the session moves when it has ended.
        await self._count_if_free(session, entry)
        return await self._records.move(entry)

    async def claim(self, tenant: str, agent_id: str, session_id: str, owner: str) -> ClaimedSession:
        """Return a session's end user and its budget. A session without an end user becomes that of `owner`, if given.

        Raises:
            Forbidden: the session belongs to another end user.
            NotFound: the session does not exist, is deleted, or has expired.
        """
        session = tenant, agent_id, session_id
        found = await self._records.find(*session)
        while True:
            if not is_live(found):
                raise NotFound("Session", session_id)
            if not owner or found.get("end_users") == owner:
                ledger = find_ledger(found, f"Session {session_id}")
                return ClaimedSession(str(found.get("end_users", "")), ledger)
            # The entry first: an erasure finds the session by it. An entry without a session is removed by its reader.
            await add_owner(self._table, session, found, owner)
            condition = f"attribute_exists(pk) AND {LIVE} AND attribute_not_exists(end_users)"
            try:
                found = await self._records.update(
                    *session, assign={"end_users": owner}, condition=condition, values={":now": int(time.time())}
                )
            except ConditionFailed as refused:
                found = refused.item

    async def find_holder(self, tenant: str, agent_id: str, session_id: str) -> str | None:
        """Return the turn that has a session's lease; None if it is free. Raises NotFound."""
        session = tenant, agent_id, session_id
        found = await self._leases.settle(await self._records.find(*session))
        if not is_live(found):
            raise NotFound("Session", session_id)
        try:
            await self._count_if_free(session, found)
        except Conflict:
            return str(found["lease_turn"])
        return None

    async def expire(self, tenant: str, agent_id: str, session_id: str, turn_id: str) -> None:
        """Make the lease for a turn lapse now; do nothing if the session is not leased for it."""
        with suppress(ConditionFailed):
            # The lease lapses, and is not released: the next holder must seal the turn.
            lapsed, held = {"lease_until": 0}, {":turn": turn_id}
            await self._records.update(
                tenant, agent_id, session_id, assign=lapsed, condition="lease_turn = :turn", values=held
            )

    async def _count_if_free(self, session: SessionIds, found: Item) -> int | None:
        """Return the `lease_records` of a resume that replaces the lease of a record. Raises Conflict if it is held."""
        if "lease_id" not in found:
            return None
        if not self._leases.is_held(found):
            return UNKNOWN
        turn_id, before = found["lease_turn"], records_at_lease(found)
        # The newest record is enough: its key has the index. A header and a seal have no `ended_as`.
        turns = keys.turns(*session)
        newest = await take(self._table.query(turns, prefix=turn_id, newest_first=True, attributes=ENDS, page=1), 1)
        index = keys.index_of(newest[0]["sk"]) if newest and "ended_as" in newest[0] else None
        if index is None or before == UNKNOWN or index < before:
            raise Conflict(
                f"Session {session[-1]} is running turn {turn_id}. Wait until it ends, or try again later.",
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
    item, ledger = lease.item, find_ledger(lease.item, f"Session {session_id}")
    acquired = SessionLease(
        tenant,
        agent_id,
        session_id,
        turn_id=item["lease_turn"],
        lease=lease if ledger is None else noting(lease, ledger),
        last=last_turn(item),
        expires_at=item.get("expires_at"),
        taken_over_turn=lease.taken_over,
        vector_db_id=item.get("vector_db_id"),
        owner=item.get("end_users", ""),
        files=item.get("files"),
        settings=item.get("settings"),
        usage=item.get("used_tokens"),
        ledger=ledger,
    )
    # The last holder has not stored the end of its turn, and may still be writing.
    if lease.taken_over is not None:
        acquired.forget_last()
    return acquired


async def add_owner(table: Table, session: SessionIds, found: Item, owner: str) -> None:
    """Write the entry of a session that becomes an end user's. Raises Forbidden if it is another's."""
    if found.get("end_users", owner) != owner:
        raise Forbidden(
            f"Session {session[-1]} belongs to another end user. Use a session of the one that X-Stint-User names.",
            code="other_end_user",
        )
    if "end_users" not in found:
        expires_at = found.get("expires_at")
        tenant, agent_id, session_id = session
        await add_entries(table, tenant, owner, "session", agent_id, session_id, expires_at=expires_at)


def admitted(session_id: str, found: Item, turn_id: str, *, resume: bool) -> str:
    """Return an id that sorts after a session's turns. Raises Conflict if the turn cannot be resumed."""
    lapsed, last = found.get("lease_turn"), found.get("last_turn")
    # Earlier turns are in the history of later ones, which their change would make wrong.
    if resume:
        if turn_id not in (lapsed, last):
            message = f"Turn {turn_id} is not the last one of session {session_id}: only the last turn can be resumed."
            raise Conflict(message, code="not_last_turn")
        return turn_id
    # The turn of a lapsed lease may have a header, although no release has made it the last turn.
    latest = max(lapsed or "", last or "")
    return turn_id if turn_id > latest else new_id(after=latest)
