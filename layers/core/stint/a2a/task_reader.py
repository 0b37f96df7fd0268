"""Tasks of an agent: read, list, and cancel.

A list has the turns of one session, or of all sessions of the agent, those that began last first. Turns of a session
run one after another, so this is the order of their last changes. Of several sessions, the one that was created last
comes first, and only the tasks of a page are in the order of their changes: no index has all turns by time.

An end user sees the tasks of their own sessions, and of those without an end user. Other tasks are not found, as those
of other agents and tenants.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from stint.a2a.errors import TASK_NOT_CANCELABLE, task_not_found
from stint.a2a.schemas import ENDED, A2ATask, ListTasksParams, TaskPage, TaskParams, TaskState
from stint.a2a.task_ids import ListPosition, TaskPlace, read_position, read_task_id
from stint.a2a.tasks import state_of, to_task
from stint.caller import find_attempt
from stint.dataclasses import dataclass
from stint.domain.errors import Forbidden, InvalidRequest, NotFound
from stint.domain.ids import is_id
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.paging import MAX_BYTES, Window
from stint.services.agents.sessions import Sessions
from stint.services.runs.senders import find_owner
from stint.services.turns.turn_requests import TurnRequests
from stint.store.waiting_line import WaitingLine

MOST_EXAMINED = 400
"""Maximum turns that a page looks at. With a filter, it may be short although others follow."""

SESSIONS_AT_ONCE, TURNS_AT_ONCE = 20, 50


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A turn, with the place that a message has which still waits."""

    turn: Turn
    submitted: bool = False


@dataclass(frozen=True, slots=True)
class TaskReader:
    """The tasks of a tenant's agents."""

    sessions: Sessions
    requests: TurnRequests

    async def require_context(self, agent_id: str, session_id: str) -> None:
        """Check that the caller may know of a session of an agent.

        Raises NotFound of a session, also for one of another end user, or of the agent.
        """
        if not is_id(session_id):
            raise NotFound("Session", session_id[:100])
        agent, session = await asyncio.gather(
            self.sessions.agents.require(agent_id),
            self.sessions.store.sessions.get(self.sessions.tenant, agent_id, session_id),
            return_exceptions=True,
        )
        for error in (agent, session):
            if isinstance(error, BaseException):
                raise error
        owner = find_owner()
        if owner and not isinstance(session, BaseException) and session.end_users not in ("", owner):
            raise NotFound("Session", session_id)

    def line_of(self, agent_id: str, session_id: str) -> WaitingLine:
        return self.sessions.store.session_line(self.sessions.tenant, agent_id, session_id)

    async def find(self, agent_id: str, task_id: str) -> FoundTask:
        """Return the turn of a task. Raises NotFound of the task or of the agent."""
        place = read_task_id(task_id)
        try:
            await self.require_context(agent_id, place.session_id)
            turn = await self.requests.turns.get(agent_id, place.session_id, place.turn_id)
        except NotFound as error:
            if error.code == "agent_not_found":
                raise
            raise task_not_found(task_id) from None
        return FoundTask(turn, await self.is_submitted(agent_id, turn))

    async def is_submitted(self, agent_id: str, turn: Turn) -> bool:
        """Return whether a turn is a message in line. Only one that has no step yet may be."""
        if turn.status is not TurnStatus.in_progress or turn.steps:
            return False
        places = await self.line_of(agent_id, turn.session_id).read()
        return turn.turn_id in {place.message_id for place in places}

    async def get(self, agent_id: str, params: TaskParams) -> A2ATask:
        """Return a task. Raises as `find`."""
        found = await self.find(agent_id, params.id)
        return to_task(found.turn, submitted=found.submitted, history_length=params.history_length)

    async def cancel(self, agent_id: str, params: TaskParams) -> A2ATask:
        """Cancel a task that has not ended, and return it. Raises InvalidRequest, and as `find`."""
        found, attempt = await self.find(agent_id, params.id), find_attempt()
        turn = found.turn
        if attempt.repeated and turn.status is TurnStatus.cancelled:
            return to_task(turn)
        if state_of(turn) not in ENDED:
            try:
                turn = await self.requests.cancellation.cancel(agent_id, turn.session_id, turn.turn_id)
            except Forbidden:  # the session got another end user meanwhile
                raise task_not_found(params.id) from None
            if turn.status is TurnStatus.cancelled:
                return to_task(turn)
        state = state_of(turn).removeprefix("TASK_STATE_")
        message = f"Task {params.id} is {state} and cannot be cancelled. GetTask returns its result."
        raise InvalidRequest(message, code=TASK_NOT_CANCELABLE, param="id")

    async def list(self, agent_id: str, params: ListTasksParams) -> TaskPage:
        """Return a page of the tasks of an agent, or of one of its sessions. Raises InvalidRequest and NotFound."""
        position = read_position(params.page_token) if params.page_token else None
        if params.context_id:
            await self.require_listed(agent_id, params.context_id)
            if position is not None and position.session_id != params.context_id:
                message = "pageToken is that of a list with another contextId. Send the parameters of the first page."
                raise InvalidRequest(message, param="pageToken")
        seen, size, examined, next_position = position.seen if position else 0, 0, 0, None
        shown: list[A2ATask] = []
        async with aclosing(self.turns_after(agent_id, params.context_id, position)) as turns:
            async for found, place in turns:
                if len(shown) == params.page_size or size > MAX_BYTES or examined == MOST_EXAMINED:
                    break
                next_position, examined = place, examined + 1
                if matches(found, params):
                    task = to_task(
                        found.turn,
                        submitted=found.submitted,
                        history_length=params.history_length or 0,
                        with_artifacts=params.include_artifacts,
                    )
                    size += len(task.to_json())
                    shown.append(task)
            else:
                next_position = None
        seen += len(shown)
        more = next_position is not None
        token = ListPosition(next_position.session_id, next_position.turn_id, seen).pack() if next_position else ""
        shown.sort(key=lambda task: task.status.timestamp, reverse=True)
        return TaskPage(tasks=shown, next_page_token=token, page_size=len(shown), total_size=seen + more)

    async def require_listed(self, agent_id: str, session_id: str) -> None:
        """Check that a session's tasks may be listed. Raises InvalidRequest, or NotFound of the agent."""
        try:
            await self.require_context(agent_id, session_id)
        except NotFound as error:
            if error.code == "agent_not_found":
                raise
            raise unknown_context(session_id, "contextId") from None

    async def turns_after(
        self, agent_id: str, session_id: str, position: ListPosition | None
    ) -> AsyncGenerator[tuple[FoundTask, TaskPlace], None]:
        """Yield the turns of a session, or of all sessions of an agent, after a position, with their places."""
        if position is not None:
            async with aclosing(self.turns_of(agent_id, position.session_id, position.turn_id)) as turns:
                async for each in turns:
                    yield each
        if session_id:
            if position is None:
                async with aclosing(self.turns_of(agent_id, session_id, "")) as turns:
                    async for each in turns:
                        yield each
            return
        after, more = position.session_id if position else None, True
        while more:
            window = Window(limit=SESSIONS_AT_ONCE, after=after, newest_first=True, by_id=True)
            page = await self.sessions.list(agent_id, window)
            for session in page.data:
                async with aclosing(self.turns_of(agent_id, session.session_id, "")) as turns:
                    async for each in turns:
                        yield each
            after = page.position or (page.data[-1].session_id if page.data else after)
            more = page.has_more and bool(page.data)

    async def turns_of(
        self, agent_id: str, session_id: str, after: str
    ) -> AsyncGenerator[tuple[FoundTask, TaskPlace], None]:
        """Yield the turns of a session that the caller may know of: messages in line, and then turns, newest first."""
        with suppress(NotFound):  # it was deleted meanwhile, or `after` was
            await self.require_context(agent_id, session_id)
            if not after:
                for place in reversed(await self.line_of(agent_id, session_id).read()):
                    turn = await self.requests.turns.get(agent_id, session_id, place.message_id)
                    if turn.turn_id == place.message_id and not turn.steps:
                        yield FoundTask(turn, submitted=True), TaskPlace(session_id, "")
            position, more = after or None, True
            while more:
                page = await self.sessions.list_turns(
                    agent_id, session_id, after=position, limit=TURNS_AT_ONCE, newest_first=True
                )
                for turn in page.data:
                    yield FoundTask(turn), TaskPlace(session_id, turn.turn_id)
                position = page.data[-1].turn_id if page.data else position
                more = page.has_more and bool(page.data)


def matches(found: FoundTask, params: ListTasksParams) -> bool:
    """Return whether a list with these filters has a task."""
    state = state_of(found.turn, submitted=found.submitted)
    if params.status is not TaskState.unspecified and state != params.status:
        return False
    if params.status_timestamp_after is None:
        return True
    changed = to_task(found.turn, with_artifacts=False, history_length=0).status.timestamp
    return changed >= params.status_timestamp_after


def unknown_context(session_id: str, param: str) -> InvalidRequest:
    """Return the error of a contextId that is not that of a session of the agent, or not of the caller's end user."""
    message = (
        f"Context {session_id[:100]!r} not found: contexts are created by messages without a contextId, and belong to "
        "one agent, tenant and end user. Omit contextId to start another one."
    )
    return InvalidRequest(message, code="context_not_found", param=param)
