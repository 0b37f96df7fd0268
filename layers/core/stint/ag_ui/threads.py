"""Threads of AG-UI and their sessions.

A client chooses the id of a thread, such as "1", so it names a session only together with the caller, the end user and
the agent: their hash is that of the thread (`stint.store.threads`). A client may also name the id of a session that it
may use, and so go on with what another API has begun. The order in which the id is looked up is part of the safety:

    1. a thread with this hash        its session, if that exists
    2. the id of a session            that one, if it is the agent's and not another end user's
    3. none of them                   a new session, which becomes that of the thread

A session of another agent, tenant or end user is not found, as if it did not exist, and the id is then that of a new
thread. So an answer does not show whether a session exists.
"""

import json
from hashlib import sha256

from stint.caller import find_end_user, record_end, record_owners, require_principal
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.ids import is_id, new_id
from stint.domain.session_budgets import SessionBudget
from stint.log_keys import add_log_keys
from stint.services.agents.sessions import Sessions
from stint.services.runs.senders import belongs_to_another
from stint.store.failures import ConditionFailed
from stint.store.sessions import SessionRecord
from stint.store.store import Store
from stint.store.threads import NewThread

ATTEMPTS = 3
"""Maximum attempts to create the session of a thread that others use at the same time."""


@dataclass(frozen=True, slots=True)
class FoundThread:
    """A thread with its session. `record` is None for a new one, which takes the place of the session `replaced`."""

    digest: str
    record: SessionRecord | None
    replaced: str = ""


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads of a tenant's callers."""

    tenant: str
    store: Store
    sessions: Sessions

    async def find(self, agent_id: str, thread_id: str) -> FoundThread:
        """Return the session of a thread. Raises NotFound for an invalid id of an agent, and StoreUnavailable."""
        digest = hash_thread(agent_id, thread_id)
        replaced = await self.store.threads.find_session(self.tenant, digest) or ""
        for session_id in filter(None, (replaced, thread_id if is_id(thread_id) else "")):
            record = await self.find_record(agent_id, session_id)
            if record is not None:
                add_log_keys(session_id=session_id)
                return FoundThread(digest, record)
        return FoundThread(digest, None, replaced)

    async def find_record(self, agent_id: str, session_id: str) -> SessionRecord | None:
        """Return a session that the caller may use; None for any other."""
        try:
            record = await self.store.sessions.get(self.tenant, agent_id, session_id)
        except NotFound:
            return None
        if belongs_to_another(record.end_users):
            return None
        record_owners(record.end_users.split())
        record_end(record.expires_at)
        return record

    async def create(self, agent_id: str, thread_id: str, thread: FoundThread, budget: SessionBudget | None) -> str:
        """Create the session of a new thread, or return the one that another request has created, by its id.

        Raises StintError as `Sessions.create`, and Conflict if the thread is used too often at the same time.
        """
        for _ in range(ATTEMPTS):
            new = NewThread(thread.digest, thread.replaced)
            try:
                return await self.sessions.create(agent_id, thread_id, session_id=new_id(), budget=budget, thread=new)
            except ConditionFailed:
                thread = await self.find(agent_id, thread_id)
            if thread.record is not None:
                return thread.record.session_id
        raise Conflict(f"Thread {thread_id[:100]!r} is used by other requests. Try again.", code="thread_in_use")


def hash_thread(agent_id: str, thread_id: str) -> str:
    """Return the hash of a thread, in which no part can be taken for another one."""
    caller = require_principal()
    parts = ["ag-ui", caller.tenant, caller.key_id, caller.subject, find_end_user(), agent_id, thread_id]
    return sha256(json.dumps(parts).encode()).hexdigest()
