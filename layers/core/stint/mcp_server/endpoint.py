"""One message to an endpoint: its checks, its method, and its answer.

    checked first   the origin of a web page: 403
                    the body is one JSON-RPC message: 400
                    the revision, and its headers: 400
                    the agent of the path: 404
    then            a notification: 202, and nothing is answered
                    a request: the result of its method, or an error

Nothing is kept between two messages, so `initialize` decides nothing, and a client of the older revision has no session
id. What the two revisions require is in `revisions`.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from json import dumps
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.background import BackgroundTask

from stint.apis.agents import AgentsServices
from stint.dataclasses import dataclass, field
from stint.domain.errors import NotFound, StintError
from stint.domain.schema import Schema
from stint.domain.validation import describe_faults
from stint.http.attempts import place_of_request, source_of
from stint.http.errors import status_of
from stint.http.json_rpc import (
    INVALID_MESSAGE,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    JsonRpcError,
    JsonRpcMessage,
    answer_error,
    answer_result,
    code_of,
    is_reply,
    parse_message,
    read_value,
    unknown_method,
)
from stint.mcp_server.agent_tools import AgentTools
from stint.mcp_server.answers import accepts_stream
from stint.mcp_server.call_responses import CallResponder, calls_of
from stint.mcp_server.origins import check_origin
from stint.mcp_server.revisions import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    SUPPORTED,
    UNSUPPORTED_VERSION,
    McpClient,
    negotiate,
    read_client,
)
from stint.mcp_server.schemas import (
    CacheableResult,
    CallParams,
    CancelledParams,
    DiscoverResult,
    InitializeResult,
    ListParams,
    ServedResult,
)

S = TypeVar("S", bound=Schema)

SERVER: dict[str, Any] = {"name": "stint", "title": "Stint agents", "version": "1"}
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
CAPABILITIES: dict[str, Any] = {"tools": {}}
INSTRUCTIONS = (
    "Each tool is an agent. Send it a message; its result has a session_id, with which a later call continues the "
    "conversation."
)
TTL_MILLISECONDS = 60_000
"""Time for which a list of tools may be kept."""

STATUSES = {
    PARSE_ERROR: 400,
    INVALID_MESSAGE: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""The status of an error of the newer revision by its code. Others have that of the error."""

MALFORMED = (PARSE_ERROR, HEADER_MISMATCH, UNSUPPORTED_VERSION)
"""Codes of errors whose status is the same for both revisions: the revision of the message may not be known."""


@dataclass(slots=True)
class McpEndpoint:
    """One message to an endpoint of a tenant: that of all agents, or that of one."""

    request: Request
    services: AgentsServices
    agent_id: str | None = None
    client: McpClient = field(default_factory=McpClient)

    @property
    def tools(self) -> AgentTools:
        return AgentTools(self.services.agents, self.agent_id)

    async def answer(self) -> Response:
        """Return the response of the message. Raises Forbidden for a web page of another origin."""
        check_origin(self.request)
        message: JsonRpcMessage | None = None
        try:
            value = await read_value(self.request)
            if is_reply(value):
                return Response(status_code=202)  # this server asks nothing that could be answered so
            message = parse_message(value)
            self.client = McpClient(is_modern=True)  # whose errors have a status, as those of its checks have
            if message.id is None and not message.is_notification:
                raise JsonRpcError(INVALID_MESSAGE, "id must not be null.", param="id")
            self.client = read_client(message, self.request.headers.items())
            if self.agent_id is not None:
                await self.tools.require(self.agent_id)
            if message.is_notification:
                return self.note(message)
            return await self.handle(message)
        except StintError as error:
            return self.refuse(message, error)

    def refuse(self, message: JsonRpcMessage | None, error: StintError) -> Response:
        """Return the response of an error."""
        message_id = message.id if message is not None else getattr(error, "message_id", None)
        return answer_error(message_id, error, status=self.status_of(error, known=message is not None))

    def status_of(self, error: StintError, *, known: bool) -> int:
        """Return the status of an error. `known`: the message could be read."""
        number = code_of(error)
        if isinstance(error, NotFound) and error.code == "agent_not_found" and self.agent_id is not None:
            return 404  # the agent of the path
        if self.client.is_modern or not known or number in MALFORMED:
            return STATUSES.get(number) or status_of(error)
        return 200

    def note(self, message: JsonRpcMessage) -> Response:
        """Accept a notification. That of a cancelled call cancels its turn, after the answer."""
        response = Response(status_code=202)
        if message.method == "notifications/cancelled":
            params = read_params(CancelledParams, message)
            response.background = BackgroundTask(self.cancel, self.digest_of(params.request_id))
        return response

    async def cancel(self, digest: str) -> None:
        try:
            await calls_of(self.services).cancel(digest)
        except StintError:
            return  # nobody waits for the answer, and the turn may have ended

    def digest_of(self, message_id: str | int | None) -> str:
        """Return a hash of a request's id and of what tells its client from others."""
        scope = self.request.scope
        client = [source_of(scope), self.request.headers.get("user-agent", ""), *place_of_request(scope)]
        return sha256(dumps([*client, type(message_id).__name__, message_id]).encode()).hexdigest()

    async def handle(self, message: JsonRpcMessage) -> Response:
        """Return the response of a request. Raises StintError."""
        if message.method == "tools/call":
            return await self.call(message)
        methods: dict[str, Callable[[JsonRpcMessage], Awaitable[ServedResult]]] = {
            "server/discover" if self.client.is_modern else "initialize": (
                self.discover if self.client.is_modern else self.initialize
            ),
            "ping": self.ping,
            "tools/list": self.list,
        }
        method = methods.get(message.method)
        if method is None:
            raise unknown_method(message, (*methods, "tools/call"))
        return answer_result(message.id, self.complete(await method(message)))

    def complete(self, result: ServedResult) -> ServedResult:
        """Add what a result of the newer revision has."""
        if self.client.is_modern:
            result.result_type = result.result_type or "complete"
            result.meta = {SERVER_KEY: SERVER}
            if isinstance(result, CacheableResult):
                result.ttl_ms, result.cache_scope = TTL_MILLISECONDS, "private"
        return result

    async def discover(self, _: JsonRpcMessage) -> ServedResult:
        return DiscoverResult(supported_versions=SUPPORTED, capabilities=CAPABILITIES, instructions=INSTRUCTIONS)

    async def initialize(self, message: JsonRpcMessage) -> ServedResult:
        return InitializeResult(
            protocol_version=negotiate(message.params.get("protocolVersion")),
            capabilities=CAPABILITIES,
            server_info=SERVER,
            instructions=INSTRUCTIONS,
        )

    async def ping(self, _: JsonRpcMessage) -> ServedResult:
        return ServedResult()

    async def list(self, message: JsonRpcMessage) -> ServedResult:
        return await self.tools.list(read_params(ListParams, message).cursor)

    async def call(self, message: JsonRpcMessage) -> Response:
        """Return the response of a call. Raises StintError."""
        params = read_params(CallParams, message)
        agent = await self.tools.find(params.name)
        stream = accepts_stream(self.request.headers.get("accept", ""))
        responder = CallResponder(
            self.request, self.services, self.client, agent.agent_id, self.digest_of(message.id), self.complete
        )
        return await responder.respond(message.id, params, stream=stream)


def read_params(kind: type[S], message: JsonRpcMessage) -> S:
    """Return the parameters of a message. Raises JsonRpcError that names all that is wrong with them."""
    try:
        return kind.model_validate(message.params)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        text = f"The params of {message.method} are not valid: {describe_faults(error)}"
        raise JsonRpcError(INVALID_PARAMS, text, param=f"params.{place}", message_id=message.id) from None
