"""Tasks of an agent: find, read and cancel.

An end user finds the tasks of their own sessions, and of those without an end user. Others are not found, as those of
other agents and tenants.

A message that waited may have become a turn with another id, or a part of another turn. Its task keeps the id by which
the client knows it.
"""

import asyncio

from stint.a2a.errors import TASK_NOT_CANCELABLE, task_not_found
from stint.a2a.schemas import ENDED, A2ATask, TaskParams, TaskState
from stint.a2a.task_ids import read_task_id
from stint.a2a.tasks import state_of, to_task
from stint.caller import find_attempt
from stint.dataclasses import dataclass
from stint.domain.errors import Forbidden, InvalidRequest, NotFound
from stint.domain.ids import is_id
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.services.agents.sessions import Sessions
from stint.services.runs.senders import belongs_to_another
from stint.services.turns.session_input import SessionInput
from stint.services.turns.turn_requests import TurnRequests
from stint.store.waiting_line import WaitingLine

MOST_EXAMINED = 400
"""Maximum turns that a page looks at. With a filter, it may be short although others follow."""

SESSIONS_AT_ONCE, TURNS_AT_ONCE = 20, 50


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A turn. `submitted`: it is a message that still waits. `answered`: the worker has what it needs to go on."""

    turn: Turn
    submitted: bool = False
    answered: bool = False

    @property
    def state(self) -> TaskState:
        return TaskState.working if self.answered else state_of(self.turn, submitted=self.submitted)


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
        if not isinstance(session, BaseException) and belongs_to_another(session.end_users):
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
        submitted, answered = await self.is_submitted(agent_id, turn), await self.is_answered(agent_id, turn)
        return FoundTask(turn, submitted, answered)

    async def is_answered(self, agent_id: str, turn: Turn) -> bool:
        """Return whether all calls of a turn that waits for its client have answers, which the worker takes."""
        if turn.status is not TurnStatus.awaiting_input:
            return False
        session = SessionInput(self.requests, agent_id, turn.session_id)
        return await session.has_results(turn.turn_id)

    async def is_submitted(self, agent_id: str, turn: Turn) -> bool:
        """Return whether a turn is a message in line. Only one that has no step yet may be."""
        if turn.status is not TurnStatus.in_progress or turn.steps:
            return False
        places = await self.line_of(agent_id, turn.session_id).read()
        return turn.turn_id in {place.message_id for place in places}

    async def get(self, agent_id: str, params: TaskParams) -> A2ATask:
        """Return a task. Raises as `find`."""
        return show_found(await self.find(agent_id, params.id), params.id, params.history_length)

    async def cancel(self, agent_id: str, params: TaskParams) -> A2ATask:
        """Cancel a task that has not ended, and return it. Raises InvalidRequest, and as `find`."""
        found, attempt = await self.find(agent_id, params.id), find_attempt()
        turn = found.turn
        if attempt.repeated and turn.status is TurnStatus.cancelled:
            return show_found(found, params.id)
        if state_of(turn) not in ENDED:
            try:
                turn = await self.requests.cancellation.cancel(agent_id, turn.session_id, turn.turn_id)
            except Forbidden:  # the session got another end user meanwhile
                raise task_not_found(params.id) from None
            if turn.status is TurnStatus.cancelled:
                return show_found(FoundTask(turn), params.id)
        state = state_of(turn).removeprefix("TASK_STATE_")
        message = f"Task {params.id} is {state} and cannot be cancelled. GetTask returns its result."
        raise InvalidRequest(message, code=TASK_NOT_CANCELABLE, param="id")


def show_found(found: FoundTask, task_id: str, history_length: int | None = None) -> A2ATask:
    """Return the task of a turn, under the id by which the client knows it."""
    turn = found.turn
    if found.answered:
        turn = turn.model_copy(update={"status": TurnStatus.in_progress, "completed_at": None})
    task = to_task(turn, submitted=found.submitted, history_length=history_length)
    return task if task.id == task_id else task.model_copy(update={"id": task_id})


def unknown_context(session_id: str, param: str) -> InvalidRequest:
    """Return the error of a contextId that is not that of a session of the agent, or not of the caller's end user."""
    message = (
        f"Context {session_id[:100]!r} not found: contexts are created by messages without a contextId, and belong to "
        "one agent, tenant and end user. Omit contextId to start another one."
    )
    return InvalidRequest(message, code="context_not_found", param=param)
