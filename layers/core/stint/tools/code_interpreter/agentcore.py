"""Runs of code in Amazon Bedrock AgentCore, each in a session of its own."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from contextvars import copy_context
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import ReadTimeoutError as StreamTimeoutError

from stint.dataclasses import dataclass, field
from stint.domain.errors import ToolUnavailable
from stint.domain.limits import MAX_CODE_BYTES, MAX_CODE_FILES
from stint.metering import count_sandbox
from stint.tools.code_interpreter.files import is_file_name
from stint.tools.code_interpreter.runs import LONGEST_OUTPUT, RUN_SECONDS, RunFile, RunResult
from stint.tools.lambda_function.provider import THREADS

SESSION_SECONDS = 180
"""Seconds after which the service ends a session that was not stopped."""

LONGEST_FOLDER = 1_000
"""Maximum entries of the folder that are looked at."""

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

TIME_LIMIT = f"the time limit of {RUN_SECONDS} seconds"


def connect() -> Any:
    """Make a client. Calls are not retried, because they have effects."""
    config = Config(
        connect_timeout=5, read_timeout=RUN_SECONDS, max_pool_connections=THREADS, retries={"total_max_attempts": 1}
    )
    return boto3.session.Session().client("bedrock-agentcore", config=config)


@dataclass(slots=True)
class Output:
    """The result of a call: the beginning of its output, and the items of its content."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    truncated: bool = False
    items: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, result: Mapping[str, Any]) -> None:
        """Add an event of the stream."""
        details, content = result.get("structuredContent") or {}, result.get("content") or []
        texts = "\n".join(str(item.get("text") or "") for item in content if item.get("type") == "text")
        stated = "stdout" in details or "stderr" in details
        failed = bool(result.get("isError"))
        self.stdout = self.cut(self.stdout + (details.get("stdout") or "" if stated else "" if failed else texts))
        self.stderr = self.cut(self.stderr + (details.get("stderr") or "" if stated else texts if failed else ""))
        self.exit_code = int(details.get("exitCode") or failed or self.exit_code)
        self.items += content[: LONGEST_FOLDER - len(self.items)]

    def cut(self, text: str) -> str:
        encoded = text.encode(errors="replace")
        self.truncated = self.truncated or len(encoded) > LONGEST_OUTPUT
        return encoded[:LONGEST_OUTPUT].decode(errors="ignore")


class AgentCore:
    """A code interpreter of AgentCore. A session is a virtual machine, which is started for one run and stopped."""

    def __init__(self, interpreter_id: str, connect: Callable[[], Any] = connect) -> None:
        self._interpreter_id = interpreter_id
        self._connect = connect
        self._client: Any = None
        self._threads = ThreadPoolExecutor(THREADS, "agentcore")

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        """Run code; see the port."""
        loop, started = asyncio.get_running_loop(), time.monotonic()
        try:
            return await loop.run_in_executor(self._threads, copy_context().run, self._run, code, files)
        finally:
            count_sandbox(round((time.monotonic() - started) * 1000))

    def _run(self, code: str, files: Mapping[str, bytes]) -> RunResult:
        if self._client is None:
            self._client = self._connect()
        try:
            with self._session(self._client) as session:
                return session.run(code, files)
        except (ClientError, BotoCoreError, HTTPError, TimeoutError) as error:
            reason = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
            if reason in OF_THE_RUN:
                return RunResult(refused=f"The code could not be run ({reason}). Try again later.")
            raise ToolUnavailable(f"The code interpreter of AgentCore cannot be used ({reason})") from error

    @contextmanager
    def _session(self, client: Any) -> "Iterator[InterpreterSession]":
        """Start a session, and stop it. The service ends one whose stop fails."""
        started = client.start_code_interpreter_session(
            codeInterpreterIdentifier=self._interpreter_id, name="stint", sessionTimeoutSeconds=SESSION_SECONDS
        )
        try:
            yield InterpreterSession(client, self._interpreter_id, started["sessionId"])
        finally:
            with suppress(ClientError, BotoCoreError):
                client.stop_code_interpreter_session(
                    codeInterpreterIdentifier=self._interpreter_id, sessionId=started["sessionId"]
                )


@dataclass(frozen=True, slots=True)
class InterpreterSession:
    """A session of a code interpreter. Its methods raise the errors of botocore."""

    client: Any
    interpreter_id: str
    session_id: str

    def run(self, code: str, files: Mapping[str, bytes]) -> RunResult:
        """Write files, run code, and read the files that it wrote."""
        if files:
            content = [{"path": name, "blob": body} for name, body in files.items()]
            written = self.invoke("writeFiles", {"content": content})
            if written.exit_code:
                return RunResult(refused=f"The files could not be copied to the code: {written.stderr[:500]}")
        before = {name for name, _ in self.list_files()}
        try:
            output = self.invoke("executeCode", {"code": code, "language": "python", "clearContext": True})
        except (ReadTimeoutError, StreamTimeoutError, TimeoutError):
            return RunResult(exit_code=-1, ended_by=TIME_LIMIT)
        result = RunResult(
            stdout=output.stdout, stderr=output.stderr, exit_code=output.exit_code, truncated=output.truncated
        )
        self.collect_files(files, before - files.keys(), result)
        return result

    def invoke(self, name: str, arguments: Mapping[str, Any]) -> Output:
        """Call a tool of the session, and return what its stream brings."""
        answer = self.client.invoke_code_interpreter(
            codeInterpreterIdentifier=self.interpreter_id,
            sessionId=self.session_id,
            name=name,
            arguments=arguments,
        )
        output, deadline = Output(), time.monotonic() + RUN_SECONDS
        with closing(answer["stream"]) as stream:
            for event in stream:
                output.add(event.get("result") or {})
                if time.monotonic() > deadline:
                    raise TimeoutError
        return output

    def list_files(self) -> list[tuple[str, bool]]:
        """Return the names in the folder, and whether each is a folder itself."""
        links = self.invoke("listFiles", {"directoryPath": ""}).items
        named = [(str(link.get("name") or link.get("uri") or "").rpartition("/")[2], link) for link in links]
        return [(name, link.get("description") == "Directory") for name, link in named if name]

    def collect_files(self, given: Mapping[str, bytes], known: set[str], result: RunResult) -> None:
        """Add the files that the code wrote or changed. `known` were in the folder before."""
        listed = dict(self.list_files())
        room = MAX_CODE_BYTES
        for name, is_folder in sorted(listed.items()):
            if name.startswith(".") or name in known:
                continue
            content = None if is_folder or not is_file_name(name) else self.read_file(name)
            if content is not None and content == given.get(name):
                continue
            if content is None or len(content) > room or len(result.files) == MAX_CODE_FILES:
                result.omit(name)
                continue
            room -= len(content)
            result.files.append(RunFile.of(name, content))
        result.removed = sorted(given.keys() - listed.keys())

    def read_file(self, name: str) -> bytes | None:
        """Return the content of a file; None if it cannot be read."""
        read = self.invoke("readFiles", {"paths": [name]})
        return None if read.exit_code else content_of(read.items)


def content_of(items: Sequence[Mapping[str, Any]]) -> bytes | None:
    """Return the content in the resource of a result."""
    for item in items:
        resource = item.get("resource")
        if isinstance(resource, Mapping):
            blob, text = resource.get("blob"), resource.get("text")
            return bytes(blob) if blob is not None else str(text or "").encode(errors="replace")
    return None
