"""Runs of code in the stack's function `sandbox`.

Lambda isolates the code: `TenantId` keeps each tenant's code in execution environments that no other tenant's code
uses. Untrusted code may have influenced the result, so it is validated like any answer from outside.

The price of a run is the function's time. The caller pays for it in every case in which the function may have run:
until it has answered, the longest possible time counts; when it has, the time that was measured; if it was not reached,
none.
"""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, ReadTimeoutError
from pydantic import ValidationError

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.errors import ToolUnavailable
from stint.metering import count_sandbox
from stint.tools.code_interpreter.runs import LEAST_SECONDS, NO_TIME, RunResult, seconds_left
from stint.tools.lambda_function.provider import OF_THE_CALL, THREADS, connect, read_error
from stint.tools.outcomes import timed_out

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

TIMEOUT = 100.0
"""Seconds of a whole call, which includes the start of the function."""

MEMORY_MB = 1024
"""Memory of the function, as in the template."""


@dataclass(slots=True)
class InvocationTime:
    """The time of an invocation; None if there was none."""

    milliseconds: int | None = None


class Sandbox:
    """The function. `find_tenant` returns the tenant of the current code.

    Lambda runs each tenant's code in execution environments of its own.
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
        # Separate threads: code that runs long must not use up the event loop's few.
        self._threads = ThreadPoolExecutor(THREADS, "sandbox")

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        """Run code; see the port."""
        if (seconds := seconds_left()) < LEAST_SECONDS:
            return RunResult(refused=NO_TIME)
        event: dict[str, object] = {"code": code, "seconds": seconds}
        if files:
            event["files"] = [
                {"name": name, "content": base64.b64encode(content).decode()} for name, content in files.items()
            ]
        spent = InvocationTime()
        try:
            payload, tenant = json.dumps(event).encode(), self._find_tenant()
            call = partial(self._call, payload, tenant, spent, seconds)
            return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)
        finally:
            if spent.milliseconds is not None:
                count_sandbox(spent.milliseconds, MEMORY_MB)

    def _call(self, payload: bytes, tenant: str, spent: InvocationTime, seconds: float) -> RunResult:
        """Invoke the function. `spent` has the longest time of a run until the function has answered."""
        if self._client is None:
            self._client = self._connect(TIMEOUT)
        started, spent.milliseconds = time.monotonic(), round(seconds * 1000)
        try:
            answer = self._client.invoke(FunctionName=self._function, TenantId=tenant, Payload=payload)
            body = answer["Payload"].read()
            spent.milliseconds = round((time.monotonic() - started) * 1000)
        except ReadTimeoutError:
            return RunResult(refused=text_of(timed_out(TIMEOUT).content))
        except (ClientError, BotoCoreError) as error:
            if not isinstance(error, HTTPClientError):  # the function was not reached, or refused the call
                spent.milliseconds = None
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
            if code in OF_THE_CALL:
                return RunResult(refused=f"The code could not be run ({code}). Try again later.")
            raise ToolUnavailable(f"The code interpreter's function cannot be invoked ({code})") from error
        if answer.get("FunctionError"):
            return RunResult(refused=text_of(read_error(body).content))
        try:
            return RunResult.model_validate_json(body)
        except ValidationError:
            raise ToolUnavailable("The code interpreter's function returned an answer in another form") from None
