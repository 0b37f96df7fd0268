"""Deletion of marked sessions and agents, children before parents, until a deadline."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from stint.store import keys
from stint.store.agents import AgentStore
from stint.store.blobs import Blobs
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.log import ENDS, turn_log
from stint.store.sessions import SessionStore
from stint.store.table import WRITE_BATCH, Table
from stint.store.tombstones import mark_deleted, new_seal, read_marked

THREADS = 8


class Deletion:
    """Deletes marked objects. Each method may be stopped and repeated at any point.

    `deadline` is on the monotonic clock. The methods return whether nothing is left to do, and raise NotMarkedDeleted
    for an object without a mark, which `AgentStore.mark_deleted` and `SessionStore.mark_deleted` set.
    """

    def __init__(self, table: Table, blobs: Blobs, agents: AgentStore, sessions: SessionStore) -> None:
        self._table = table
        self._blobs = blobs
        self._agents = agents
        self._sessions = sessions

    def delete_session(self, tenant: str, agent_id: str, session_id: str, deadline: float) -> bool:
        """Stop the running turn of a marked session, and delete its turns, blobs and record."""
        session = read_marked(self._table, keys.session(tenant, agent_id, session_id), "Session", session_id)
        return session is None or self._delete_session(tenant, agent_id, session, deadline)

    def delete_agent(self, tenant: str, agent_id: str, deadline: float) -> bool:
        """Delete the sessions of a marked agent concurrently, and then its own records and blobs."""
        if read_marked(self._table, keys.agent(tenant, agent_id), "Agent", agent_id) is None:
            return True

        def delete(session_id: str) -> bool:
            if time.monotonic() >= deadline:
                return False
            session = mark_deleted(self._table, keys.session(tenant, agent_id, session_id))
            return session is None or self._delete_session(tenant, agent_id, session, deadline)

        with ThreadPoolExecutor(THREADS) as threads:
            if not all(threads.map(delete, self._sessions.ids(tenant, agent_id))):
                return False
        for ephemeral in (False, True):
            for _ in self._blobs.delete_prefix(keys.agent_blobs(tenant, agent_id, ephemeral=ephemeral)):
                if time.monotonic() >= deadline:
                    return False
        self._agents.remove(tenant, agent_id)
        return True

    def _delete_session(self, tenant: str, agent_id: str, session: Item, deadline: float) -> bool:
        session_id = session["sk"]
        if time.monotonic() >= deadline:
            return False
        if "lease_turn" in session:
            self._stop(tenant, agent_id, session_id, session["lease_turn"])
        for _ in self._empty_session(tenant, agent_id, session_id, ephemeral="expires_at" in session):
            if time.monotonic() >= deadline:
                return False
        self._sessions.remove(tenant, agent_id, session_id)
        return True

    def _stop(self, tenant: str, agent_id: str, session_id: str, turn_id: str) -> None:
        """Seal the next writes of a turn's writer, for an hour: log, header and pending calls."""
        seal = new_seal()
        header = keys.turn(tenant, agent_id, session_id, turn_id)
        items = list(self._table.query(header.pk, prefix=turn_id, attributes=ENDS))
        while not (log := turn_log(items)).ended:
            place = keys.record(tenant, agent_id, session_id, turn_id, len(log.records))._asdict()
            try:
                self._table.put_new(place | seal)
                break
            except ConditionFailed as refused:
                items.append(refused.found)
        self._table.put(header._asdict() | seal)
        self._table.put(keys.pending(tenant, agent_id, session_id, turn_id)._asdict() | seal)

    def _empty_session(self, tenant: str, agent_id: str, session_id: str, *, ephemeral: bool) -> Iterator[None]:
        """Delete a session's records except seals, one batch per step."""
        for pk in (keys.turns(tenant, agent_id, session_id), keys.pending_calls(tenant, agent_id, session_id)):
            items = self._table.query(pk, attributes=ENDS)
            doomed = (keys.Key(pk, item["sk"]) for item in items if "sealed_at" not in item)
            while batch := list(islice(doomed, WRITE_BATCH)):
                self._table.delete_many(batch)
                yield
        yield from self._blobs.delete_prefix(keys.session_blobs(tenant, agent_id, session_id, ephemeral=ephemeral))
