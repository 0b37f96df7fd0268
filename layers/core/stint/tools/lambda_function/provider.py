"""Lambda functions as tools: whatever this system's role may invoke."""

import asyncio
import base64
import functools
import json
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError
from pydantic import Field

from stint.domain.content import Content
from stint.domain.errors import InvalidRequest, ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.domain.json_text import parse_json
from stint.tools.definitions import ToolDefinition, read_definitions
from stint.tools.outcomes import failure, timed_out, unknown_tool, write_json
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

THREADS = 16
OF_THE_CALL = frozenset({"TooManyRequestsException", "RequestTooLargeException", "InvalidRequestContentException"})


class FunctionDefinition(ToolDefinition):
    """A tool that is a Lambda function: its name, partial or full ARN, with or without a version or an alias."""

    function: str = Field(pattern=r"^[A-Za-z0-9:_$-]{1,256}$")


def connect(timeout: float) -> "LambdaClient":
    """Make a client that waits `timeout` seconds for an answer. An invocation is not repeated: it may have effects."""
    config = Config(
        connect_timeout=5, read_timeout=timeout, max_pool_connections=THREADS, retries={"total_max_attempts": 1}
    )
    return boto3.session.Session().client("lambda", config=config)


class LambdaFunctions:
    """Runs tools that are Lambda functions, invoked with this system's own role. `own` are the names of its own
    functions, which are refused. A registration's args define the tools:

        {"tools": [{
            "name": "get_order",
            "description": "Look up an order.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            "function": "arn:aws:lambda:eu-west-1:123456789012:function:get-order:live",
            "timeout": 20
        }]}

    The event is the arguments and nothing else. The client context bears, under `custom`, `idempotency_key` (the
    id of the call), `call_key`, `tool_name` and `toolgroup_id`; in Python,
    `context.client_context.custom["idempotency_key"]`.

    A text that the function returns is the result as it is, null is an empty one, anything else is JSON. An object of
    the form `{"content": ..., "attachments": [{"content": {"uri": ...}, "mime_type": ...}]}` is the result `content`
    with attachments for the user. A function that fails is an error with its type and message, without its trace.
    """

    def __init__(self, own: Iterable[str] = (), connect: "Callable[[float], LambdaClient]" = connect) -> None:
        self._own = frozenset(name.strip().casefold() for name in own if name.strip())
        self._connect = connect
        self._clients: dict[float, LambdaClient] = {}
        self._lock = threading.Lock()
        # Threads of its own: a slow function must not keep the store waiting for one of the loop's few.
        self._threads = ThreadPoolExecutor(THREADS, "lambda-tool")

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check the definitions; see the port."""
        for tool in read_definitions(toolgroup, FunctionDefinition).values():
            self._refuse_own(toolgroup, tool)

    def known_tools(self, toolgroup: Toolgroup, _provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the tools that the registration defines; see the port."""
        return [tool.signature for tool in read_definitions(toolgroup, FunctionDefinition).values()]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the tools that the registration defines; asks nobody. See the port."""
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Invoke the function and wait for its answer; see the port."""
        tools = read_definitions(toolgroup, FunctionDefinition)
        tool = tools.get(invocation.tool_name)
        if tool is None:
            return unknown_tool(invocation.tool_name, list(tools))
        self._refuse_own(toolgroup, tool)
        custom = {
            "idempotency_key": invocation.call_id,
            "call_key": invocation.key,
            "tool_name": tool.name,
            "toolgroup_id": toolgroup.toolgroup_id,
        }
        call = functools.partial(self._call, tool, json.dumps(invocation.arguments).encode(), custom)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _refuse_own(self, toolgroup: Toolgroup, tool: FunctionDefinition) -> None:
        """Raise InvalidRequest for a function of this stack, by name or ARN: it would act for every caller.

        Any part of the ARN may be the name, so no notation that Lambda reads otherwise than this code gets through.
        """
        if self._own.intersection(tool.function.casefold().split(":")):
            raise InvalidRequest(
                f"The tool {tool.name!r} of the toolgroup {toolgroup.toolgroup_id!r} names the function "
                f"{tool.function!r}, which belongs to this Stint stack: name a function of your own.",
                code="function_not_allowed",
                param="args",
            )

    def _call(self, tool: FunctionDefinition, payload: bytes, custom: dict[str, str]) -> ToolOutcome:
        context = base64.b64encode(json.dumps({"custom": custom}).encode()).decode()
        try:
            answer = self._client(tool.timeout).invoke(
                FunctionName=tool.function, InvocationType="RequestResponse", ClientContext=context, Payload=payload
            )
            body = answer["Payload"].read()
        except ReadTimeoutError:
            return timed_out(tool.timeout)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in OF_THE_CALL:
                return failure(f"The function could not be invoked: {error.response['Error'].get('Message', code)}")
            raise ToolUnavailable(f"The function of the tool {tool.name!r} cannot be invoked ({code})") from error
        except BotoCoreError as error:
            raise ToolUnavailable(
                f"The function of the tool {tool.name!r} cannot be invoked ({type(error).__name__})"
            ) from error
        return read_error(body) if answer.get("FunctionError") else read_result(body)

    def _client(self, timeout: float) -> "LambdaClient":
        with self._lock:
            if timeout not in self._clients:
                self._clients[timeout] = self._connect(timeout)
            return self._clients[timeout]


def read_error(body: bytes) -> ToolOutcome:
    """Tell how a function failed, in the words that Lambda passes on (lambda/latest/dg/python-exceptions.html)."""
    try:
        error = json.loads(body)
        return failure(f"The function failed: {error.get('errorType', 'Error')}: {error.get('errorMessage', '')}")
    except (ValueError, AttributeError):
        return failure("The function failed and did not say why.")


def read_result(body: bytes) -> ToolOutcome:
    """Make an outcome of what a function returned."""
    text = body.decode("utf-8", "replace")
    try:
        value = parse_json(text)
    except ValueError:
        return ToolOutcome(content=text)
    if isinstance(value, dict) and set(value) == {"content", "attachments"} and is_attached(value["attachments"]):
        return ToolOutcome(content=write_content(value["content"]), metadata={ATTACHMENTS: value["attachments"]})
    return ToolOutcome(content=write_content(value))


def write_content(value: Any) -> Content:
    if value is None:
        return ""
    return value if isinstance(value, str) else write_json(value)


def is_attached(value: Any) -> bool:
    """Tell whether a value is a list of attachments by URL."""
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("mime_type"), str)
        and isinstance(entry.get("content"), dict)
        and isinstance(entry["content"].get("uri"), str)
        for entry in value
    )
