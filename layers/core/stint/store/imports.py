"""Writes of agents, sessions and turns that another server stored. Each may be repeated, and then changes nothing."""

from stint.domain.llama_stack.agents import Agent
from stint.domain.llama_stack.imported_turns import ImportedTurn
from stint.domain.llama_stack.sessions import Session
from stint.store import keys
from stint.store.agents import AgentStore
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.records import expiry
from stint.store.sessions import LastTurn, SessionPlace, SessionStore
from stint.store.table import Table
from stint.store.turn_documents import TurnDocument, TurnDocuments
from stint.store.turns import TurnStore


class ImportStore:
    """Writes what was imported. A session is visible after its turns are stored, because its record comes last."""

    def __init__(
        self, table: Table, documents: Documents, agents: AgentStore, sessions: SessionStore, turns: TurnStore
    ) -> None:
        self._table = table
        self._agents = agents
        self._sessions = sessions
        self._stored = turns
        self._documents = documents
        self._turns = TurnDocuments(table, documents)

    async def put_agent(self, tenant: str, agent: Agent) -> bool:
        """Store an agent with its own id, and return whether there was none."""
        if await self._table.get(keys.agent(tenant, agent.agent_id)) is not None:
            return False
        # Earlier versions stored the configuration alone, before the entry. `create` would be refused.
        await self._table.delete(keys.agent_config(tenant, agent.agent_id))
        await self._agents.create(tenant, agent)
        return True

    async def has_session(self, place: SessionPlace) -> bool:
        """Return whether a session has a record, also one that is deleted or expired."""
        return await self._table.get(keys.session(place.tenant, place.agent_id, place.session_id)) is not None

    async def has_turn(self, place: SessionPlace, turn: ImportedTurn) -> bool:
        """Return whether an import stored a turn."""
        ids = place.tenant, place.agent_id, place.session_id
        return await self._table.get(keys.imported_turn(*ids, turn.old_id)) is not None

    async def read_turns(self, place: SessionPlace) -> dict[str, int]:
        """Read all turns of a session, and return their ids and the number of their steps."""
        found: dict[str, int] = {}
        async for turns, _ in self._stored.pages(place.tenant, place.agent_id, place.session_id):
            found |= {turn.header.turn_id: len(turn.steps) for turn in turns}
        return found

    async def put_turn(self, place: SessionPlace, turn: ImportedTurn) -> None:
        """Store a turn, its waiting calls, and the record by which its old id finds it."""
        ids = place.tenant, place.agent_id, place.session_id
        turn_id = turn.header.turn_id
        await self._put(place, keys.turn(*ids, turn_id), turn.header, turn_id)
        for index, record in enumerate(turn.records):
            await self._put(place, keys.record(*ids, turn_id, index), record, turn_id)
        if turn.pending is not None:
            await self._put(place, keys.pending(*ids, turn_id), turn.pending, turn_id)
        # Last: `has_turn` looks for it, so an import that was cut off writes the turn again.
        alias = keys.imported_turn(*ids, turn.old_id)._asdict() | {"turn_id": turn_id} | expiry(place.expires_at)
        await self._table.put(alias)

    async def _put(self, place: SessionPlace, key: keys.Key, document: TurnDocument, turn_id: str) -> None:
        ephemeral = place.expires_at is not None
        prefix = keys.turn_blobs(place.tenant, place.agent_id, place.session_id, turn_id, expires=ephemeral)
        item: Item = key._asdict() | expiry(place.expires_at)
        ending = getattr(document, "ending", None)
        if ending is not None:
            item["ended_as"] = ending.status.value
        packed = await self._turns.pack(item, document, prefix)
        try:
            await self._table.put_new(packed)
        except ConditionFailed:  # an earlier import wrote it
            await self._documents.delete_blob(packed)

    async def put_session(self, place: SessionPlace, session: Session, last: LastTurn | None) -> None:
        """Store the record of a session, whose turns are stored. Raises NotFound if the agent was deleted."""
        await self._sessions.create(place.tenant, place.agent_id, session, place.expires_at, last=last)
