"""Runs of code in Amazon Bedrock AgentCore, each in a session of its own.

A session is a virtual machine that costs money until it is stopped. So the rule is that whatever happens, a session
that was started is stopped, and a run waits for this only a short time:

    starting, the run is cancelled    a callback stops the session when the start has succeeded
    running, time runs out            the stop is sent from other threads: those of runs may all be blocked
    the stop fails                    the service ends the session after SESSION_SECONDS

boto3 blocks, so each call has a thread. A thread cannot be cancelled: the session's `over` makes it leave the stream at
the next event, and the stop ends the stream. What was spent is counted by the clock, also for a run that failed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import ReadTimeoutError as StreamTimeoutError

from stint.domain.errors import ToolUnavailable
from stint.metering import count_sandbox
from stint.tools.code_interpreter.interpreter_session import InterpreterSession
from stint.tools.code_interpreter.runs import (
    LEAST_SECONDS,
    MARGIN_SECONDS,
    NO_TIME,
    RUN_SECONDS,
    RunResult,
    seconds_left,
)
from stint.tools.lambda_function.provider import THREADS

SESSION_SECONDS = 180
"""Seconds after which the service ends a session that was not stopped."""

OF_THE_RUN = frozenset(
    {
        "ConflictException",
        "InternalServerException",
        "ServiceQuotaExceededException",
        "ThrottlingException",
        "ConnectTimeoutError",
        "EndpointConnectionError",
        "ConnectionClosedError",
        "ProtocolError",
        "ReadTimeoutError",
        "TimeoutError",
        "ResponseStreamingError",
        "conflictException",
        "internalServerException",
        "serviceQuotaExceededException",
        "throttlingException",
    }
)
"""Errors after which another run may succeed. Those with a small letter come in a stream."""

STOP_SECONDS = MARGIN_SECONDS - 0.5
"""Maximum seconds that a run awaits the stop of its session, which goes on without it."""

T = TypeVar("T")


def connect() -> Any:
    """Make a client. Calls are not retried, because they have effects."""
    config = Config(
        connect_timeout=5, read_timeout=RUN_SECONDS, max_pool_connections=2 * THREADS, retries={"total_max_attempts": 1}
    )
    return boto3.session.Session().client("bedrock-agentcore", config=config)


class AgentCore:
    """A code interpreter of AgentCore. A session is a virtual machine, which is started for one run and stopped."""

    def __init__(self, interpreter_id: str, connect: Callable[[], Any] = connect) -> None:
        self._interpreter_id = interpreter_id
        self._connect = connect
        self._client: Any = None
        self._threads = ThreadPoolExecutor(THREADS, "agentcore")
        self._stops = ThreadPoolExecutor(THREADS, "agentcore-stop")  # a run that blocks its thread has to be stopped

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        """Run code; see the port. The session is stopped with its run, however that ends."""
        if seconds_left() < LEAST_SECONDS:
            return RunResult(refused=NO_TIME)
        started = time.monotonic()
        try:
            async with self._session(files) as session:
                return await self._run(session, code)
        except (ClientError, BotoCoreError, HTTPError, TimeoutError) as error:
            reason = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
            if reason in OF_THE_RUN:
                return RunResult(refused=f"The code could not be run ({reason}). Try again later.")
            raise ToolUnavailable(f"The code interpreter of AgentCore cannot be used ({reason})") from error
        finally:
            count_sandbox(round((time.monotonic() - started) * 1000))

    async def _run(self, session: InterpreterSession, code: str) -> RunResult:
        refusal = await self._call(session.prepare)
        if refusal is not None:
            return refusal
        if (seconds := seconds_left()) < LEAST_SECONDS:
            return RunResult(refused=NO_TIME)
        try:
            result = await self._call(partial(session.execute, code))
        except (ReadTimeoutError, StreamTimeoutError, TimeoutError):
            return RunResult(exit_code=-1, ended_by=f"the time limit of {seconds:.0f} seconds")
        return await self._call(partial(session.collect_files, result))

    async def _call(self, work: Callable[[], T]) -> T:
        """Run work in a thread. Raises TimeoutError after the seconds of a run, or before the end of its request.

        The thread itself ends when the session is stopped, or after the client's read timeout.
        """
        async with asyncio.timeout(seconds_left()):
            return await asyncio.wrap_future(self._threads.submit(copy_context().run, work))

    @asynccontextmanager
    async def _session(self, files: Mapping[str, bytes]) -> AsyncIterator[InterpreterSession]:
        """Start a session, and stop it. The service ends one whose stop fails."""
        starting = self._threads.submit(copy_context().run, self._start, files)
        try:
            async with asyncio.timeout(seconds_left()):
                # Shielded: a start that was sent has its effect, and its result is needed for the stop.
                session = await asyncio.shield(asyncio.wrap_future(starting))
        except BaseException:
            starting.cancel()
            starting.add_done_callback(self._stop_started)
            raise
        try:
            yield session
        finally:
            session.over.set()
            stopping = self._stops.submit(self._stop, session)
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await asyncio.shield(asyncio.wrap_future(stopping))

    def _start(self, files: Mapping[str, bytes]) -> InterpreterSession:
        if self._client is None:
            self._client = self._connect()
        started = self._client.start_code_interpreter_session(
            codeInterpreterIdentifier=self._interpreter_id, name="stint", sessionTimeoutSeconds=SESSION_SECONDS
        )
        return InterpreterSession(self._client, self._interpreter_id, started["sessionId"], files)

    def _stop(self, session: InterpreterSession) -> None:
        with suppress(ClientError, BotoCoreError):
            self._client.stop_code_interpreter_session(
                codeInterpreterIdentifier=self._interpreter_id, sessionId=session.session_id
            )

    def _stop_started(self, starting: Future[InterpreterSession]) -> None:
        """Stop a session that nobody awaits any more, if it was started."""
        if not starting.cancelled() and starting.exception() is None:
            self._stop(starting.result())
