"""Lambda functions as tools. This system's role must be allowed to invoke them.

The function gets the model's arguments as its event, and nothing else: not the caller's keys, and no field that a model
could not have written. The keys of the call are in the client context, where a model cannot write.

An invocation is synchronous and is never repeated by the client: the function may have had its effect. `own` has the
functions of this stack, and they are refused: they would act for every caller.

    TooManyRequests and the like    about this call: the model reads the message
    other errors of Lambda          about the registration or the role: ToolUnavailable
    an error of the function        an outcome, with its type and message, without its trace
    no answer in time               an outcome: the function may still be running

boto3 blocks, so calls have threads of their own, and a client for each timeout, which is a setting of the client.
"""

import asyncio
import base64
import functools
import json
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
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
from stint.tools.depth_headers import next_depth
from stint.tools.outcomes import failure, timed_out, unknown_tool, write_json
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

THREADS = 64
"""Calls at once, for all turns of a process. A thread is started when no other one is free."""

OF_THE_CALL = frozenset({"TooManyRequestsException", "RequestTooLargeException", "InvalidRequestContentException"})
ADVICE = {
    "ResourceNotFoundException": ": there is no such function. Check its name and region. On this machine, name the"
    " template that has it: make run TOOLS=template.yaml",
    "AccessDeniedException": ": this stack may not call it. Add its ARN to the parameter ToolFunctionArns",
}
"""The end of the message, by the code of Lambda's error."""


class FunctionDefinition(ToolDefinition):
    """A tool that is a Lambda function, by its name, partial or full ARN, with or without a version or an alias."""

    function: str = Field(pattern=r"^[A-Za-z0-9:_$-]{1,256}$")


def connect(timeout: float) -> "LambdaClient":
    """Make a client that waits `timeout` seconds for an answer. Invocations are not retried: they have effects."""
    config = Config(
        connect_timeout=5, read_timeout=timeout, max_pool_connections=THREADS, retries={"total_max_attempts": 1}
    )
    return boto3.session.Session().client("lambda", config=config)


class LambdaFunctions:
    """Runs tools that are Lambda functions, with this system's own role. `own` has the names of this stack's functions,
    which are refused. A registration's args define the tools:

        {"tools": [{
            "name": "get_order",
            "description": "Look up an order.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            "function": "arn:aws:lambda:eu-west-1:123456789012:function:get-order:live",
            "timeout": 20
        }]}

    The event contains only the arguments. The client context has, under `custom`, `idempotency_key` (unique to the
    call), `tool_call_id` (the model's id), `tool_name`, `toolgroup_id` and `call_depth` (`domain/call_depth.py`), which
    are texts; in Python, `context.client_context.custom["idempotency_key"]`.

    A returned text is the result, null is an empty result, anything else becomes JSON. An object of the form
    `{"content": ..., "attachments": [{"content": {"uri": ...}, "mime_type": ...}]}` is the result `content` with
    attachments for the user. A failed function is an error with its type and message, without its trace.
    """

    def __init__(self, own: Iterable[str] = (), connect: "Callable[[float], LambdaClient]" = connect) -> None:
        self._own = frozenset(name.strip().casefold() for name in own if name.strip())
        self._connect = connect
        self._clients: dict[float, LambdaClient] = {}
        self._lock = threading.Lock()
        # Separate threads: slow functions must not use up the event loop's few, which the store needs.
        self._threads = ThreadPoolExecutor(THREADS, "lambda-tool")

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check the definitions; see the port."""
        for tool in read_definitions(toolgroup, FunctionDefinition).values():
            self._refuse_own(toolgroup, tool)

    def known_tools(self, toolgroup: Toolgroup, _provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the tools that the registration defines; see the port."""
        return [tool.signature for tool in read_definitions(toolgroup, FunctionDefinition).values()]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the tools that the registration defines, without a request; see the port."""
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Invoke the function and wait for its answer; see the port."""
        tools = read_definitions(toolgroup, FunctionDefinition)
        tool = tools.get(invocation.tool_name)
        if tool is None:
            return unknown_tool(invocation.tool_name, list(tools))
        self._refuse_own(toolgroup, tool)
        custom = {
            "idempotency_key": invocation.idempotency_key,
            "tool_call_id": invocation.call_id,
            "tool_name": tool.name,
            "toolgroup_id": toolgroup.toolgroup_id,
            "call_depth": str(next_depth()),
        }
        call = functools.partial(self._call, tool, json.dumps(invocation.arguments).encode(), custom)
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)

    def _refuse_own(self, toolgroup: Toolgroup, tool: FunctionDefinition) -> None:
        """Raise InvalidRequest for a function of this stack, which would act for every caller, by name or ARN.

        Every part of the ARN is compared, in case Lambda parses a notation differently.
        """
        if self._own.intersection(tool.function.casefold().split(":")):
            raise InvalidRequest(
                f"The tool {tool.name!r} of the toolgroup {toolgroup.toolgroup_id!r} names the function "
                f"{tool.function!r}, which belongs to this Stint stack. Use your own function.",
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
            raise ToolUnavailable(
                f"The function of the tool {tool.name!r} cannot be invoked ({code}){ADVICE.get(code, '')}"
            ) from error
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
    """Return the error of a failed function (lambda/latest/dg/python-exceptions.html)."""
    try:
        error = json.loads(body)
        return failure(f"The function failed: {error.get('errorType', 'Error')}: {error.get('errorMessage', '')}")
    except (ValueError, AttributeError):
        return failure("The function failed without an error message.")


def read_result(body: bytes) -> ToolOutcome:
    """Convert the value that a function returned to an outcome."""
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
    """Return whether a value is a list of attachments by URL."""
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("mime_type"), str)
        and isinstance(entry.get("content"), dict)
        and isinstance(entry["content"].get("uri"), str)
        for entry in value
    )
