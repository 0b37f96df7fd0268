"""Lists of the tasks of an agent.

A list has the turns of one session, or of all sessions of the agent: first the messages that wait, then the turns, of
which the latest is the first. Turns of a session run one after another, so this is the order of their last changes. Of
several sessions, the one that was created last comes first, and only the tasks of a page are in the order of their
changes: no index has all turns by time.

A page ends after MOST_COST reads, so that no filter and no number of sessions without tasks makes a request long. The
next page goes on from there.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from stint.a2a.schemas import A2ATask, ListTasksParams, TaskPage, TaskState
from stint.a2a.task_ids import ListPosition, TaskPlace, read_position
from stint.a2a.task_reader import FoundTask, TaskReader, unknown_context
from stint.a2a.tasks import state_of, to_status, to_task
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.paging import MAX_BYTES, Window

MOST_COST = 400
"""Maximum turns that a page looks at. A session without further turns counts as SESSION_COST."""

SESSION_COST = 4
SESSIONS_AT_ONCE, TURNS_AT_ONCE = 20, 50


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A turn in the order of a list; None at the end of a session, whose place has no turn."""

    place: TaskPlace
    found: FoundTask | None = None


@dataclass(frozen=True, slots=True)
class TaskLists:
    """The lists of tasks of a tenant's agents."""

    reader: TaskReader

    async def read(self, agent_id: str, params: ListTasksParams) -> TaskPage:
        """Return a page of the tasks of an agent, or of one of its sessions. Raises InvalidRequest and NotFound."""
        position = read_position(params.page_token) if params.page_token else None
        if params.context_id:
            await self.require_listed(agent_id, params.context_id)
            if position is not None and position.session_id != params.context_id:
                message = "pageToken is that of a list with another contextId. Send the parameters of the first page."
                raise InvalidRequest(message, param="pageToken")
        shown, last = await self.fill(agent_id, params, position)
        seen = (position.seen if position is not None else 0) + len(shown)
        token = "" if last is None else ListPosition(last.session_id, last.turn_id, seen).pack()
        shown.sort(key=lambda task: task.status.timestamp, reverse=True)
        return TaskPage(tasks=shown, next_page_token=token, page_size=len(shown), total_size=seen + bool(token))

    async def fill(
        self, agent_id: str, params: ListTasksParams, position: ListPosition | None
    ) -> tuple[list[A2ATask], TaskPlace | None]:
        """Return the tasks of a page, and the last place that was looked at; None if nothing follows it."""
        shown: list[A2ATask] = []
        last: TaskPlace | None = None
        size = cost = 0
        async with aclosing(self.list_after(agent_id, params.context_id, position)) as listed:
            async for each in listed:
                if each.found is not None and (len(shown) == params.page_size or size > MAX_BYTES):
                    return shown, last
                if cost >= MOST_COST:
                    return shown, last
                last, cost = each.place, cost + (SESSION_COST if each.found is None else 1)
                if each.found is not None and matches(each.found, params):
                    shown.append(show_listed(each.found, params))
                    size += len(shown[-1].to_json())
        return shown, None

    async def require_listed(self, agent_id: str, session_id: str) -> None:
        """Check that a session's tasks may be listed. Raises InvalidRequest, or NotFound of the agent."""
        try:
            await self.reader.require_context(agent_id, session_id)
        except NotFound as error:
            if error.code == "agent_not_found":
                raise
            raise unknown_context(session_id, "contextId") from None

    async def list_after(
        self, agent_id: str, session_id: str, position: ListPosition | None
    ) -> AsyncGenerator[ListedTask, None]:
        """Yield the turns of a session, or of all sessions of an agent, after a position."""
        sessions = self.sessions_after(agent_id, session_id, position)
        async with aclosing(sessions):
            async for each in sessions:
                continues = position is not None and each == position.session_id
                after = position.turn_id if position is not None and continues else ""
                async with aclosing(self.turns_of(agent_id, each, after)) as turns:
                    async for found in turns:
                        yield ListedTask(TaskPlace(each, found.turn.turn_id), found)
                yield ListedTask(TaskPlace(each, ""))

    async def sessions_after(
        self, agent_id: str, session_id: str, position: ListPosition | None
    ) -> AsyncGenerator[str, None]:
        """Yield the ids of the sessions of a list from a position on, whose own session may have further turns."""
        if position is not None and position.turn_id:
            yield position.session_id
        elif position is None and session_id:
            yield session_id
        if session_id:
            return
        sessions, after, more = self.reader.sessions, position.session_id if position is not None else None, True
        while more:
            window = Window(limit=SESSIONS_AT_ONCE, after=after, newest_first=True, by_id=True)
            page = await sessions.list(agent_id, window)
            for session in page.data:
                after = session.session_id
                yield session.session_id
            after = page.position or after
            more = page.has_more and bool(page.data)

    async def turns_of(self, agent_id: str, session_id: str, after: str) -> AsyncGenerator[FoundTask, None]:
        """Yield the turns of a session before the id `after`, newest first; nothing if the caller may not know of it.

        Messages that wait have later ids than the turns.
        """
        reader = self.reader
        with suppress(NotFound):  # it was deleted meanwhile
            await reader.require_context(agent_id, session_id)
            places = await reader.line_of(agent_id, session_id).read()
            for message_id in sorted((place.message_id for place in places), reverse=True):
                if after and message_id >= after:
                    continue
                turn = await reader.requests.turns.get(agent_id, session_id, message_id)
                if turn.turn_id == message_id and not turn.steps:
                    yield FoundTask(turn, submitted=True)
            position, more = after or None, True
            while more:
                page = await reader.sessions.list_turns(
                    agent_id, session_id, after=position, limit=TURNS_AT_ONCE, newest_first=True
                )
                for turn in page.data:
                    yield FoundTask(turn)
                position = page.data[-1].turn_id if page.data else position
                more = page.has_more and bool(page.data)


def show_listed(found: FoundTask, params: ListTasksParams) -> A2ATask:
    length, with_artifacts = params.history_length or 0, params.include_artifacts
    return to_task(found.turn, submitted=found.submitted, history_length=length, with_artifacts=with_artifacts)


def matches(found: FoundTask, params: ListTasksParams) -> bool:
    """Return whether a list with these filters has a task."""
    state = state_of(found.turn, submitted=found.submitted)
    if params.status is not TaskState.unspecified and state != params.status:
        return False
    after = params.status_timestamp_after
    return after is None or to_status(found.turn, submitted=found.submitted).timestamp >= after
