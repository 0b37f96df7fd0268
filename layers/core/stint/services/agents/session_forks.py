"""Forks: new sessions that start with copies of another one's turns.

  1. the turns are chosen and the last one is checked; nothing is written before
  2. a task is sent that deletes the copies of a session without a record. It arrives when the process of
     the request has certainly ended
  3. copies of the files and of the turns are written, and then the session, with its end user's entry: no reader sees
     a part of them
  4. the source is read again: if it was deleted meanwhile, or cannot be read, the fork is deleted, too. Until then, the
     fork's record is `unchecked`

A process that dies before 3 leaves records without a session, which no request can read, until the task deletes them.
If it dies before 4, a retry or the task checks the source. Each attempt has a session id of its own, so no task can
meet the copies of a later one.

The fork belongs to the end user of its source, and expires with it at the latest, because it has the same contents.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from stint.caller import record_owners
from stint.dataclasses import dataclass, replace
from stint.domain.errors import Conflict, InvalidRequest, NotFound, StintError
from stint.domain.ids import copied_id
from stint.domain.llama_stack.copied_turns import copy_turn
from stint.domain.llama_stack.sessions import ForkedFrom, ForkFrom, Session, SessionSettings
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.run_outcome import RunStatus
from stint.domain.session_budgets import SessionBudget
from stint.domain.stops import stop_name
from stint.domain.tasks import DeletionTask
from stint.metering import name_run
from stint.run_stop import refuse_stopped
from stint.services.agents.interrupted import mark_interrupted
from stint.services.deletions import Deletions
from stint.services.runs.senders import belongs_to_another, find_owner
from stint.store.log import LogItems
from stint.store.sessions import LastTurn, SessionPlace, SessionRecord
from stint.store.store import Store

FILE_ATTEMPTS = 3
"""Maximum attempts to copy the files of a session while code replaces them."""

NOT_ENDED = {
    RunStatus.in_progress: "is still running. Wait for its end, or cancel it",
    RunStatus.awaiting_input: "waits for the results of its client's tools. Resume it, or cancel it",
}


@dataclass(frozen=True, slots=True)
class SessionForks:
    """Creates the forks of a tenant. `history_bytes` is what the model sees of a history, in bytes of JSON."""

    tenant: str
    store: Store
    deletions: Deletions
    history_bytes: int

    async def create(
        self,
        agent_id: str,
        session: Session,
        expires_at: int | None,
        fork_from: ForkFrom,
        metadata: Mapping[str, str],
        budget: SessionBudget | None = None,
    ) -> None:
        """Store a session that starts with copies of the turns up to one of another session of the agent.

        It has the configuration of that one, and metadata of its own. Without a `budget`, it has the limits of that
        one, and has spent nothing.

        Raises:
            NotFound: there is no such session or turn, or it belongs to another end user.
            Conflict: the turn has not ended, or code of a later one keeps replacing the session's files.
            Stopped: the session to fork from was stopped.
            InvalidRequest: the session has a vector db of its own, or the turn is too large.
        """
        await refuse_stopped(stop_name("session", fork_from.session_id))
        name_run(agent_id, session.session_id)
        source = await self.find_source(agent_id, fork_from.session_id)
        place = SessionPlace(self.tenant, agent_id, source.session_id, source.expires_at, source.files)
        logs, complete = await self.store.forks.choose(place, fork_from.turn_id, self.history_bytes)
        newest = await self.read_ended(agent_id, source, logs[0])
        ends = [end for end in (expires_at, source.expires_at) if end is not None]
        target = SessionPlace(self.tenant, agent_id, session.session_id, min(ends, default=None))
        task = DeletionTask(tenant=self.tenant, agent_id=agent_id, session_id=session.session_id)
        await self.deletions.send(task.before_creation())
        files = await self.copy_files(place, target)
        await self.store.forks.put(target, self.copy_turns(newest, logs[1:], session.session_id))
        session.forked_from = ForkedFrom(session_id=source.session_id, turn_id=newest.header.turn_id, complete=complete)
        last = LastTurn(copied_id(newest.header.turn_id, session.session_id), len(newest.records))
        owner = source.end_users or find_owner()
        record_owners(owner.split())
        settings = SessionSettings(metadata={**metadata}, updated_at=session.started_at) if metadata else None
        if source.settings is not None:  # a fork goes on with the configuration of its source
            found = await self.store.sessions.get_settings(self.tenant, agent_id, source.session_id)
            own = {"metadata": {**metadata}, "updated_at": session.started_at}
            settings = found.model_copy(update=own)
        await self.store.sessions.create(
            self.tenant,
            agent_id,
            session,
            target.expires_at,
            last=last,
            owner=owner,
            files=files,
            settings=settings,
            budget=budget or (source.budget.limits if source.budget else None),
        )
        await self.check(agent_id, session.session_id, source.session_id)

    async def check(self, agent_id: str, session_id: str, source_id: str) -> None:
        """Check that the source of a fork exists after the fork does. After any failure, delete the fork, and raise.

        Raises NotFound if the source does not exist.
        """
        try:
            await self.store.sessions.check_fork(self.tenant, agent_id, session_id, source_id)
        except StintError:
            task = DeletionTask(tenant=self.tenant, agent_id=agent_id, session_id=session_id)
            mark = partial(self.store.sessions.mark_deleted, self.tenant, agent_id, session_id)
            # Hidden first. The task of the creation finishes the deletion if another one cannot be sent.
            await mark()
            with suppress(StintError):
                await self.deletions.start_deletion(task, mark)
            raise

    async def find_source(self, agent_id: str, session_id: str) -> SessionRecord:
        """Return the session to fork from. Raises as `create`."""
        source = await self.store.sessions.get(self.tenant, agent_id, session_id)
        if belongs_to_another(source.end_users):
            raise NotFound("Session", session_id)
        if source.vector_db_id is not None:
            raise InvalidRequest(
                f"Session {session_id} has long documents in a vector db of its own, which a fork cannot search. "
                "Insert them into a vector db that the agent's tools name, and start from a session without them.",
                code="session_has_vector_db",
                param="fork_from",
            )
        return source

    async def read_ended(self, agent_id: str, source: SessionRecord, log: LogItems) -> StoredTurn:
        """Return a turn that has ended, or whose process died. Raises Conflict for another one."""
        found = await self.store.forks.read(log)
        turn = await mark_interrupted(self.store, self.tenant, agent_id, source, turn=found)
        if (reason := NOT_ENDED.get(turn.status)) is not None:
            message = f"Turn {turn.header.turn_id} {reason}, or fork from an earlier turn."
            raise Conflict(message, code="turn_not_ended", param="fork_from")
        return turn

    async def copy_files(self, source: SessionPlace, target: SessionPlace) -> str | None:
        """Copy the files of the source, which a running turn may replace. Return what the fork's record is to name."""
        for _ in range(FILE_ATTEMPTS):
            try:
                return await self.store.session_files.copy(source, target)
            except NotFound:
                found = await self.find_source(source.agent_id, source.session_id)
                source = replace(source, files=found.files)
        message = f"Code in session {source.session_id} replaces its files. Wait for the end of its turn."
        raise Conflict(message, code="turn_not_ended", param="fork_from")

    async def copy_turns(
        self, newest: StoredTurn, earlier: Sequence[LogItems], session_id: str
    ) -> AsyncGenerator[StoredTurn, None]:
        """Yield the copies of turns, each of which is read when it is needed."""
        yield copy_turn(newest, session_id)
        for log in earlier:
            yield copy_turn(await self.store.forks.read(log), session_id)
