"""The response of a call: its turn is started, resumed or only read, and then answered."""

from collections.abc import Callable

from fastapi import Request, Response

from stint.apis.agents import AgentsServices
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.http.idempotency import IDEMPOTENCY_KEY
from stint.http.json_rpc import MessageId, answer_result
from stint.http.streaming import request_context_of
from stint.mcp_server.answers import CallAnswer
from stint.mcp_server.call_states import CallStates
from stint.mcp_server.calls import StartedCall, ToolCalls
from stint.mcp_server.results import ResultWriter
from stint.mcp_server.revisions import McpClient
from stint.mcp_server.schemas import CallParams, ServedResult


def calls_of(services: AgentsServices) -> ToolCalls:
    return ToolCalls(services.sessions, services.turn_requests, services.store.mcp_calls)


@dataclass(frozen=True, slots=True)
class CallResponder:
    """Responds to a call of an agent. `digest` is that of the call's id, and `complete` completes each result."""

    request: Request
    services: AgentsServices
    client: McpClient
    agent_id: str
    digest: str
    complete: Callable[[ServedResult], ServedResult]

    async def respond(self, message_id: MessageId, params: CallParams, *, stream: bool) -> Response:
        """Return the response of a call. Raises StintError."""
        states = CallStates(self.services.tenant, self.services.store.signing_keys)
        writer = ResultWriter(states, self.agent_id, self.client.elicits)
        found = await self.find(params, states, writer)
        if isinstance(found, ServedResult):
            return answer_result(message_id, self.complete(found))
        # The older revision says that a client which disconnects has not cancelled its call. Neither has one that can
        # repeat it with its key.
        cancelled_by_leaving = self.client.is_modern and IDEMPOTENCY_KEY not in self.request.headers
        answer = CallAnswer(
            message_id=message_id,
            token=params.meta.progress_token,
            write=writer.write,
            finish_result=self.complete,
            heartbeat_seconds=self.services.heartbeat_seconds,
            cancel=found.cancel if cancelled_by_leaving else None,
        )
        return await answer.respond(found, stream=stream)

    async def find(self, params: CallParams, states: CallStates, writer: ResultWriter) -> StartedCall | ServedResult:
        """Return the call with its turn, or the result of one whose turn goes on waiting. Raises StintError."""
        calls, context = calls_of(self.services), await request_context_of(self.request)
        if params.request_state is None:
            if params.input_responses is not None:
                text = "inputResponses need the requestState of the result that asked. Send both, or neither."
                raise InvalidRequest(text, param="params.requestState")
            return await calls.start(self.agent_id, params, context, self.digest)
        state = await states.read(params.request_state, self.agent_id, params.arguments.session_id)
        if not params.input_responses:  # the client asks again
            return await writer.write(await calls.read_turn(state))
        resumed = await calls.resume(state, params, context, self.digest)
        return resumed or writer.write_undecided(await calls.read_turn(state))
