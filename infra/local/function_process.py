"""One function process, run as in Lambda: with its own Runtime API, environment and timeout.

    state       begins with                           ends with
    init        the start of the process              its first request for an event (`ready`), or a timeout
    waiting     a request for an event                an event, or the death of the process
    running     an event                              the next request for an event, or the function's timeout
    dead        an exit, a timeout, or an init error  -

An invocation lasts until the next request for an event, not until its response: code may work after its last byte, and
Lambda bills that and stops it at the timeout, too.

A process that is killed from outside while it waits is a race: the event may have been sent and not read. If it was not
read, `serve` returns False, and the event goes to another process. If it was read, the invocation failed, because it
may have had effects.
"""

import asyncio
import contextlib
import os
import signal
import uuid
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from infra.local.delivery import Delivery
from infra.local.guardian import Guardian
from infra.local.invocation import FunctionError, Invocation, Retries
from infra.local.runtime_api import RuntimeApi

Log = Callable[[str, str], None]

# https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html: the init phase has 10 seconds, or the
# function's timeout if it is repeated for the first invocation.
INIT_TIMEOUT = 10.0
# The last lines of a killed process arrive at once. Only a descendant in another session could hold the pipe open.
_OUTPUT_TIMEOUT = 1.0

_REGION = "us-east-1"
_ACCOUNT = "000000000000"


@dataclass(frozen=True)
class FunctionSpec:
    """The specification of a function."""

    name: str
    handler: str
    code: Path
    """The folder that becomes LAMBDA_TASK_ROOT."""
    layers: tuple[Path, ...]
    """Folders whose contents go into /opt."""
    environment: Mapping[str, str]
    timeout: float
    """Seconds."""
    memory: int
    """MB."""
    wrapper: str | None
    """AWS_LAMBDA_EXEC_WRAPPER, for example `/opt/stint-runtime`. Without one, the function runs on AWS's own
    `awslambdaric`."""
    python: Path
    """The interpreter that runs it."""
    retries: Retries = field(default_factory=Retries)
    """Those of asynchronous invocations."""
    at_once: int = 1
    """Invocations that a process runs at a time, more than one on Managed Instances only."""
    reloads: bool = False
    """A change of a file in `code` starts a new process for the next invocation."""

    @property
    def arn(self) -> str:
        region = self.environment.get("AWS_REGION", _REGION)
        return f"arn:aws:lambda:{region}:{_ACCOUNT}:function:{self.name}"


@dataclass(frozen=True)
class Root:
    """The folders that replace /opt and /var/runtime."""

    opt: Path
    runtime: Path


class FunctionProcess:
    """A started process; `serve` runs one invocation at a time."""

    def __init__(self, spec: FunctionSpec, api: RuntimeApi, process: Process, log: Log, guardian: Guardian) -> None:
        self._spec = spec
        self._api = api
        self._process = process
        self._guardian = guardian
        self._invocation: Invocation | None = None
        guardian.watch(process.pid)
        self._output = asyncio.create_task(self._pass_on(log))
        self._exited = asyncio.create_task(self._watch())

    @classmethod
    async def start(cls, spec: FunctionSpec, root: Root, log: Log, guardian: Guardian) -> Self:
        """Start the process. It is ready once it requests its first event."""
        api = RuntimeApi(at_once=spec.at_once)
        address = await api.start()
        try:
            process = await asyncio.create_subprocess_exec(
                *_command(spec, root),
                env=_environment(spec, root, address),
                cwd=spec.code,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                # Its own process group, so that descendants can be killed with it, and Ctrl-C does not reach it.
                start_new_session=True,
            )
        except BaseException:
            await api.stop()
            raise
        return cls(spec, api, process, log, guardian)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the process can take another event."""
        return not self._exited.done() and self._process.returncode is None

    @property
    def is_finishing(self) -> bool:
        """Return whether the process has sent its response but has not yet requested the next event."""
        return self._invocation is not None and self._invocation.ended and self.alive

    async def serve(self, invocation: Invocation) -> bool:
        """Run one invocation to its end, including work after the last byte. A process that fails is killed.

        Returns False if a warm process died while it waited and never read the event. Lambda then starts another
        process, and the caller must do the same.
        """
        warm, self._invocation = self._invocation is not None, invocation
        if not self._api.ready.is_set():
            limit = max(INIT_TIMEOUT, self._spec.timeout)
            if not await self.wait_until_ready(limit):
                if warm:
                    await self.stop()
                    return False
                await self.fail_init(invocation, limit)
                return True
        delivery = self._api.dispatch(invocation, timeout=self._spec.timeout, arn=self._spec.arn)
        if not await self.wait_until_ready(self._spec.timeout):
            if warm and await self._died_waiting(delivery):
                await self.stop()
                return False
            await self._fail(invocation, timed_out(invocation, self._spec.timeout))
        return True

    async def fail_init(self, invocation: Invocation, seconds: float) -> None:
        """End an invocation whose process has not requested an event within these seconds, and kill the process."""
        await self._fail(invocation, self._api.init_error or timed_out(invocation, seconds))

    async def stop(self) -> None:
        """Kill the process and its descendants."""
        if not self._exited.done():
            self._kill()
        # asyncio.wait, because the caller's cancellation must not cancel the watch.
        await asyncio.wait({self._exited})
        await asyncio.wait({self._output}, timeout=_OUTPUT_TIMEOUT)
        self._output.cancel()
        await self._api.stop()

    async def wait_until_ready(self, seconds: float) -> bool:
        """Wait until the process requests an event, and return whether it did so in time."""
        ready = asyncio.create_task(self._api.ready.wait())
        try:
            await asyncio.wait({ready, self._exited}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return ready.done() and self.alive
        finally:
            ready.cancel()

    async def _died_waiting(self, delivery: Delivery) -> bool:
        if self._exited.done():
            await self._api.wait_until_left(_OUTPUT_TIMEOUT)
        return delivery.unread

    async def _fail(self, invocation: Invocation, error: FunctionError) -> None:
        """End the invocation with the exit error if the process has ended, else with the given error."""
        invocation.finish(self._exit_error(invocation) if self._exited.done() else error)
        await self.stop()

    def _exit_error(self, invocation: Invocation) -> FunctionError:
        return self._api.init_error or _exit_error(invocation, self._exited.result())

    async def _watch(self) -> int:
        code = await self._process.wait()
        self._kill()
        self._guardian.forget(self._process.pid)
        return code

    def _kill(self) -> None:
        """Kill the process group, including descendants that outlive the process."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def _pass_on(self, log: Log) -> None:
        """Log the output line by line."""
        rest = b""
        while self._process.stdout and (data := await self._process.stdout.read(64 * 1024)):
            *lines, rest = (rest + data).split(b"\n")
            self._log_lines(log, lines)
        if rest:
            self._log_lines(log, [rest])

    def _log_lines(self, log: Log, lines: Sequence[bytes]) -> None:
        """Log lines of output. AWS's runtime writes a traceback as one, in the form that CloudWatch displays."""
        for line in lines:
            for part in line.rstrip(b"\r").decode("utf-8", "replace").split("\r"):
                log(self._spec.name, part.replace("\N{NO-BREAK SPACE}", " "))


def timed_out(invocation: Invocation, seconds: float) -> FunctionError:
    """Return the error of an invocation that took too long."""
    message = f"RequestId: {invocation.request_id} Error: Task timed out after {seconds:.2f} seconds"
    return FunctionError.of("Sandbox.Timedout", message)


def _exit_error(invocation: Invocation, code: int) -> FunctionError:
    how = f"signal: {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    message = f"RequestId: {invocation.request_id} Error: Runtime exited with error: {how}"
    return FunctionError.of("Runtime.ExitError", message)


def _command(spec: FunctionSpec, root: Root) -> list[str]:
    managed = [str(spec.python.absolute()), "-m", "awslambdaric", spec.handler]
    if spec.wrapper is None:
        return managed
    wrapper = Path(spec.wrapper)
    for prefix, folder in (("/opt", root.opt), ("/var/task", spec.code.absolute())):
        if wrapper.is_relative_to(prefix):
            wrapper = folder / wrapper.relative_to(prefix)
    return [str(wrapper), *managed]


def _environment(spec: FunctionSpec, root: Root, address: str) -> dict[str, str]:
    """Return the environment that Lambda provides (lambda/latest/dg/configuration-envvars.html).

    The environment of this process is not included.
    """
    region = spec.environment.get("AWS_REGION", _REGION)
    defaults = {
        "PATH": f"/usr/local/bin:/usr/bin:/bin:{root.opt}/bin",
        "LANG": "C.UTF-8",
        "TZ": ":UTC",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
    }
    reserved = {
        "_HANDLER": spec.handler,
        "AWS_LAMBDA_RUNTIME_API": address,
        "AWS_LAMBDA_FUNCTION_NAME": spec.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(spec.memory),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{spec.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"local/[$LATEST]{uuid.uuid4().hex}",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{spec.python.name}",
        "LAMBDA_TASK_ROOT": str(spec.code.absolute()),
        "LAMBDA_RUNTIME_DIR": str(root.runtime),
    }
    if spec.at_once > 1:
        reserved["AWS_LAMBDA_MAX_CONCURRENCY"] = str(spec.at_once)
    environment = {**defaults, **spec.environment, **reserved}
    if spec.wrapper is None:
        environment["PYTHONPATH"] = _managed_path(spec, root)
    return environment


def _managed_path(spec: FunctionSpec, root: Root) -> str:
    """Return the sys.path of the managed runtime."""
    site_packages = sorted((root.opt / "python" / "lib").glob("python*/site-packages"))
    return os.pathsep.join(map(str, [spec.code.absolute(), *site_packages, root.opt / "python", root.runtime]))
