"""`make run`: run the local cloud until Ctrl-C.

A port or a state folder that is in use is found before anything is started. The first signal stops in order, so that
the engine saves its state, and the second one at once. If the engine dies, the cloud stops: every request would fail,
and the next start begins with what the engine saved last, half a minute before at most.
"""

import asyncio
import contextlib
import errno
import json
import os
import shlex
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from infra.local.cloud import Cloud, Plan, running_cloud, serving_front
from infra.local.engine import ROOT, RunningEngine, require_engine
from infra.local.environment import find_misspelled, model_note
from infra.local.errors import LocalCloudError
from infra.local.event_sources import serving_sources
from infra.local.server import listen
from infra.local.state import State
from infra.local.tool_functions import describe_tools

WATCH_SECONDS = 2.0
PORT = 8321
STATE = Path(".stint")
"""The port and the state folder of `make run` without variables."""
CONSOLE = ROOT / "functions" / "console" / "static" / "index.html"


async def run(plan: Plan, port: int, folder: Path, *, fresh: bool, began: float) -> None:
    """Serve until SIGINT or SIGTERM. A second signal ends the process at once. `began` is a time.monotonic().

    Raises LocalCloudError, before anything is started, if the port or the state folder is in use.
    """
    require_engine()
    stop_on_signals()
    await State(folder).wait_for_engine()
    elsewhere = State(folder, other=make_command(Path("other"), port))
    with contextlib.closing(listen_on(port, folder)) as listener, elsewhere as state:
        if fresh and state.clear():
            print_line(f"FRESH=1: the data in {folder} was deleted")
        with contextlib.closing(Logs(state.logs)) as logs, contextlib.suppress(asyncio.CancelledError):
            async with (
                running_cloud(plan, state.engine, logs, state.lock) as cloud,
                serving_sources(cloud, logs, plan.visibility),
                serving_front(cloud, listener, logs) as url,
            ):
                state.publish(url, cloud.engine)
                access = await describe_access(plan, cloud, folder)
                lines = describe_tools(plan.tools, cloud.tools)
                print_line(welcome(cloud, url, folder, time.monotonic() - began, access=access, tools=lines))
                await watch(cloud.engine, state)
        print_line(f"Stopped. The state is kept in {folder}.")


async def watch(engine: RunningEngine, state: State) -> None:
    """Wait until the engine has died, then raise LocalCloudError: nothing works without it."""
    place = urlsplit(engine.endpoint)
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            # Only a connection: a busy engine answers requests late, but the kernel accepts connections for it.
            _, writer = await asyncio.open_connection(place.hostname, place.port)
        except OSError:
            saved = state.saved_at()
            since = saved.astimezone().strftime("%H:%M:%S") if saved else "its start"
            raise LocalCloudError(
                f"the local AWS engine has died: what was stored since {since} is lost, the rest is in"
                f" {state.folder}: start again"
            ) from None
        writer.close()


def stop_on_signals() -> None:
    """Cancel the current task at the first signal, and end this process and its children at the second."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop(number: int) -> None:
        for each in signals:
            # `os._exit` runs no cleanup. The guardian and the engine notice the end of this process themselves.
            loop.add_signal_handler(each, os._exit, 128 + number)
        print_line("\nStopping (Ctrl-C again stops at once) ...")
        if task:
            task.cancel()

    for each in signals:
        loop.add_signal_handler(each, stop, each)


def make_command(folder: Path, port: int, *, fresh: bool = False) -> str:
    """Return the command that starts a cloud with this state folder and port; those of the Makefile are left out."""
    variables = [f"STATE={shlex.quote(str(folder))}"] if folder != STATE else []
    variables += [f"PORT={port}"] if port not in (0, PORT) else []
    return " ".join((*variables, *(["FRESH=1"] if fresh else []), "make run"))


def listen_on(port: int, folder: Path) -> socket.socket:
    try:
        return listen(port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise LocalCloudError(f"cannot listen on 127.0.0.1:{port}: {error.strerror}") from error
        raise LocalCloudError(
            f"port {port} is in use: stop the process that uses it, or use another port:"
            f" {make_command(folder, port + 1)}"
        ) from error


@dataclass(frozen=True)
class Access:
    """The lines about keys in the welcome, and the header of its example."""

    lines: tuple[str, ...] = ()
    header: tuple[str, ...] = ()


async def describe_access(plan: Plan, cloud: Cloud, folder: Path) -> Access:
    """Create the first key, if callers need one and there is none."""
    if not plan.authorize:
        return Access()
    from infra.local.first_key import create_first_key  # noqa: PLC0415 - imports the product, only with AUTH=on

    key = await create_first_key(cloud.engine)
    create = f"make cli CLI='keys create --state {folder} --scope use'"
    shown = f"{key} (all rights; shown once)" if key else "shown when the first one was created"
    return Access(
        (f"  key    {shown}", f"         another one: {create}"), ("-H", f"authorization: Bearer {key or 'stk_...'}")
    )


def welcome(cloud: Cloud, url: str, folder: Path, seconds: float, *, access: Access, tools: Sequence[str]) -> str:
    models = cloud.models
    request = {"model": models.example, "input": "Say hello."}
    command = ["curl", "-sS", f"{url}/v1/responses", "-H", "content-type: application/json", "-d", json.dumps(request)]
    command[3:3] = access.header
    return "\n".join(
        (
            f"Stint serves {url} (ready in {seconds:.1f} s)",
            f"  model  {models.default}{model_note(os.environ) if models.note is None else models.note}",
            *(f"         {line}" for line in models.lines),
            *tools,
            *access.lines,
            *([f"  page   {url}/console"] if CONSOLE.is_file() else []),
            f"  docs   {url}/docs",
            f"  state  {folder} (to start empty: {make_command(folder, PORT, fresh=True)})",
            f"  logs   {folder / 'logs'}",
            *models.warnings,
            *find_misspelled(os.environ),
            f"Send a request{f' to {models.stand_in}, which works meanwhile' if models.stand_in else ''}:",
            f"  {shlex.join(command)}",
            "Ctrl-C stops.",
        )
    )


def print_line(text: str) -> None:
    print(text, flush=True)


class Logs:
    """Log that prints requests and errors of the API, and writes each function's output to a file of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._files: dict[str, IO[str]] = {}

    def __call__(self, subject: str, line: str) -> None:
        if subject == "api":
            print_line(f"{time.strftime('%H:%M:%S')} {line}")
            return
        if subject not in self._files:
            self._files[subject] = (self._folder / f"{subject}.log").open("a", buffering=1)
        self._files[subject].write(line.rstrip("\n") + "\n")

    def close(self) -> None:
        for file in self._files.values():
            file.close()
