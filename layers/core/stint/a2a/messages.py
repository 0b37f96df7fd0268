"""Messages to an agent: each begins a task, or answers one that waits for its client.

    the message has                 what happens
    neither contextId nor taskId    a session is created, and a turn in it
    contextId                       a turn in that session; while another one runs, as the agent's `when_busy` says
    taskId                          the turn goes on with the answers of the message

With `returnImmediately`, the input is stored and the worker takes it (`services/turns/session_input.py`), so that the
turn runs after the answer. Otherwise this process runs the turn, and the answer has its end.

A repetition with the same Idempotency-Key gets the task of the first one. The `messageId` is not looked at: clients
choose short ones, and two clients of one key may choose the same.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from stint.a2a.answers import to_answer
from stint.a2a.errors import PUSH_NOT_SUPPORTED, UNSUPPORTED_OPERATION, task_not_found
from stint.a2a.events import TaskEvents, new_task, resumed_task, steps_of
from stint.a2a.parts import TurnInput, check_modes, naming_parts, to_input, whole_numbers
from stint.a2a.schemas import ENDED, SendMessageParams, TaskState
from stint.a2a.task_ids import TaskPlace
from stint.a2a.task_reader import FoundTask, TaskReader, unknown_context
from stint.caller import EarlierRunUnavailable, find_attempt, raise_call_depth
from stint.dataclasses import dataclass, replace
from stint.domain.call_depth import DEPTH_KEY, read_depth
from stint.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from stint.domain.ids import new_id
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnResumeRequest
from stint.domain.session_budgets import SessionBudget
from stint.domain.validation import describe_faults
from stint.log_keys import add_log_keys
from stint.services.idempotency.creations import Creations
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.session_input import ClientResult, SessionInput
from stint.services.turns.turn_handles import TurnHandle
from stint.services.turns.turn_requests import TurnRequests

T = TypeVar("T")

BUDGET = "stint/budget"
"""The key of a request's metadata that has the budget of a new session."""


@dataclass(frozen=True, slots=True)
class SentMessageTask:
    """The run of a message's task, and what makes its stream."""

    session_id: str
    handle: TurnHandle
    events: TaskEvents


@dataclass(frozen=True, slots=True)
class TaskMessages:
    """The messages to a tenant's agents."""

    reader: TaskReader
    requests: TurnRequests
    creations: Creations

    async def send(self, agent_id: str, params: SendMessageParams, context: RequestContext) -> SentMessageTask:
        """Return the run of the message's task.

        Raises:
            NotFound: there is no such agent or task.
            InvalidRequest: the task has ended, or the message asks for what agents do not have.
            StintError: as `TurnRequests.submit` and `TurnRequests.resume`.
        """
        check_message(params)
        raise_depth(params)
        length = params.configuration.history_length
        if params.message.task_id:
            found, request = await self.read_answer(agent_id, params)
            turn, ids = found.turn, (agent_id, found.turn.session_id, found.turn.turn_id)
            handle = await self.hiding(params, self.requests.resume(*ids, request, context))
            events = TaskEvents(turn.session_id, resumed_task(turn, length), turn.turn_id, steps_of(turn))
            return SentMessageTask(turn.session_id, handle, events)
        given = to_input(params.message.parts)
        session_id = await self.open_context(agent_id, params, given)
        context = replace(context, attempt=find_attempt())  # its id may have been renewed
        with naming_parts(given):
            handle = await self.hiding(params, self.requests.submit(agent_id, session_id, to_request(given), context))
        return SentMessageTask(session_id, handle, TaskEvents(session_id, new_task(session_id, given.messages, length)))

    async def accept(self, agent_id: str, params: SendMessageParams, context: RequestContext) -> str:
        """Store a message for the worker, and return the id of its task. Raises as `send`, and Conflict."""
        check_message(params)
        raise_depth(params)
        if params.message.task_id:
            found, request = await self.read_answer(agent_id, params)
            await self.hiding(params, self.accept_answer(agent_id, found.turn, request))
            return params.message.task_id
        given = to_input(params.message.parts)
        session_id = await self.open_context(agent_id, params, given)
        attempt = find_attempt()
        attempt = attempt if attempt.object_id else replace(attempt, object_id=new_id())
        with naming_parts(given):
            await self.hiding(params, self.accept_input(agent_id, session_id, given, replace(context, attempt=attempt)))
        return TaskPlace(session_id, attempt.object_id).task_id

    async def accept_answer(self, agent_id: str, turn: Turn, request: TurnResumeRequest) -> None:
        session = SessionInput(self.requests, agent_id, turn.session_id)
        answers = [ClientResult(turn.turn_id, each) for each in request.tool_responses]
        answers += [ClientResult(turn.turn_id, each) for each in request.approvals or ()]
        await session.check(answers)
        await session.accept_results(answers)

    async def accept_input(self, agent_id: str, session_id: str, given: TurnInput, context: RequestContext) -> None:
        """Store the input of a turn at the end of its session's line, if the agent's `when_busy` allows it."""
        session = SessionInput(self.requests, agent_id, session_id)
        when_busy, running = await self.requests.read_default(agent_id), None
        if when_busy in (None, "reject", "interrupt") and not context.attempt.repeated:
            running = await self.requests.make_admission(agent_id, session_id).kind.find_running()
        if running is not None and when_busy != "interrupt":
            raise session_in_use(TaskPlace(session_id, running))
        request = to_request(given).model_copy(update={"when_busy": when_busy})
        await session.accept_message(request, context)
        if running is not None:  # after the message, which can still be refused
            await self.requests.cancellation.cancel(agent_id, session_id, running)

    async def open_context(self, agent_id: str, params: SendMessageParams, given: TurnInput) -> str:
        """Return the session of a message, which is created if the message names none. Raises InvalidRequest."""
        budget = read_budget(params.metadata)
        session_id = params.message.context_id
        if session_id:
            if budget is not None:
                message = "The budget of a context is set by the first message. Omit it, or omit contextId."
                raise InvalidRequest(message, param=f"metadata.{BUDGET}")
            await self.require_context(agent_id, session_id)
        else:
            with naming_parts(given):
                await self.requests.turns.check_input(to_request(given))  # before there is a session that would stay
            find = partial(self.reader.sessions.find_created, agent_id)
            session_id = await self.creations.run(find, partial(self.create_context, agent_id, budget))
        add_log_keys(session_id=session_id)
        return session_id

    async def require_context(self, agent_id: str, session_id: str) -> None:
        """Raise InvalidRequest for an unknown context, or NotFound of the agent."""
        try:
            await self.reader.require_context(agent_id, session_id)
        except NotFound as error:
            if error.code == "agent_not_found":
                raise
            raise unknown_context(session_id, "message.contextId") from None

    async def create_context(self, agent_id: str, budget: SessionBudget | None, session_id: str) -> str:
        if find_attempt().follows:
            raise EarlierRunUnavailable
        return await self.reader.sessions.create(agent_id, "", session_id=session_id, budget=budget)

    async def read_answer(self, agent_id: str, params: SendMessageParams) -> tuple[FoundTask, TurnResumeRequest]:
        """Return the task that a message answers, and the answers. Raises InvalidRequest and NotFound."""
        message = params.message
        found = await self.reader.find(agent_id, message.task_id)
        turn = found.turn
        if message.context_id and message.context_id != turn.session_id:
            raise InvalidRequest(
                "message.contextId is not that of the task. Omit it, or send that of the task.",
                param="message.contextId",
            )
        if params.metadata and BUDGET in params.metadata:
            raise InvalidRequest("The budget of a context is set by the first message.", param=f"metadata.{BUDGET}")
        state = found.state
        if state is not TaskState.input_required and not find_attempt().repeated:
            name = state.removeprefix("TASK_STATE_")
            advice = "has ended" if state in ENDED else "does not wait for its client"
            text = f"Task {message.task_id} is {name}: it {advice}. Send the message with its contextId alone."
            raise InvalidRequest(text, code=UNSUPPORTED_OPERATION, param="message.taskId")
        return found, to_answer(turn, message.parts)

    async def hiding(self, params: SendMessageParams, work: Awaitable[T]) -> T:
        """Await work, without telling that a session belongs to another end user."""
        try:
            return await work
        except Forbidden as error:
            if error.code != "other_end_user":
                raise
            if params.message.task_id:
                raise task_not_found(params.message.task_id) from None
            raise unknown_context(params.message.context_id, "message.contextId") from None


def session_in_use(place: TaskPlace) -> Conflict:
    message = f"Context {place.session_id} runs task {place.task_id}. Send the message when it has ended, or "
    return Conflict(f"{message}set `when_busy` of the agent to enqueue.", code="session_locked")


def check_message(params: SendMessageParams) -> None:
    """Refuse what agents do not have, before anything is read. Raises InvalidRequest."""
    if params.message.role != "ROLE_USER":
        raise InvalidRequest("message.role must be ROLE_USER: agents answer others' messages.", param="message.role")
    if params.configuration.task_push_notification_config is not None:
        raise no_push("configuration.taskPushNotificationConfig")
    check_modes(params.configuration.accepted_output_modes)


def raise_depth(params: SendMessageParams) -> None:
    """Raise the depth of the request to that in its metadata, or in its message's. Raises InvalidRequest."""
    for metadata, place in ((params.metadata, "metadata"), (params.message.metadata, "message.metadata")):
        if metadata and DEPTH_KEY in metadata:
            raise_call_depth(read_depth(whole_numbers(metadata[DEPTH_KEY]), f"{place}.{DEPTH_KEY}"))


def no_push(param: str) -> InvalidRequest:
    message = "Push notifications are not supported. Use SubscribeToTask, GetTask, or webhooks (docs/webhooks.md)."
    return InvalidRequest(message, code=PUSH_NOT_SUPPORTED, param=param)


def read_budget(metadata: dict[str, Any] | None) -> SessionBudget | None:
    """Return the budget in a request's metadata. Raises InvalidRequest."""
    given = (metadata or {}).get(BUDGET)
    if given is None:
        return None
    try:
        return SessionBudget.model_validate(whole_numbers(given))
    except ValidationError as error:
        raise InvalidRequest(f"metadata.{BUDGET}: {describe_faults(error)}", param=f"metadata.{BUDGET}") from None


def to_request(given: TurnInput) -> TurnCreateRequest:
    return TurnCreateRequest(messages=[*given.messages], documents=given.documents)
