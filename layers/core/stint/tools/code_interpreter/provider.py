"""The code interpreter: Python code of a model, run by the stack's function `sandbox`."""

import asyncio
import base64
import binascii
import json
import mimetypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError
from pydantic import ValidationError

from stint.domain.errors import ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.domain.schema import Schema
from stint.tools.lambda_function.provider import OF_THE_CALL, connect, read_error
from stint.tools.outcomes import attachment, data_url, failure, timed_out, unknown_tool
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

RUN_SECONDS, TIMEOUT = 60, 100.0
"""Seconds of a run, and of the whole call, which includes the start of the function."""

LONGEST_CODE = 200_000

CODE_INTERPRETER = ToolSignature(
    name="code_interpreter",
    description=(
        "Run Python code. Each call is a new process with an empty folder: variables and files do not stay. The result "
        "is what the code prints; files that it writes into its folder are shown to the user. There is no network."
    ),
    parameters={
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The code to run. Print what you need to see."}},
        "required": ["code"],
    },
)


class RunFile(Schema):
    """A file that the code wrote, in base64."""

    name: str
    content: str


class RunResult(Schema):
    """The answer of the function `sandbox`. `refused` is the reason why it ran nothing."""

    refused: str | None = None
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    ended_by: str | None = None
    truncated: bool = False
    files: list[RunFile] = []
    omitted: list[str] = []


class CodeInterpreter:
    """The tool `code_interpreter`. A registration needs no args.

    `find_tenant` returns the tenant of the current code: Lambda runs each tenant's code in execution environments of
    its own.
    """

    def __init__(
        self,
        function: str,
        find_tenant: Callable[[], str],
        connect: "Callable[[float], LambdaClient]" = connect,
    ) -> None:
        self._function = function
        self._find_tenant = find_tenant
        self._connect = connect
        self._client: LambdaClient | None = None

    async def check(self, _toolgroup: Toolgroup, /) -> None:
        """Accept any args; see the port."""

    def known_tools(self, _toolgroup: Toolgroup, _provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool; see the port."""
        return [CODE_INTERPRETER]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool, without a request."""
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, _toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Run the argument `code`; see the port."""
        if invocation.tool_name != CODE_INTERPRETER.name:
            return unknown_tool(invocation.tool_name, [CODE_INTERPRETER.name])
        code = invocation.arguments.get("code")
        if not isinstance(code, str) or not code.strip():
            return failure("The argument code is missing. Send the Python code as a text.")
        if len(code.encode("utf-8", "replace")) > LONGEST_CODE:
            return failure(f"The code has more than {LONGEST_CODE} bytes. Send shorter code.")
        payload = json.dumps({"code": code, "seconds": RUN_SECONDS}).encode()
        return await asyncio.to_thread(self._call, payload, self._find_tenant())

    def _call(self, payload: bytes, tenant: str) -> ToolOutcome:
        if self._client is None:
            self._client = self._connect(TIMEOUT)
        try:
            answer = self._client.invoke(FunctionName=self._function, TenantId=tenant, Payload=payload)
            body = answer["Payload"].read()
        except ReadTimeoutError:
            return timed_out(TIMEOUT)
        except (ClientError, BotoCoreError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
            if code in OF_THE_CALL:
                return failure(f"The code could not be run ({code}). Try again later.")
            raise ToolUnavailable(f"The code interpreter's function cannot be invoked ({code})") from error
        return read_error(body) if answer.get("FunctionError") else read_run(body)


def read_run(body: bytes) -> ToolOutcome:
    """Convert the answer of the function for the model. Raises ToolUnavailable."""
    try:
        run = RunResult.model_validate_json(body)
        attachments = [describe(file) for file in run.files]
    except (ValidationError, binascii.Error):
        raise ToolUnavailable("The code interpreter's function returned an answer in another form") from None
    if run.refused is not None:
        return failure(run.refused)
    metadata: dict[str, Any] = {ATTACHMENTS: attachments} if attachments else {}
    return ToolOutcome(content=write_result(run), metadata=metadata, error=run.ended_by is not None)


def describe(file: RunFile) -> Mapping[str, Any]:
    """Return a file as an attachment."""
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return attachment(data_url(base64.b64decode(file.content, validate=True), media_type), media_type)


def write_result(run: RunResult) -> str:
    """Return a result in the form of Llama Stack's code interpreter, with the names of files."""
    status = "completed" if run.exit_code == 0 and run.ended_by is None else "error"
    parts = [status]
    parts += [f"[{name}]\n{text}\n[/{name}]" for name, text in (("stdout", run.stdout), ("stderr", run.stderr)) if text]
    if run.ended_by is not None:
        parts.append(f"The run was ended by {run.ended_by}.")
    elif run.exit_code:
        parts.append(f"The exit code is {run.exit_code}.")
    if run.truncated:
        parts.append("The output is longer than allowed: only its beginning is shown.")
    if run.files:
        parts.append(f"Files for the user: {', '.join(file.name for file in run.files)}.")
    if run.omitted:
        parts.append(f"Not shown, because they are no plain files or too large: {', '.join(run.omitted)}.")
    return "\n".join(parts)
