"""Agents in the table: a small list entry and a document.

The list entry decides whether the agent exists, because creations of sessions read it alone, for one unit.
Both records are written in one transaction: an entry without a document would be an agent that cannot be read, and a
document without an entry one that nothing deletes. A large configuration is an object, which is stored before both; the
task that is sent before that deletes it if the records were never stored.

A configuration is never changed in place, because sessions run with the one that they were created with:

    record     has                                         written by         read for
    config     the configuration of the creation           the creation       sessions without settings of their own
    changed    the latest one; absent without a change     each change        answers, and sessions that are created

The entry has the time of the latest change, so a reader of the entry knows whether there is one. It has the hashes of
the agent's metadata, too, by which the index of metadata is changed with it (`stint.store.metadata_index`). An agent
that only one session has is in no list: its entry is beside its configuration.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from stint.domain.errors import NotFound
from stint.domain.ids import is_inline_agent
from stint.domain.llama_stack.agents import Agent
from stint.domain.paging import Page, Window
from stint.store import keys
from stint.store.documents import Documents, fitting
from stint.store.entry_pages import list_entries
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.records import expiry, is_live, mark_deleted
from stint.store.table import LIVE, Table

if TYPE_CHECKING:
    from stint.store.transactions import Delete, Put, Transactions

LONGEST_NAME = 200
"""Characters of a name in a list entry, so that the entry stays below 1 KB, one write unit."""


class AgentEntry(NamedTuple):
    """The list entry of an agent: the first 200 characters of its name, and the time of its latest change.

    `updated_at` is in microseconds since 1970. Both may be None. `pairs` are the hashes of its metadata.
    """

    name: str | None
    updated_at: int | None
    pairs: bytes = b""


class AgentStore:
    """Agents. One exists while its list entry exists and is not marked as deleted; else methods raise NotFound."""

    def __init__(self, table: Table, documents: Documents, make_transactions: "Callable[[], Transactions]") -> None:
        self._table = table
        self._documents = documents
        self._make_transactions = make_transactions

    async def create(self, tenant: str, agent: Agent, expires_at: int | None = None) -> None:
        """Store an agent under its new id: both records, or none. They expire at `expires_at`, in seconds since 1970.

        A configuration that is larger than MAX_ITEM is an object in S3, which is stored before. Send the task of
        `delete_orphan` before this.
        """
        from stint.store.transactions import Put  # noqa: PLC0415 - only for creations

        end = expiry(expires_at)
        config = await self._pack(tenant, agent, keys.agent_config(tenant, agent.agent_id), end)
        pairs = pairs_of(agent)
        entry = keys.agent(tenant, agent.agent_id)._asdict() | shown_in_lists(agent) | pairs | end
        try:
            await self._make_transactions().write([Put(config), Put(entry), *index_of(tenant, agent, pairs)])
        # The id was used already. The object belongs to no record.
        except ConditionFailed:
            await self._documents.delete_blob(config)
            raise

    async def change(self, tenant: str, agent: Agent, seen: AgentEntry) -> bool:
        """Store a changed configuration, and return False if the agent was changed after `seen`, or was deleted.

        `seen` is the entry on which the change is based. Four or more write units, and two for each pair of metadata
        that the agent has or had.
        """
        from stint.store.transactions import Put, TransactionCancelled  # noqa: PLC0415 - only for changes

        place = keys.changed_agent(tenant, agent.agent_id)
        before, changed = await self._table.get(place), await self._pack(tenant, agent, place)
        pairs = pairs_of(agent)
        entry = keys.agent(tenant, agent.agent_id)._asdict() | shown_in_lists(agent) | pairs
        unchanged = "attribute_not_exists(updated_at)" if seen.updated_at is None else "updated_at = :seen"
        values = {":now": int(time.time())} | ({} if seen.updated_at is None else {":seen": seen.updated_at})
        condition = f"attribute_exists(pk) AND {LIVE} AND {unchanged}"
        listed = Put(entry | {"updated_at": time.time_ns() // 1000}, condition, values)
        try:
            writes = [Put(changed, condition=""), listed, *index_of(tenant, agent, pairs, seen.pairs)]
            await self._make_transactions().write(writes)
        except TransactionCancelled:
            await self._documents.delete_blob(changed)
            return False
        if before is not None:
            await self._documents.delete_blob(before)
        return True

    async def _pack(self, tenant: str, agent: Agent, key: Key, end: Item | None = None) -> Item:
        """Return the record of a configuration. A large one is in S3 when this returns."""
        prefix = keys.agent_blobs(tenant, agent.agent_id, expires=bool(end))
        return await self._documents.pack(key._asdict() | (end or {}), agent, prefix)

    async def is_stored(self, tenant: str, agent_id: str) -> bool:
        """Return whether an agent has a record, also if it is marked as deleted."""
        return await self._table.get(keys.agent(tenant, agent_id)) is not None

    async def get(self, tenant: str, agent_id: str) -> Agent:
        """Read an agent as it was created: its entry and document, in one call."""
        return (await self._read(tenant, agent_id, keys.agent_config(tenant, agent_id)))[0]

    async def get_latest(self, tenant: str, agent_id: str) -> tuple[Agent, AgentEntry]:
        """Read an agent as it is since its latest change: one call. Its entry tells the version that was read."""
        config, changed = keys.agent_config(tenant, agent_id), keys.changed_agent(tenant, agent_id)
        return await self._read(tenant, agent_id, changed, config)

    async def _read(self, tenant: str, agent_id: str, *documents: Key) -> tuple[Agent, AgentEntry]:
        """Read an agent with the first of some documents that exists."""
        key = keys.agent(tenant, agent_id)
        found = await self._table.get_many([key, *documents])
        entry, document = found.get(key), next((found[each] for each in documents if each in found), None)
        if document is None or not is_live(entry):
            raise NotFound("Agent", agent_id)
        [raw] = await self._documents.read([document])
        return Agent.model_validate_json(raw), entry_of(entry)

    async def require(self, tenant: str, agent_id: str) -> AgentEntry:
        """Return the entry of an agent: one strongly consistent read of one unit. Raises NotFound."""
        entry = await self._table.get(keys.agent(tenant, agent_id))
        if entry is None or not is_live(entry):
            raise NotFound("Agent", agent_id)
        return entry_of(entry)

    async def list(self, tenant: str, window: Window) -> Page[Agent]:
        """List agents by creation as they are since their latest change, up to MAX_BYTES of JSON, at least one.

        An agent that is deleted between the two reads is omitted. Of a name, 200 characters are searched. Raises
        NotFound if `after` is not the id of an agent, which need not exist.
        """
        if window.after is not None:
            keys.agent(tenant, window.after)  # refuses an invalid id
        search = None
        if window.metadata:
            from stint.store.metadata_index import ListedSearch  # noqa: PLC0415 - few lists have a filter

            search = ListedSearch(self._table, tenant, window)
        entries = await list_entries(self._table, keys.agents(tenant), window, search)
        entries = entries.cut(fitting([entry["size"] for entry in entries.items]))
        wanted = [self._latest_of(tenant, entry) for entry in entries.items]
        found = await self._table.get_many(wanted)
        documents = await self._documents.read([found[key] for key in wanted if key in found])
        return Page([Agent.model_validate_json(raw) for raw in documents], entries.more, entries.position)

    def _latest_of(self, tenant: str, entry: Item) -> Key:
        """Return the key of the document that an entry's agent has since its latest change."""
        return (keys.changed_agent if "updated_at" in entry else keys.agent_config)(tenant, entry["sk"])

    async def mark_deleted(self, tenant: str, agent_id: str) -> None:
        """Hide an agent from all reads at once. It may be repeated."""
        if await mark_deleted(self._table, keys.agent(tenant, agent_id)) is None:
            raise NotFound("Agent", agent_id)

    async def remove(self, tenant: str, agent_id: str, pairs: bytes = b"") -> None:
        """Delete an agent's records, the list entry last. `pairs` are those of the entry, which is marked."""
        if pairs:
            from stint.store.metadata_index import remove_entries  # noqa: PLC0415 - few agents have metadata

            await remove_entries(self._table, tenant, "agent", agent_id, pairs)
        # The entry has the mark of the deletion. Without it, a repetition would find nothing to do.
        await self._table.delete(keys.agent_config(tenant, agent_id))
        await self._table.delete(keys.changed_agent(tenant, agent_id))
        await self._table.delete(keys.agent(tenant, agent_id))


def pairs_of(agent: Agent) -> Item:
    """Return the attribute of a list entry with the hashes of an agent's metadata; none for an agent of one session."""
    if not agent.agent_config.metadata or is_inline_agent(agent.agent_id):
        return {}
    from stint.store.metadata_index import hash_pairs  # noqa: PLC0415 - few agents have metadata

    return {"pairs": hash_pairs(agent.agent_config.metadata)}


def index_of(tenant: str, agent: Agent, pairs: Item, before: bytes = b"") -> "list[Put | Delete]":
    """Return the writes of an agent's entries in the index of metadata, in place of those that it had before."""
    if not pairs and not before:
        return []
    from stint.store.metadata_index import index_writes  # noqa: PLC0415 - few agents have metadata

    return index_writes(tenant, "agent", agent.agent_id, pairs.get("pairs", b""), {}, before=before)


def shown_in_lists(agent: Agent) -> Item:
    """Return what the list entry of an agent has of its configuration."""
    name = {"name": agent.agent_config.name[:LONGEST_NAME]} if agent.agent_config.name else {}
    return name | {"size": len(agent.model_dump_json().encode())}


def entry_of(item: Item) -> AgentEntry:
    return AgentEntry(item.get("name"), item.get("updated_at"), item.get("pairs", b""))
