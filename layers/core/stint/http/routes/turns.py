"""Routes of the turns group, whose responses can be large or take long.

A route submits a request and answers with its handle. Whether the turn is new, waits, or belongs to an earlier attempt,
is not known here. `TURN_FORMAT` has the two forms of an answer, events or a document.
"""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from stint.apis.agents import AgentsServices
from stint.domain.llama_stack.events import Event, NumberedEvent, Payload, TurnFailed
from stint.domain.llama_stack.sessions import Session, TurnList
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnResumeRequest, TurnStatus
from stint.domain.model_inputs import ModelInput
from stint.domain.run_events import ReasoningEnded, ReasoningProgress
from stint.domain.run_signals import HeartbeatReceived
from stint.domain.schema import Schema
from stint.domain.steps import StepResponse
from stint.http.deadline import deadline_of
from stint.http.dependencies import AgentRoute, AgentsServicesDep, ProviderDataDep
from stint.http.errors import body_of
from stint.http.json_responses import TRACE, document
from stint.http.message_pages import FirstMessage
from stint.http.scopes import RESUMPTION, RUN, requires
from stint.http.sse import COMMENT_LINE, encode_frame
from stint.http.stream_position import LastEvent
from stint.http.streaming import RequestContextDep, RunFormat, StreamFormat, answer_run, encode_stream_error
from stint.services.runs.run_handle import RunHandle

SESSION = "/v1/agents/{agent_id}/session/{session_id}"
TURN = SESSION + "/turn/{turn_id}"
STREAM_SCHEMA = {"anyOf": [{"$ref": "#/components/schemas/StreamChunk"}, {"$ref": "#/components/schemas/StreamError"}]}
"""The data of each event, for the OpenAPI document."""

STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": STREAM_SCHEMA}}, "description": "The turn, or its events."}
}
WAITS: dict[int | str, dict[str, Any]] = {
    202: {"model": Turn, "description": "The message waits, and its turn is started later. It has no steps yet."}
}
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": STREAM_SCHEMA}}, "description": "The events of the turn."}
}


class StreamEvent(Schema):
    payload: Payload


class StreamChunk(Schema):
    """The data of an event."""

    event: StreamEvent


router = APIRouter(tags=["Turns"], route_class=AgentRoute)


def encode_event(event: Event) -> bytes:
    """Write one event: a `data:` line and an empty line, without `event:`."""
    if isinstance(event, TurnFailed):
        return encode_frame(json.dumps({"error": body_of(event.error)}, ensure_ascii=False).encode())
    if isinstance(event, ReasoningProgress | ReasoningEnded):  # no request of this API shows it
        return b""
    return encode_frame(b'{"event":{"payload":%b}}' % event.to_json())


def encode_numbered_event(numbered: NumberedEvent) -> bytes:
    """Write one event with its number in an `id:` line."""
    return b"id: %d\n%b" % (numbered.number, encode_event(numbered.event))


def show_turn(turn: Turn) -> Turn:
    return turn


TURN_FORMAT = RunFormat(
    StreamFormat(encode_numbered_event, encode_error=encode_stream_error, comment=COMMENT_LINE), to_schema=show_turn
)


async def answer_turn(
    handle: RunHandle[NumberedEvent, Turn], services: AgentsServices, deadline: float, *, stream: bool
) -> Response:
    """Return the response of a turn in the requested form."""
    beat = services.heartbeat_seconds
    return await answer_run(handle, TURN_FORMAT, stream=stream, heartbeat_seconds=beat, deadline=deadline)


@router.post(SESSION + "/turn", response_model=Turn, responses=STREAMS | WAITS)
@requires("use", repeated=RUN)
async def create_turn(
    agent_id: str, session_id: str, body: TurnCreateRequest, services: AgentsServicesDep, context: RequestContextDep
) -> Response:
    """Create a turn. With `stream` true, the response is a stream of events."""
    handle = await services.turn_requests.submit(agent_id, session_id, body, context)
    return await answer_turn(handle, services, context.deadline, stream=body.stream)


@router.post(TURN + "/resume", response_model=Turn, responses=STREAMS)
@requires("use", repeated=RESUMPTION)
async def resume_turn(
    agent_id: str,
    session_id: str,
    turn_id: str,
    body: TurnResumeRequest,
    services: AgentsServicesDep,
    context: RequestContextDep,
) -> Response:
    """Send tool responses, and resume the session's last turn.

    A waiting turn accepts a response to each of its calls. A completed turn accepts responses to calls that the client
    parsed from the text of its output message, with new call ids. Responses that the turn has already return the rest
    of the turn.
    """
    handle = await services.turn_requests.resume(agent_id, session_id, turn_id, body, context)
    return await answer_turn(handle, services, context.deadline, stream=body.stream)


@router.get(TURN + "/events", response_class=StreamingResponse, responses=EVENTS)
@requires("use")
async def follow_turn(
    agent_id: str, session_id: str, turn_id: str, request: Request, services: AgentsServicesDep, last: LastEvent = None
) -> Response:
    """Stream the events of a turn after the last one that the client has, until the turn ends or waits."""
    deadline, after = deadline_of(request), -1 if last is None else last
    handle = await services.turn_requests.follow(agent_id, session_id, turn_id, after, deadline=deadline)
    return await answer_turn(handle, services, deadline, stream=True)


@router.post(TURN + "/cancel", response_model=Turn)
@requires("use")
async def cancel_turn(agent_id: str, session_id: str, turn_id: str, services: AgentsServicesDep) -> Response:
    """Cancel a turn that runs or waits for tool responses, and return it. One that has ended is unchanged.

    Its finished steps are kept, its stream ends with `turn_complete`, and the session is free.
    """
    return document(await services.turn_requests.cancellation.cancel(agent_id, session_id, turn_id))


@router.post(TURN + "/heartbeat", response_model=HeartbeatReceived)
@requires("use")
async def send_turn_heartbeat(agent_id: str, session_id: str, turn_id: str, services: AgentsServicesDep) -> Response:
    """Keep a turn running that was started with `on_disconnect` cancel. Any other turn is unchanged."""
    return document(await services.turn_requests.cancellation.receive_heartbeat(agent_id, session_id, turn_id))


@router.get(TURN, response_model=Turn)
@requires("use")
async def get_turn(agent_id: str, session_id: str, turn_id: str, services: AgentsServicesDep) -> Response:
    """Read a turn."""
    return document(await services.turns.get(agent_id, session_id, turn_id))


@router.get(TURN + "/step/{step_id}", response_model=StepResponse)
@requires("use")
async def get_step(agent_id: str, session_id: str, turn_id: str, step_id: str, services: AgentsServicesDep) -> Response:
    """Read a step of a turn."""
    return document(StepResponse(step=await services.turns.step(agent_id, session_id, turn_id, step_id)))


@router.get(TURN + "/step/{step_id}/input", response_model=ModelInput)
@requires("use")
async def get_step_input(
    agent_id: str,
    session_id: str,
    turn_id: str,
    step_id: str,
    services: AgentsServicesDep,
    provider_data: ProviderDataDep,
    start_index: FirstMessage = 0,
) -> Response:
    """Read what the model saw in an inference step: messages, tools and parameters, rebuilt from what is stored."""
    read = services.step_inputs.read
    return document(await read(agent_id, session_id, turn_id, step_id, start_index, provider_data=provider_data))


@router.get(TURN + "/trace", responses=TRACE)
@requires("use")
async def get_turn_trace(agent_id: str, session_id: str, turn_id: str, services: AgentsServicesDep) -> Response:
    """Read the trace of a turn that has ended, in OTLP/JSON with OpenTelemetry's names for generative AI."""
    return document(await services.turn_traces.read(agent_id, session_id, turn_id))


@router.get(SESSION + "/turns", response_model=TurnList)
@requires("use")
async def list_turns(
    agent_id: str,
    session_id: str,
    services: AgentsServicesDep,
    after: Annotated[str | None, Query(description="the id of the turn to start after")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    status: TurnStatus | None = None,
) -> Response:
    """List the turns of a session, newest first. A page ends after about 4 MB.

    With `status`, a page may be short although others follow: go on after `next_after`.
    """
    sessions, newest_first = services.sessions, order == "desc"
    if status is None:
        page = await sessions.list_turns(agent_id, session_id, after=after, limit=limit, newest_first=newest_first)
    else:
        page = await sessions.find_turns(
            agent_id, session_id, status, after=after, limit=limit, newest_first=newest_first
        )
    url = f"/v1/agents/{agent_id}/session/{session_id}/turns"
    next_after = page.position if page.has_more else None
    return document(TurnList(data=page.data, has_more=page.has_more, url=url, next_after=next_after))


@router.get(SESSION, response_model=Session)
@requires("use")
async def get_session(
    agent_id: str, session_id: str, services: AgentsServicesDep, turn_ids: Annotated[list[str] | None, Query()] = None
) -> Response:
    """Read a session with its turns in creation order, or with those of `turn_ids` (repeated, or joined by commas)."""
    wanted = None if turn_ids is None else {part for value in turn_ids for part in value.split(",")}
    session, others = await services.sessions.read_pages(agent_id, session_id, wanted)
    if others is None:
        return document(session)
    return StreamingResponse(write_session(session, others), media_type="application/json")


async def write_session(session: Session, others: AsyncIterator[list[Turn]]) -> AsyncIterator[bytes]:
    """Yield a session as JSON while its turns are read."""
    head, mark, tail = session.model_copy(update={"turns": []}).to_json().partition(b'"turns":[')
    yield head + mark + b",".join(turn.to_json() for turn in session.turns)
    session.turns.clear()
    async for turns in others:
        yield b"".join(b"," + turn.to_json() for turn in turns)
    yield tail
