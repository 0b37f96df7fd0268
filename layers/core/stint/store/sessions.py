"""Sessions in the table: an entry in the list of their agent, and a record with the lease and the last turn.

`stint.store.session_records` has their places. The record stays under 1 KB, so that each change of its lease costs one
unit: a long name is in a record of its own.
Nothing holds a session and its agent together in one write. Their orders of writes do, so that each is found by a
deletion that runs at the same time:

    creation of a session          deletion of an agent             outcome
    1 writes the session           1 marks the agent                if 2 of the creation sees the mark, the creation
    2 reads the agent              2 reads the ids of sessions      removes the session; otherwise 2 of the deletion
                                   3 deletes them, then the agent   sees the session

An owner's entry and a long name are written before the session, and removed with it. The entries of its metadata are
written with it, in one transaction (`stint.store.metadata_index`). A deletion first marks it
(`mark_deleted`): reads and leases refuse it from then on. `stint.store.deletion` then deletes the rest, and at last the
record and the list entry.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.ids import new_id
from stint.domain.inference import Usage
from stint.domain.llama_stack.sessions import ForkedFrom, Session, SessionSettings
from stint.domain.llama_stack.turns import TurnStatus, TurnSummary
from stint.domain.paging import Page, Window
from stint.domain.schema import Schema
from stint.domain.session_budgets import SessionBudget, SpentBudget
from stint.store import keys
from stint.store.documents import Documents, fitting
from stint.store.entry_pages import list_entries
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import settle
from stint.store.owners import add_entries, hash_users, remove_owners
from stint.store.records import expiry as expiry_of
from stint.store.records import is_expired, is_live
from stint.store.session_ledgers import budget_item, show_budget
from stint.store.session_records import SessionRecords
from stint.store.table import LIVE, Table

if TYPE_CHECKING:
    from stint.store.threads import NewThread
    from stint.store.transactions import Write

MAX_INLINE_NAME = 200
"""Maximum bytes of a name in the session's record, which stays under 1 KB so that a lease costs one unit."""

ENTRY_BYTES = 200
"""Bytes of a session's other fields in a list, as JSON."""


UNKNOWN = -1
"""The number of records while a write is under way, or after one whose effect is unknown. No log has this number."""


class LastTurn(NamedTuple):
    """The end of a session's history: the last turn and the number of records in its log, which may be UNKNOWN."""

    turn_id: str
    records: int


class SessionActivity(NamedTuple):
    """The turn that runs, the last turn that was released, and the time of the last input (`SessionRecord`)."""

    lease_turn: str | None
    last: LastTurn | None
    input_at: int | None

    @property
    def newest_turn(self) -> str:
        """Return the newest turn; empty if there is none."""
        return max(self.last.turn_id if self.last is not None else "", self.lease_turn or "")


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where the records of a session are. `expires_at` is in seconds of the epoch; None for a session that stays.

    `files` names the list of the files for its code, as the session's record does.
    """

    tenant: str
    agent_id: str
    session_id: str
    expires_at: int | None
    files: str | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A stored session."""

    session_id: str
    """The id, which is also the sort key of the list entry."""
    name: str
    """The whole name, also if it is in a record of its own."""
    started_at: datetime
    """The time of the creation."""
    expires_at: int | None
    """The end of a session that does not persist, in seconds since 1970."""
    lease_turn: str | None
    """The turn that the session is leased for. The lease may have lapsed."""
    lease_until: int | None
    """The end of the lease, in milliseconds since 1970."""
    last: LastTurn | None
    """The end of the history at the last release; None if no turn was released yet."""
    vector_db_id: str | None = None
    """The session's own vector db, if it has one."""
    end_users: str = ""
    """The hash of the session's end user, or empty."""
    files: str | None = None
    """The list of the files for the session's code; None without files."""
    forked_from: ForkedFrom | None = None
    """Where its first turns were copied from."""
    copied_records: int | None = None
    """The records of the last copied turn, if it is a fork."""
    unchecked: bool = False
    """Whether it is still to be checked that the session existed that its first turns were copied from."""
    settings: str | None = None
    """The version of the session's own settings; None if it has none."""
    input_at: int | None = None
    """The time of the last input that no request waits for, in milliseconds since 1970."""
    usage: Usage | None = None
    """The tokens of its turns; None if none has ended since the release that counts them."""
    budget: SpentBudget | None = None
    """What it may spend, and has spent until the last write of its lease; None if it is not limited."""


class SessionName(Schema):
    """A name that is too long for the session's record."""

    name: str


class SessionStore:
    """Sessions. Missing, deleted and expired ones raise NotFound.

    Only `create` checks that the agent exists.
    """

    def __init__(self, table: Table, records: SessionRecords, documents: Documents) -> None:
        self._table = table
        self._records = records
        self._documents = documents

    async def create(
        self,
        tenant: str,
        agent_id: str,
        session: Session,
        expires_at: int | None,
        users: Sequence[str] = (),
        last: LastTurn | None = None,
        *,
        owner: str = "",
        files: str | None = None,
        settings: SessionSettings | None = None,
        budget: SessionBudget | None = None,
        thread: "NewThread | None" = None,
    ) -> None:
        """Store a session. `expires_at` (seconds of the epoch) is the end of one without persistence.

        `last` is the end of the history of one whose turns are stored. `owner` is the hash of an end user, in place of
        `users`. `files` names the list of its files. `settings` are those that differ from its agent's. `thread` is
        the one whose session it becomes.

        The agent's existence is checked after the write, so that a later deletion finds the session. Raises NotFound
        after an earlier deletion, and ConditionFailed if the thread has another session.
        """
        key = keys.session(tenant, agent_id, session.session_id)
        expiry: Item = {} if expires_at is None else {"expires_at": expires_at}
        limits = budget_item(budget)
        ended: Item = {"last_turn": last.turn_id, "last_records": last.records} if last else {}
        if session.forked_from is not None and last is not None:
            ended |= origin_item(session.forked_from, last)
        # Entries first: an erasure of the end user finds each session that exists.
        owners = owner or hash_users(users)
        owned = await add_entries(
            self._table, tenant, owners, "session", agent_id, session.session_id, expires_at=expires_at
        )
        ended |= {"files": files} if files else {}
        started = session.model_dump(mode="json", include={"started_at"})
        name = await self._pack_name(tenant, agent_id, session, expiry)
        indexed: Sequence[Write] = ()
        if settings is not None:
            own = await self._pack_settings(tenant, agent_id, session.session_id, settings, expires_at)
            await self._table.put(own)
            ended |= {"settings": new_id()}
            indexed = index_of(tenant, agent_id, session.session_id, own)
        record = key._asdict() | started | name | expiry | ended | owned | limits
        if thread is not None:
            record |= {"thread": thread.digest}
            indexed = [*indexed, thread.write(tenant, session.session_id, expires_at)]
        try:
            await self._records.create(tenant, agent_id, record, indexed)
        except ConditionFailed:
            if thread is not None:  # whose session has a new id, so that nothing else has it
                await self._undo_creation(tenant, agent_id, session.session_id, owned, is_indexed=False)
            raise
        # After the write: a deletion that has read the agent's sessions before it has marked the agent before that.
        if not is_live(await self._table.get(keys.agent(tenant, agent_id))):
            await self._undo_creation(tenant, agent_id, session.session_id, owned, is_indexed=settings is not None)
            if thread is not None:
                from stint.store.threads import remove_thread  # noqa: PLC0415 - few sessions are those of threads

                await remove_thread(self._table, tenant, thread.digest, session.session_id)
            raise NotFound("Agent", agent_id)

    async def _undo_creation(
        self, tenant: str, agent_id: str, session_id: str, owned: Item, *, is_indexed: bool
    ) -> None:
        """Remove all records of a session that was created in a deleted agent."""
        if is_indexed:
            await self.remove_pairs(tenant, agent_id, session_id)
        await self._records.remove(tenant, agent_id, session_id)
        await self._table.delete(keys.session_name(tenant, agent_id, session_id))
        await self._table.delete(keys.session_settings(tenant, agent_id, session_id))
        await remove_owners(self._table, tenant, owned, "session", agent_id, session_id)

    async def _pack_name(self, tenant: str, agent_id: str, session: Session, expiry: Item) -> Item:
        """Return the attributes of a session's name. A long one is stored in a record of its own when this returns."""
        if len(session.session_name.encode()) <= MAX_INLINE_NAME:
            return {"name": session.session_name}
        await self._put_name(tenant, agent_id, session, expiry)
        # The beginning is for searches of names only.
        return {"name_size": name_bytes(session.session_name), "name_start": beginning(session.session_name)}

    async def _put_name(self, tenant: str, agent_id: str, session: Session, expiry: Item) -> None:
        await self._documents.put_new(
            keys.session_name(tenant, agent_id, session.session_id)._asdict() | expiry,
            SessionName(name=session.session_name),
            keys.session_blobs(tenant, agent_id, session.session_id, expires=bool(expiry)),
        )

    async def _pack_settings(
        self, tenant: str, agent_id: str, session_id: str, settings: SessionSettings, expires_at: int | None
    ) -> Item:
        """Return the record of the settings of a session. Large ones are in S3 when this returns."""
        pairs: Item = {}
        if settings.metadata:
            from stint.store.metadata_index import hash_pairs  # noqa: PLC0415 - few sessions have metadata

            pairs = {"pairs": hash_pairs(settings.metadata)}
        key = keys.session_settings(tenant, agent_id, session_id)
        prefix = keys.session_blobs(tenant, agent_id, session_id, expires=expires_at is not None)
        return await self._documents.pack(key._asdict() | expiry_of(expires_at) | pairs, settings, prefix)

    async def set_settings(self, tenant: str, agent_id: str, record: SessionRecord, settings: SessionSettings) -> bool:
        """Replace the settings of a session, and return False if they were changed after `record` was read.

        Turns that begin after this have them. Four or more write units, and two for each pair of metadata that the
        session has or had. Raises NotFound.
        """
        from stint.store.transactions import Put  # noqa: PLC0415 - few requests change settings

        ids = tenant, agent_id, record.session_id
        before = await self._table.get(keys.session_settings(*ids))
        own = await self._pack_settings(*ids, settings, record.expires_at)
        values: Item = {":now": int(time.time())}
        unchanged = "attribute_not_exists(settings)"
        if record.settings is not None:
            unchanged, values[":seen"] = "settings = :seen", record.settings
        # The record that was read is not older than the version. If it is newer, the condition refuses the change.
        writes = [Put(own, condition=""), *index_of(*ids, own, (before or {}).get("pairs", b""))]
        try:
            await self._records.update_with(
                *ids, {"settings": new_id()}, condition=f"{LIVE} AND {unchanged}", values=values, others=writes
            )
        except ConditionFailed as refused:
            await self._documents.delete_blob(own)
            if not is_live(refused.item):
                raise NotFound("Session", record.session_id) from None
            return False
        return True

    async def remove_pairs(self, tenant: str, agent_id: str, session_id: str) -> None:
        """Delete the entries of a session in the index of metadata, which its settings name."""
        from stint.store.metadata_index import remove_entries  # noqa: PLC0415 - few sessions have metadata

        settings = await self._table.get(keys.session_settings(tenant, agent_id, session_id))
        if settings is not None and "pairs" in settings:
            await remove_entries(self._table, tenant, "session", session_id, settings["pairs"])

    async def get_settings(self, tenant: str, agent_id: str, session_id: str) -> SessionSettings:
        """Read the settings of a session that has some. Raises NotFound."""
        item = await self._table.get(keys.session_settings(tenant, agent_id, session_id))
        if not is_live(item):
            raise NotFound("Session", session_id)
        [raw] = await self._documents.read([item])
        return SessionSettings.model_validate_json(raw)

    async def read_activity(self, tenant: str, agent_id: str, session_id: str) -> SessionActivity:
        """Return what shows that something has happened in a session: half a read unit. Raises NotFound."""
        item = await self._records.find(tenant, agent_id, session_id, consistent=False)
        if not is_live(item):
            raise NotFound("Session", session_id)
        held = int(item.get("lease_until", 0)) > time.time() * 1000
        return SessionActivity(item.get("lease_turn") if held else None, last_turn(item), item.get("input_at"))

    async def note_input(self, tenant: str, agent_id: str, session_id: str) -> None:
        """Note in the session's record that there is input that no request waits for. Raises NotFound."""
        await self._set(tenant, agent_id, session_id, {"input_at": round(time.time() * 1000)})

    async def _set(self, tenant: str, agent_id: str, session_id: str, attributes: Item) -> None:
        try:
            await self._records.update(
                tenant, agent_id, session_id, attributes, condition=LIVE, values={":now": int(time.time())}
            )
        except ConditionFailed as error:
            raise NotFound("Session", session_id) from error

    async def get(self, tenant: str, agent_id: str, session_id: str) -> SessionRecord:
        found = await self._records.find(tenant, agent_id, session_id)
        item = await settle(self._table, found, "lease_id", "lease_until")
        if not is_live(item):
            raise NotFound("Session", session_id)
        named = await self._with_names(tenant, agent_id, [item | {"sk": session_id}])
        if not named:
            raise NotFound("Session", session_id)
        return session_record(named[0])

    async def list(
        self,
        tenant: str,
        agent_id: str,
        window: Window,
        *,
        last_turns: bool = False,
        status: TurnStatus | None = None,
    ) -> Page[Session]:
        """List sessions by creation without turns, up to MAX_BYTES of JSON, at least one.

        `last_turns` adds the last turn of each, and `status` lists those whose last turn has it. Of a name, 200 bytes
        are searched. Raises NotFound if `after` is not the id of a session, which need not exist.
        """
        if window.after is not None:
            keys.session(tenant, agent_id, window.after)  # refuses an invalid id
        turns: dict[str, TurnSummary] = {}
        search = None
        if window.metadata:
            from stint.store.metadata_index import ListedSearch  # noqa: PLC0415 - few lists have a filter

            search = ListedSearch(self._table, tenant, window, agent_id=agent_id)
        if last_turns or status is not None:
            from stint.store.last_turns import LastTurns  # noqa: PLC0415 - few lists have them

            entries, turns = await LastTurns(self._table, self._records).list(tenant, agent_id, window, status, search)
        else:
            entries = await list_entries(self._table, keys.sessions(tenant, agent_id), window, search)
        sizes = (ENTRY_BYTES + (item.get("name_size") or name_bytes(item["name"])) for item in entries.items)
        entries = entries.cut(fitting(sizes))
        data = [
            Session(
                session_id=record.session_id,
                session_name=record.name,
                started_at=record.started_at,
                last_turn=turns.get(record.session_id),
            )
            for record in map(session_record, await self._with_names(tenant, agent_id, entries.items))
        ]
        return Page(data, entries.more, entries.position)

    async def _with_names(self, tenant: str, agent_id: str, items: Sequence[Item]) -> Sequence[Item]:
        """Add the long names. A session that is deleted in the meantime is omitted."""
        wanted = {item["sk"]: keys.session_name(tenant, agent_id, item["sk"]) for item in items if "name_size" in item}
        if not wanted:
            return items
        found = await self._table.get_many(list(wanted.values()))
        present = [session_id for session_id, key in wanted.items() if key in found]
        documents = await self._documents.read([found[wanted[session_id]] for session_id in present])
        names = {
            session_id: SessionName.model_validate_json(raw).name
            for session_id, raw in zip(present, documents, strict=True)
        }
        return [
            item | {"name": names.get(item["sk"], item.get("name"))}
            for item in items
            if "name" in item or item["sk"] in names
        ]

    async def mark_deleted(self, tenant: str, agent_id: str, session_id: str) -> None:
        """Hide a session from all reads, and refuse new leases. It may be repeated."""
        # An expired session is marked, too, so that a task for its deletion still finds its rest.
        item = await self._records.mark_deleted(tenant, agent_id, session_id)
        if item is None or is_expired(item):
            raise NotFound("Session", session_id)

    async def check_fork(self, tenant: str, agent_id: str, session_id: str, source_id: str) -> None:
        """Check that the source of a fork exists, and note that. Costs a write unit. Raises NotFound if it does not."""
        await self.get(tenant, agent_id, source_id)
        try:
            await self._records.update(
                tenant, agent_id, session_id, {"unchecked": None}, condition="attribute_not_exists(deleted_at)"
            )
        except ConditionFailed as error:
            raise NotFound("Session", session_id) from error

    async def ids(self, tenant: str, agent_id: str) -> AsyncGenerator[str, None]:
        """Yield the ids of all sessions with a list entry, including deleted and expired ones."""
        async for item in self._table.query(keys.sessions(tenant, agent_id), attributes="sk"):
            yield item["sk"]


def index_of(tenant: str, agent_id: str, session_id: str, settings: Item, before: bytes = b"") -> "Sequence[Write]":
    """Return the writes of the entries of a session in the index of metadata, for the record of its settings.

    `before` are the hashes of the metadata that it had.
    """
    pairs = settings.get("pairs", b"")
    if not pairs and not before:
        return ()
    from stint.store.metadata_index import index_writes  # noqa: PLC0415 - few sessions have metadata

    own: Item = {"agent_id": agent_id} | expiry_of(settings.get("expires_at"))
    return index_writes(tenant, "session", session_id, pairs, own, before=before)


def beginning(name: str) -> str:
    """Return the characters of a name that fit into MAX_INLINE_NAME bytes."""
    return name.encode()[:MAX_INLINE_NAME].decode(errors="ignore")


def name_bytes(name: str) -> int:
    """Return the bytes of a name as JSON, in which control characters take six."""
    return len(SessionName(name=name).model_dump_json().encode())


def session_record(item: Item) -> SessionRecord:
    return SessionRecord(
        session_id=item["sk"],
        name=item["name"],
        started_at=datetime.fromisoformat(item["started_at"]),
        expires_at=item.get("expires_at"),
        lease_turn=item.get("lease_turn"),
        lease_until=item.get("lease_until"),
        last=last_turn(item),
        vector_db_id=item.get("vector_db_id"),
        end_users=item.get("end_users", ""),
        files=item.get("files"),
        forked_from=origin_of(item) if "forked_from" in item else None,
        copied_records=item.get("copied_records"),
        unchecked="unchecked" in item,
        settings=item.get("settings"),
        input_at=item.get("input_at"),
        usage=unpack_usage(item["used_tokens"]) if "used_tokens" in item else None,
        budget=show_budget(item),
    )


def origin_item(origin: ForkedFrom, last: LastTurn) -> Item:
    """Return the attributes of a new session whose turns are copies up to the last one."""
    item: Item = {
        "forked_from": f"{origin.session_id}:{origin.turn_id}",
        "copied_records": last.records,
        "unchecked": 1,
    }
    return item if origin.complete else item | {"fork_cut": 1}


def origin_of(item: Item) -> ForkedFrom:
    """Return where the first turns of a fork were copied from."""
    session_id, turn_id = item["forked_from"].split(":")
    return ForkedFrom(session_id=session_id, turn_id=turn_id, complete="fork_cut" not in item)


COUNTED = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")
"""The counts of a session's usage, in the order in which its record has them."""


def pack_usage(usage: Usage) -> str:
    """Return the counts as a session's record has them: numbers, so that the record stays small."""
    return " ".join([str(getattr(usage, name)) for name in COUNTED])


def unpack_usage(packed: str) -> Usage:
    return Usage(**dict(zip(COUNTED, map(int, packed.split()), strict=True)))


def last_turn(item: Item) -> LastTurn | None:
    return LastTurn(item["last_turn"], item["last_records"]) if "last_turn" in item else None
