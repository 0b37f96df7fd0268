"""Agents in the table: a small list entry and a document.

The list entry decides whether the agent exists, because creations of sessions read it alone, for one unit.
Both records are written in one transaction: an entry without a document would be an agent that cannot be read, and a
document without an entry one that nothing deletes. A large configuration is an object, which is stored before both; the
task that is sent before that deletes it if the records were never stored.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stint.domain.errors import NotFound
from stint.domain.llama_stack.agents import Agent
from stint.domain.paging import Page, Window
from stint.store import keys
from stint.store.documents import Documents, fitting
from stint.store.entry_pages import list_entries
from stint.store.failures import ConditionFailed
from stint.store.records import is_live, mark_deleted
from stint.store.table import Table

if TYPE_CHECKING:
    from stint.store.transactions import Transactions

LONGEST_NAME = 200
"""Characters of a name in a list entry, so that the entry stays below 1 KB, one write unit."""


class AgentStore:
    """Agents. One exists while its list entry exists and is not marked as deleted; else methods raise NotFound."""

    def __init__(self, table: Table, documents: Documents, make_transactions: "Callable[[], Transactions]") -> None:
        self._table = table
        self._documents = documents
        self._make_transactions = make_transactions

    async def create(self, tenant: str, agent: Agent) -> None:
        """Store an agent under its new id: both records, or none.

        A configuration that is larger than MAX_ITEM is an object in S3, which is stored before. Send the task of
        `delete_orphan` before this.
        """
        from stint.store.transactions import Put  # noqa: PLC0415 - only for creations

        key, prefix = keys.agent_config(tenant, agent.agent_id), keys.agent_blobs(tenant, agent.agent_id)
        config = await self._documents.pack(key._asdict(), agent, prefix)
        name = {"name": agent.agent_config.name[:LONGEST_NAME]} if agent.agent_config.name else {}
        size = {"size": len(agent.model_dump_json().encode())}
        entry = keys.agent(tenant, agent.agent_id)._asdict() | name | size
        try:
            await self._make_transactions().write([Put(config), Put(entry)])
        # The id was used already. The object belongs to no record.
        except ConditionFailed:
            await self._documents.delete_blob(config)
            raise

    async def is_stored(self, tenant: str, agent_id: str) -> bool:
        """Return whether an agent has a record, also if it is marked as deleted."""
        return await self._table.get(keys.agent(tenant, agent_id)) is not None

    async def get(self, tenant: str, agent_id: str) -> Agent:
        """Read an agent: its entry and document, in one call."""
        entry, config = keys.agent(tenant, agent_id), keys.agent_config(tenant, agent_id)
        found = await self._table.get_many([entry, config])
        if config not in found or not is_live(found.get(entry)):
            raise NotFound("Agent", agent_id)
        [raw] = await self._documents.read([found[config]])
        return Agent.model_validate_json(raw)

    async def require(self, tenant: str, agent_id: str) -> str | None:
        """Return the first 200 characters of an agent's name, for log lines: one strongly consistent read of one unit.

        None if it has no name, or was stored before list entries had one. Raises NotFound.
        """
        entry = await self._table.get(keys.agent(tenant, agent_id))
        if entry is None or not is_live(entry):
            raise NotFound("Agent", agent_id)
        return entry.get("name")

    async def list(self, tenant: str, window: Window) -> Page[Agent]:
        """List agents by creation, up to MAX_BYTES of JSON, at least one.

        An agent that is deleted between the two reads is omitted. Of a name, 200 characters are searched. Raises
        NotFound if `after` is not the id of an agent, which need not exist.
        """
        if window.after is not None:
            keys.agent(tenant, window.after)  # refuses an invalid id
        entries = await list_entries(self._table, keys.agents(tenant), window)
        entries = entries.cut(fitting([entry["size"] for entry in entries.items]))
        wanted = [keys.agent_config(tenant, entry["sk"]) for entry in entries.items]
        found = await self._table.get_many(wanted)
        documents = await self._documents.read([found[key] for key in wanted if key in found])
        return Page([Agent.model_validate_json(raw) for raw in documents], entries.more, entries.position)

    async def mark_deleted(self, tenant: str, agent_id: str) -> None:
        """Hide an agent from all reads at once. It may be repeated."""
        if await mark_deleted(self._table, keys.agent(tenant, agent_id)) is None:
            raise NotFound("Agent", agent_id)

    async def remove(self, tenant: str, agent_id: str) -> None:
        """Delete an agent's records, the list entry last."""
        # The entry has the mark of the deletion. Without it, a repetition would find nothing to do.
        await self._table.delete(keys.agent_config(tenant, agent_id))
        await self._table.delete(keys.agent(tenant, agent_id))
