"""The routes of A2A: one for all calls to an agent, its card, and the open card of the server.

SendMessage            JSON, after the task has ended or waits; spaces before a slow answer
with returnImmediately JSON at once; the worker runs the task
SendStreamingMessage   events; an error before the first one is JSON. The first one of a task in line is sent at once
SubscribeToTask        the same, from the state in which the task is
all others             JSON
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.background import BackgroundTask

from stint.a2a.calls import (
    METHODS,
    VERSION_HEADER,
    TaskAnswer,
    answer,
    answer_failure,
    check_call,
    encode_failure,
    read_params,
)
from stint.a2a.cards import AgentCard, CallerSchemes, card_of_agent, card_of_server
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
from stint.domain.errors import InvalidRequest, NotFound, StintError
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.turns import Turn
from stint.http.deadline import deadline_of
from stint.http.dependencies import AgentRoute, AgentsServicesDep
from stint.http.json_rpc import JsonRpcError, JsonRpcMessage, MessageId, encode_result, parse_message, read_value
from stint.http.middleware.authentication import request_context_of
from stint.http.requests import StrictRoute
from stint.http.routes.pages import base_path_of, base_url_of
from stint.http.scopes import CALL, requires
from stint.http.sse import encode_frame
from stint.http.streaming import RequestContextDep, RunFormat, StreamFormat, answer_run, encode_events, stream_frames
from stint.services.runs.run_handle import RequestContext, RunHandle, StreamClosed, WaitingRun

AGENT = "/v1/agents/{agent_id}/a2a"
CARD = "/.well-known/agent-card.json"
CARD_HEADERS = {"cache-control": "private, max-age=60", "vary": "host, authorization"}

CALL_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "title": "A2ACall",
                    "description": "A call of A2A 1.0 by JSON-RPC 2.0. See docs/protocols.md.",
                    "properties": {
                        "jsonrpc": {"const": "2.0"},
                        "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                        "method": {"enum": [*METHODS]},
                        "params": {"type": "object"},
                    },
                    "required": ["jsonrpc", "id", "method"],
                }
            }
        },
    }
}
CALL_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {media: {"schema": {"type": "object"}} for media in ("application/json", "text/event-stream")},
        "description": "The result or the error of the call, or a stream of results.",
    }
}

router = APIRouter(tags=["A2A"], route_class=AgentRoute)


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


@router.post(AGENT, response_model=None, responses=CALL_ANSWERS, openapi_extra=CALL_BODY)
@requires("use", repeated=CALL)
async def call_agent(
    agent_id: str,
    request: Request,
    services: AgentsServicesDep,
    context: RequestContextDep,
    version: Annotated[str, Query(alias=VERSION_HEADER, description="in place of the header A2A-Version")] = "",
) -> Response:
    """Call a method of A2A 1.0 by JSON-RPC."""
    message_id: MessageId = None
    try:
        message = parse_message(await read_value(request))
        message_id = message.id
        check_call(message, request.headers.get(VERSION_HEADER) or version)
        return await HANDLERS[message.method](AgentCall(agent_id, message, request, services, context))
    except JsonRpcError as error:
        return answer_failure(message_id if error.message_id is None else error.message_id, error)
    except StintError as error:
        if isinstance(error, NotFound) and error.code == "agent_not_found":
            raise  # the URL is wrong, not the call
        return answer_failure(message_id, error)


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


@router.get(AGENT + CARD, response_model=AgentCard)
@requires("use")
async def get_agent_card(agent_id: str, request: Request, services: AgentsServicesDep) -> Response:
    """Read the A2A card of an agent."""
    agent = await services.agents.get(agent_id)
    path = f"/v1/agents/{agent_id}/a2a"
    return answer_card(request, card_of_agent(agent, base_of(request, path + CARD) + path, schemes_of(request)))


def base_of(request: Request, path: str) -> str:
    """Return the URL before `path`. API Gateway says which of its domains was called, which no header changes."""
    domain = str(request_context_of(request.scope).get("domainName") or "")
    host = request.headers.get("host", "")
    if domain in ("", host, host.rpartition(":")[0]):  # a server on this machine has a port
        return base_url_of(request, path)
    return f"https://{domain}{base_path_of(request, path)}"


def schemes_of(request: Request) -> CallerSchemes:
    settings = request.app.state.read_settings()
    return CallerSchemes(settings.auth == "authorizer", settings.oidc_issuer)


def answer_card(request: Request, card: AgentCard) -> Response:
    """Return a card, or that the client has it."""
    body = card.to_json()
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers: dict[str, Any] = CARD_HEADERS | {"etag": etag}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


@requires(None)
async def get_server_card(request: Request) -> Response:
    """Read the A2A card of the server, which names no agent."""
    return answer_card(request, card_of_server(base_of(request, CARD) + AGENT, schemes_of(request)))


# Without a caller, there are no services by which an AgentRoute names its lines.
router.add_api_route(CARD, get_server_card, methods=["GET"], response_model=AgentCard, route_class_override=StrictRoute)
