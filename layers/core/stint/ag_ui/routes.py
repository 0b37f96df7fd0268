"""The route of AG-UI.

What is refused before the first event has a status and the error body of all APIs; what fails later is RUN_ERROR, the
last event of the stream.
"""

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

from stint.ag_ui.runs import AgUiRun, AgUiRuns
from stint.ag_ui.schemas.events import AgUiEvent, RunErrorEvent
from stint.ag_ui.schemas.inputs import RunInput
from stint.http.dependencies import AgentRoute, AgentsServicesDep
from stint.http.errors import late_document_of
from stint.http.scopes import RUN, requires
from stint.http.sse import COMMENT, encode_frame
from stint.http.streaming import RequestContextDep, StreamFormat, encode_events, stream_frames

SESSION_HEADER = "stint-session-id"
"""The header with the id of the thread's session, by which other APIs continue it."""

STREAMS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/AgUiRunEvent"}}},
        "description": "The events of the run.",
        "headers": {"Stint-Session-Id": {"description": "the session of the thread", "schema": {"type": "string"}}},
    }
}

router = APIRouter(tags=["AG-UI"], route_class=AgentRoute)


@router.post("/v1/agents/{agent_id}/ag-ui", response_class=StreamingResponse, responses=STREAMS)
@requires("use", repeated=RUN)
async def run_ag_ui_agent(
    agent_id: str, body: RunInput, services: AgentsServicesDep, context: RequestContextDep
) -> Response:
    """Run an agent for a client of AG-UI 1.0, and stream the events of the run."""
    run = await AgUiRuns(services).start(agent_id, body, context)
    return await stream_run(run, services.heartbeat_seconds)


async def stream_run(run: AgUiRun, heartbeat_seconds: float) -> Response:
    """Return the stream of a run. Raises StintError if it is refused or fails before its first event."""
    form: StreamFormat[AgUiEvent] = StreamFormat(encode_event, encode_error=encode_run_error)
    response = stream_frames(encode_events(await run.open(heartbeat_seconds), form), heartbeat_seconds, COMMENT)
    if run.session_id:
        response.headers[SESSION_HEADER] = run.session_id
    response.background = BackgroundTask(run.finish)
    return response


def encode_event(event: AgUiEvent) -> bytes:
    return encode_frame(event.to_json())


def encode_run_error(error: Exception) -> tuple[bytes, ...]:
    """Write the failure of a stream as its last event."""
    details = late_document_of(error)["error"]
    return (encode_event(RunErrorEvent(message=details["message"], code=details["code"])),)
