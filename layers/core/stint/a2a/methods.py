"""The methods of A2A, and how each is answered.

SendMessage            JSON, after the task has ended or waits; spaces before a slow answer
with returnImmediately JSON at once; the worker runs the task
SendStreamingMessage   events; an error before the first one is JSON. That of a task in line is sent at once
SubscribeToTask        the same, from the state in which the task is
all others             JSON
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial

from fastapi import Request, Response
from starlette.background import BackgroundTask

from stint.a2a.calls import TaskAnswer, answer, encode_failure, read_params
from stint.a2a.errors import UNSUPPORTED_OPERATION
from stint.a2a.events import TaskEvents, steps_of
from stint.a2a.messages import SentMessageTask, TaskMessages
from stint.a2a.schemas import (
    ENDED,
    A2ATask,
    ListTasksParams,
    SendMessageParams,
    SendMessageResult,
    StreamItem,
    TaskParams,
    TaskState,
)
from stint.a2a.task_ids import TaskPlace, read_task_id
from stint.a2a.task_lists import TaskLists
from stint.a2a.task_reader import FoundTask, TaskReader, show_found
from stint.a2a.tasks import state_of, to_task
from stint.apis.agents import AgentsServices
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, StintError
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.turns import Turn
from stint.http.deadline import deadline_of
from stint.http.json_rpc import JsonRpcMessage, MessageId, encode_result
from stint.http.sse import encode_frame
from stint.http.streaming import RunFormat, StreamFormat, answer_run, encode_events, stream_frames
from stint.services.runs.run_handle import RequestContext, RunHandle, StreamClosed, WaitingRun


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A call to an agent."""

    agent_id: str
    message: JsonRpcMessage
    request: Request
    services: AgentsServices
    context: RequestContext

    @property
    def id(self) -> MessageId:
        return self.message.id

    @property
    def reader(self) -> TaskReader:
        return TaskReader(self.services.sessions, self.services.turn_requests)

    @property
    def messages(self) -> TaskMessages:
        return TaskMessages(self.reader, self.services.turn_requests, self.services.creations)


async def send_message(call: AgentCall) -> Response:
    params = read_params(SendMessageParams, call.message)
    if params.configuration.return_immediately:
        task_id = await call.messages.accept(call.agent_id, params, call.context)
        found = await call.reader.find(call.agent_id, task_id)
        task = show_found(found, task_id, params.configuration.history_length)
        return answer(call.id, SendMessageResult(task=task))
    sent = await call.messages.send(call.agent_id, params, call.context)

    def show(turn: Turn) -> TaskAnswer:
        task = to_task(turn, history_length=params.configuration.history_length)
        return TaskAnswer(id=call.id, result=SendMessageResult(task=task))

    encode = partial(encode_failure, call.id)
    form: RunFormat[NumberedEvent, Turn] = RunFormat(StreamFormat(encode_nothing), to_schema=show, encode_error=encode)
    beat, deadline = call.services.heartbeat_seconds, call.context.deadline
    try:
        response = await answer_run(sent.handle, form, stream=False, heartbeat_seconds=beat, deadline=deadline)
    except StintError as error:
        if error.turn_id is None:
            raise
        response = answer(call.id, show(await read_failed(call, sent, error)).result)
    response.status_code = 200
    return response


def encode_nothing(_event: NumberedEvent) -> bytes:
    raise NotImplementedError  # the answer is a document


async def read_failed(call: AgentCall, sent: SentMessageTask, error: StintError) -> Turn:
    """Return the turn of an error that has one: a message that still waits, or a turn that has failed at once."""
    return await call.services.turns.get(call.agent_id, sent.session_id, error.turn_id or "")


async def send_streaming_message(call: AgentCall) -> Response:
    params = read_params(SendMessageParams, call.message)
    sent = await call.messages.send(call.agent_id, params, call.context)
    if isinstance(sent.handle, WaitingRun) and (turn := await sent.handle.read_message()) is not None:
        found = FoundTask(turn, await call.reader.is_submitted(call.agent_id, turn))
        place, length = TaskPlace(turn.session_id, turn.turn_id), params.configuration.history_length
        return stream_submitted(call, sent.handle, place, show_found(found, place.task_id, length))
    try:
        return await stream_task(call, sent.handle, sent.events)
    except StintError as error:
        if error.turn_id is None:
            raise
        turn = await read_failed(call, sent, error)
        return stream_items(call, only(StreamItem(task=to_task(turn))))


async def subscribe_to_task(call: AgentCall) -> Response:
    params = read_params(TaskParams, call.message)
    found = await call.reader.find(call.agent_id, params.id)
    turn, state = found.turn, found.state
    if state in ENDED:
        message = f"Task {params.id} is {state.removeprefix('TASK_STATE_')}: nothing follows. GetTask returns it."
        raise InvalidRequest(message, code=UNSUPPORTED_OPERATION, param="id")
    task = show_found(found, params.id)
    if state is TaskState.input_required or found.answered:
        return stream_items(call, only(StreamItem(task=task)))
    deadline = deadline_of(call.request)
    handle = await call.services.turn_requests.follow(call.agent_id, turn.session_id, turn.turn_id, -1, deadline)
    asked = read_task_id(params.id)
    if state is TaskState.submitted:
        return stream_submitted(call, handle, asked, task)
    events = TaskEvents(turn.session_id, lambda _: task, asked.turn_id, steps_of(turn))
    return await stream_task(call, handle, events)


async def stream_task(call: AgentCall, handle: RunHandle[NumberedEvent, Turn], events: TaskEvents) -> Response:
    """Return the response with the stream of a task. Raises StintError if its turn fails before the first event."""
    opened = await handle.open(call.services.heartbeat_seconds)
    return finishing(handle, stream_items(call, events.stream(opened)))


def stream_submitted(
    call: AgentCall, handle: RunHandle[NumberedEvent, Turn], place: TaskPlace, task: A2ATask
) -> Response:
    """Return the response with the stream of a task that waits in line: it begins with the task, at once."""
    events = TaskEvents(place.session_id, lambda _: task, place.turn_id, submitted=True)

    async def items() -> AsyncGenerator[StreamItem, None]:
        yield StreamItem(task=task)
        try:
            opened = await handle.open(call.services.heartbeat_seconds)
            async with aclosing(events.stream(opened)) as streamed:
                async for item in streamed:
                    yield item
        except StintError as error:
            if events.has_begun:
                raise
            turn = await call.services.turns.get(call.agent_id, place.session_id, place.turn_id)
            if state_of(turn) not in ENDED:  # it waits still, and the client subscribes again
                raise StreamClosed from error
            yield events.show_status(turn)

    return finishing(handle, stream_items(call, items()))


def finishing(handle: RunHandle[NumberedEvent, Turn], response: Response) -> Response:
    """Return a response after which a run does what may be done then."""

    async def finish() -> None:
        await handle.finish()
        await handle.send_trace()

    response.background = BackgroundTask(finish)
    return response


async def only(item: StreamItem) -> AsyncGenerator[StreamItem, None]:
    yield item


def stream_items(call: AgentCall, items: AsyncGenerator[StreamItem, None]) -> Response:
    """Return the response with events, each a message of JSON-RPC."""

    def encode(item: StreamItem) -> bytes:
        return encode_frame(encode_result(call.id, item))

    def encode_last(error: Exception) -> tuple[bytes, ...]:
        return () if isinstance(error, StreamClosed) else (encode_frame(encode_failure(call.id, error)),)

    async def frames() -> AsyncGenerator[bytes, None]:
        form = StreamFormat(encode, encode_error=encode_last)
        async with aclosing(encode_events(items, form)) as encoded:
            async for frame in encoded:
                yield frame

    return stream_frames(frames(), call.services.heartbeat_seconds)


async def get_task(call: AgentCall) -> Response:
    return answer(call.id, await call.reader.get(call.agent_id, read_params(TaskParams, call.message)))


async def list_tasks(call: AgentCall) -> Response:
    params = read_params(ListTasksParams, call.message)
    return answer(call.id, await TaskLists(call.reader).read(call.agent_id, params))


async def cancel_task(call: AgentCall) -> Response:
    return answer(call.id, await call.reader.cancel(call.agent_id, read_params(TaskParams, call.message)))


HANDLERS: dict[str, Callable[[AgentCall], Awaitable[Response]]] = {
    "SendMessage": send_message,
    "SendStreamingMessage": send_streaming_message,
    "GetTask": get_task,
    "ListTasks": list_tasks,
    "CancelTask": cancel_task,
    "SubscribeToTask": subscribe_to_task,
}
