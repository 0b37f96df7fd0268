"""Deletion of marked sessions and agents, children before parents, until a deadline.

An agent may have thousands of sessions, so a deletion takes longer than a request or a worker may run. It is a series
of steps that can be stopped after any of them and repeated from the beginning. Two rules make this safe:

- What names the rest is deleted last. A session's record names its turn, its vector db and its end users, so it goes
  after them, and then its list entry; its settings name the entries of its metadata, and go after them; an agent's list
  entry goes after its sessions. As long as something is left, a repetition finds it.
- Who still writes is stopped first. The mark (`mark_deleted`) refuses new leases and renewals. The holder of the lease
  goes on until it renews it, so seals take the keys that it writes next: the next index of its log, its header, and its
  pending calls. What is deleted afterwards stays deleted, because the writer is refused. Seals expire by themselves.

The steps for a session: the caller sends the task, then marks it (`services/deletions.py`); here: seal; mark the vector
db and send its task; delete the records and objects; delete the entries in the indexes of end users; delete the record.

Parts of unfinished steps and waiting messages have no seal. They expire within an hour and a day.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from stint.domain.errors import NotFound
from stint.domain.ids import is_inline_agent
from stint.store import keys
from stint.store.agents import AgentStore
from stint.store.blobs import Blobs
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import session_partials
from stint.store.log import ENDS, turn_log
from stint.store.owners import remove_owners
from stint.store.parallel import map_concurrently
from stint.store.records import delete_partition, is_live, new_seal, read_marked
from stint.store.session_records import SessionRecords
from stint.store.sessions import SessionStore
from stint.store.table import WRITE_BATCH, Table, take

DeleteVectorDB = Callable[[str, str], Awaitable[None]]
"""A function that starts the deletion of a tenant's vector store by its id. A missing one is ignored."""


class Deletion:
    """Deletes marked objects. Each method may be stopped and repeated at any point.

    `deadline` is on the monotonic clock. The methods return whether nothing is left to do, and raise NotMarkedDeleted
    for an object without a mark, which `AgentStore.mark_deleted` and `SessionStore.mark_deleted` set.
    `delete_vector_db` starts the deletion of a session's own vector db.
    """

    def __init__(
        self, table: Table, blobs: Blobs, agents: AgentStore, sessions: SessionStore, records: SessionRecords
    ) -> None:
        self._table = table
        self._blobs = blobs
        self._agents = agents
        self._sessions = sessions
        self._records = records

    async def delete_session(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        deadline: float,
        delete_vector_db: DeleteVectorDB | None = None,
    ) -> bool:
        """Stop the running turn of a marked session, and delete its turns, blobs and record."""
        entry = await read_marked(self._table, keys.session(tenant, agent_id, session_id), "Session", session_id)
        if entry is None:
            return True
        # Marked here, too: the request that marked the entry may have ended before it marked the state.
        session = await self._records.mark_state(tenant, agent_id, session_id, entry)
        return await self._delete_session(
            tenant, agent_id, session_id, session, deadline=deadline, delete_vector_db=delete_vector_db
        )

    async def delete_agent(
        self, tenant: str, agent_id: str, deadline: float, delete_vector_db: DeleteVectorDB | None = None
    ) -> bool:
        """Delete the sessions of a marked agent concurrently, and then its own records and blobs."""
        entry = await read_marked(self._table, keys.agent(tenant, agent_id), "Agent", agent_id)
        if entry is None:
            return True

        async def delete(session_id: str) -> bool:
            if time.monotonic() >= deadline:
                return False
            session = await self._records.mark_deleted(tenant, agent_id, session_id)
            return session is None or await self._delete_session(
                tenant, agent_id, session_id, session, deadline=deadline, delete_vector_db=delete_vector_db
            )

        # Also marked and expired sessions. A session that is created later sees the mark of its agent.
        ids = self._sessions.ids(tenant, agent_id)
        while some := await take(ids, WRITE_BATCH):
            # A session that is left must keep its agent, by which a repetition finds it.
            if not all(await map_concurrently(delete, some)):
                return False
        for ephemeral in (False, True):
            async for _ in self._blobs.delete_prefix(keys.agent_blobs(tenant, agent_id, expires=ephemeral)):
                if time.monotonic() >= deadline:
                    return False
        await self._agents.remove(tenant, agent_id, entry.get("pairs", b""))
        return True

    async def delete_orphan(self, tenant: str, agent_id: str) -> bool:
        """Delete the object of an agent whose creation did not store its records."""
        if not await self._agents.is_stored(tenant, agent_id):
            async for _ in self._blobs.delete_prefix(keys.agent_blobs(tenant, agent_id)):
                pass
        return True

    async def delete_orphaned_session(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        deadline: float,
        delete_vector_db: DeleteVectorDB | None = None,
    ) -> bool:
        """Delete the copied turns of a session whose creation did not store its record.

        If it did, but died before the check of the source, this is the check: a fork without its source is deleted.
        """
        found = await self._records.find(tenant, agent_id, session_id)
        if found is not None:
            if "unchecked" not in found:
                return True
            if await self._has_source(tenant, agent_id, session_id, found):
                return True
            return await self.delete_session(tenant, agent_id, session_id, deadline, delete_vector_db)
        for ephemeral in (False, True):
            async for _ in self._empty_session(tenant, agent_id, session_id, ephemeral=ephemeral):
                if time.monotonic() >= deadline:
                    return False
        await self._remove_inline_agent(tenant, agent_id)
        return True

    async def _has_source(self, tenant: str, agent_id: str, session_id: str, fork: Item) -> bool:
        """Return whether the source of a fork exists. Otherwise, or if the fork is deleted, it is marked."""
        try:
            if is_live(await self._table.get(keys.session(tenant, agent_id, session_id))):
                await self._sessions.check_fork(tenant, agent_id, session_id, fork["forked_from"].split(":")[0])
                return True
        except NotFound:
            pass
        await self._records.mark_deleted(tenant, agent_id, session_id)
        return False

    async def _delete_session(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        session: Item,
        *,
        deadline: float,
        delete_vector_db: DeleteVectorDB | None,
    ) -> bool:
        if time.monotonic() >= deadline:
            return False
        if "lease_turn" in session:
            await self._stop(tenant, agent_id, session_id, session["lease_turn"])
        # The record names the vector db before it is created. `seal` then prevents its creation.
        if delete_vector_db is not None and "vector_db_id" in session:
            await delete_vector_db(tenant, session["vector_db_id"])
        # The settings name the entries in the index of metadata. With the mark, no change adds others.
        if "settings" in session:
            await self._sessions.remove_pairs(tenant, agent_id, session_id)
        async for _ in self._empty_session(tenant, agent_id, session_id, ephemeral="expires_at" in session):
            if time.monotonic() >= deadline:
                return False
        # The record names the thread and the end users, so it is deleted after their entries.
        if "thread" in session:
            from stint.store.threads import remove_thread  # noqa: PLC0415 - few sessions are those of threads

            await remove_thread(self._table, tenant, session["thread"], session_id)
        await remove_owners(self._table, tenant, session, "session", agent_id, session_id)
        await self._remove_inline_agent(tenant, agent_id)
        await self._records.remove(tenant, agent_id, session_id)
        return True

    async def _remove_inline_agent(self, tenant: str, agent_id: str) -> None:
        """Delete the agent that only the session has which is being deleted; do nothing for another agent."""
        if is_inline_agent(agent_id):
            for expires in (False, True):
                async for _ in self._blobs.delete_prefix(keys.agent_blobs(tenant, agent_id, expires=expires)):
                    pass
            await self._agents.remove(tenant, agent_id)

    async def _stop(self, tenant: str, agent_id: str, session_id: str, turn_id: str) -> None:
        """Seal the next writes of a turn's writer, for an hour: log, header and pending calls."""
        seal = new_seal()
        header = keys.turn(tenant, agent_id, session_id, turn_id)
        items = [item async for item in self._table.query(header.pk, prefix=turn_id, attributes=ENDS)]
        # The log first: its index refuses a writer that is about to store a step. One that wins the race is counted.
        while not (log := turn_log(items)).ended:
            place = keys.record(tenant, agent_id, session_id, turn_id, index=len(log.records))._asdict()
            try:
                await self._table.put_new(place | seal)
                break
            except ConditionFailed as refused:
                items.append(refused.found)
        # Replaces a header that exists. One that was to be written is refused, so that no turn begins.
        await self._table.put(header._asdict() | seal)
        await self._table.put(keys.pending(tenant, agent_id, session_id, turn_id)._asdict() | seal)

    async def _empty_session(
        self, tenant: str, agent_id: str, session_id: str, *, ephemeral: bool
    ) -> AsyncGenerator[None, None]:
        """Delete a session's records except seals, one batch per step."""
        from stint.store.waiting_line import session_line  # noqa: PLC0415 - not at the start of a function

        ids = tenant, agent_id, session_id
        line = session_line(*ids)
        for pk in (line.places, line.messages, keys.turns(*ids), keys.pending_calls(*ids), session_partials(*ids)):
            # The state names what the next steps need.
            async for _ in delete_partition(self._table, pk, spare=[keys.session_state(*ids).sk]):
                yield
        for prefix in (line.blobs, keys.session_blobs(tenant, agent_id, session_id, expires=ephemeral)):
            async for _ in self._blobs.delete_prefix(prefix):
                yield
