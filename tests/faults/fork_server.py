"""Program that imports the product once and forks processes of it: `python -m tests.faults.fork_server LOG`.

It reads commands as lines of JSON, and answers each with a line. A forked process has imported every module, but made
no client, like a process that Lambda starts from a snapshot.

- `{"run": "serve", "environment": {...}, "ahead": seconds}` serves the API: `{"pid": ..., "port": ...}`
- `{"run": "work", "event": {...}, ...}` handles an event of the queue: `{"pid": ...}`
- `{"run": "warm", "environment": {...}}` does both in this process, until SIGTERM. Schemas and routes that requests
  build are then there for all forked processes; clients and caches are dropped.
- `{"run": "wait", "pid": ...}` waits for the end of a process: `{"status": ..., "answer": ...}`
"""

import gc
import importlib
import json
import logging
import os
import pkgutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, NoReturn

from tests.clock import CLOCK

CLOCK.install()  # before the product is imported, which refers to the clocks

import botocore.retries.standard  # noqa: E402
import botocore.session  # noqa: E402
import uvicorn  # noqa: E402
from functions.worker import app as worker  # noqa: E402
from starlette.datastructures import Headers  # noqa: E402
from starlette.types import ASGIApp, Receive, Scope, Send  # noqa: E402
from tests.api.fakes import FakeSchedules  # noqa: E402
from tests.faults.invocations import REMAINING, make_context  # noqa: E402
from tests.faults.model_requests import note_model_requests  # noqa: E402

import stint  # noqa: E402
from stint import run_stop  # noqa: E402
from stint.aws import retries  # noqa: E402
from stint.aws.dynamodb import DynamoDBClient  # noqa: E402
from stint.bootstrap.adapters import Adapters  # noqa: E402
from stint.bootstrap.operator import OperatorComposition  # noqa: E402
from stint.domain.ids import TENANT  # noqa: E402
from stint.domain.principals import SCOPES, Principal  # noqa: E402
from stint.http import streaming  # noqa: E402
from stint.http.app import create_app, list_routers  # noqa: E402
from stint.october_2024.composition import OctoberComposition  # noqa: E402
from stint.october_2024.routes.parts import list_october_parts  # noqa: E402
from stint.openai_agents.composition import automations_of, compose_openai_agents, vaults_of  # noqa: E402
from stint.services.background import cancellation as response_cancellation  # noqa: E402
from stint.services.runs import polling_pauses  # noqa: E402
from stint.services.turns import cancellation as turn_cancellation  # noqa: E402
from stint.settings import load_settings  # noqa: E402
from stint.spending import stop_monitor  # noqa: E402
from stint.store import clients  # noqa: E402

TIMEOUT_SECONDS = 1.0
"""Timeout of AWS clients, and with the next ones the only difference to the product: tests do not wait for more."""
BACKOFF_SECONDS = 0.02
WATCH_SECONDS, ENDING_SECONDS = 0.3, 1.5
"""Seconds between two reads of signals, and in which the process of a cancelled run ends it."""
CLIENT_SECONDS, SILENT_SECONDS = 0.6, 0.2
"""Seconds without a heartbeat after which a client is gone, and for which a request without a stream waits."""
KEPT_SECONDS = 600
"""Seconds after which a server closes an unused connection. A client may send a request at the same moment."""
WORKER_MILLISECONDS = 120_000
SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 0.3
"""Pauses of readers that poll."""
UNUSED = ("stint.cli", "stint.bootstrap.embedders.local")


class AnyServices:
    """The services of all functions for one tenant, from the composition that has each."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant

    def __getattr__(self, name: str) -> Any:
        composition = worker.composition
        for make in (composition.make_openai_services, composition.make_knowledge_services, composition.make_services):
            services = make(self._tenant)
            if hasattr(services, name):
                return getattr(services, name)
        place = composition, self._tenant
        services, own = composition.make_services(self._tenant), (vaults_of(*place), automations_of(*place))
        agents_api = compose_openai_agents(services, composition.settings, *own)
        operator = OPERATOR.make_services(self._tenant)
        return getattr(agents_api if hasattr(agents_api, name) else operator, name)


OPERATOR = OperatorComposition(load_settings)


OCTOBER = OctoberComposition(load_settings)
OCTOBER_PATHS = ("/agents/", "/memory", "/models/", "/shields/")
CALLER = Principal(tenant=TENANT, subject="tester", scopes=frozenset(SCOPES))
KEY_OWNER = replace(CALLER, key_id="key-of-tester")
"""The caller of requests for automations, which need a key. Administration would look for its record."""


def make_app() -> ASGIApp:
    """Make the app, whose requests have the context of an authorizer that has let in a caller with all rights."""
    make_services: Any = AnyServices
    read: Any = {"read_settings": load_settings, "buffered": False}
    app = create_app("all", *list_routers(), make_services=make_services, **read)
    october = create_app("october", *list_october_parts(), make_services=OCTOBER.make_october_services, **read)

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        caller = KEY_OWNER if scope.get("path", "").startswith("/v1/agents/automations") else CALLER
        scope["aws.event"] = {"requestContext": {"authorizer": caller.to_context()}}
        if remaining := Headers(scope=scope).get(REMAINING) if scope["type"] == "http" else None:
            scope["aws.context"] = make_context(int(remaining))
        called_app = october if scope.get("path", "").startswith(OCTOBER_PATHS) else app
        await called_app(scope, receive, send)

    return called


def shorten_waits() -> None:
    """Shorten timeouts and backoffs of AWS clients, and the waits for cancellations, clients and sessions."""
    defaults: Any = DynamoDBClient.__init__.__kwdefaults__
    defaults["read_timeout"] = TIMEOUT_SECONDS
    vars(retries)["BASE_SECONDS"] = vars(retries)["THROTTLED_BASE_SECONDS"] = BACKOFF_SECONDS
    make: Any = vars(clients)["_make"]
    vars(clients)["_make"] = lambda service, read_timeout: make(service, min(read_timeout, TIMEOUT_SECONDS))
    backoff: Any = botocore.retries.standard.ExponentialBackoff
    backoff.delay_amount = lambda *_: BACKOFF_SECONDS
    vars(stop_monitor)["WATCH_SECONDS"] = WATCH_SECONDS
    for cancellation in (response_cancellation, turn_cancellation):
        vars(cancellation)["ENDING_SECONDS"] = ENDING_SECONDS
    vars(run_stop)["HEARTBEAT_TIMEOUT_SECONDS"] = CLIENT_SECONDS
    vars(polling_pauses).update(SHORTEST_SECONDS=SHORTEST_SECONDS, LONGEST_SECONDS=LONGEST_SECONDS)
    vars(streaming)["SILENT_SECONDS"] = SILENT_SECONDS
    botocore.session.create_loader = cache(botocore.session.create_loader)


def replace_schedules() -> None:
    """Let automations be made without Scheduler, whose calls are not counted among the points of faults."""
    vars(Adapters.schedules).update(func=lambda _: FakeSchedules())


def import_all() -> None:
    """Import the modules that a request would import."""
    for found in pkgutil.walk_packages(stint.__path__, "stint."):
        if not found.name.startswith(UNUSED):
            importlib.import_module(found.name)


def warm_clients() -> None:
    """Load the definitions of AWS services, which the clients of all forked processes share."""
    session = botocore.session.get_session()
    for service in ("s3", "sqs", "events"):
        session.create_client(
            service, region_name="us-east-1", aws_access_key_id="-", aws_secret_access_key="-"
        ).close()


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve the API until SIGTERM, and end the requests that are then running."""
    options: Any = {"log_level": "warning", "lifespan": "off", "access_log": False}
    uvicorn.run(app, fd=listener.fileno(), timeout_keep_alive=KEPT_SECONDS, loop="asyncio", **options)


def work(event: Any, answer: int) -> None:
    """Handle an event like Lambda, and write the answer to a pipe."""
    os.write(answer, json.dumps(worker.handler(event, make_context(WORKER_MILLISECONDS))).encode())


@contextmanager
def environment_of(command: dict[str, Any]) -> Iterator[None]:
    """Set the environment of a command for a while, and drop what was made with it."""
    before = dict(os.environ)
    os.environ.update(command["environment"])
    forget_settings()  # the worker's function has read them when it was imported
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        forget_settings()
        gc.collect()
        gc.freeze()  # collections in forked processes would copy the memory


def forget_settings() -> None:
    """Drop the settings, and what was made with them."""
    load_settings.cache_clear()
    for composition in (worker.composition, OPERATOR, OCTOBER):
        composition.forget()


class ForkServer:
    """The state of the program: its app, and the pipes with the answers of processes."""

    def __init__(self) -> None:
        self.app = make_app()
        self.answers: dict[int, int] = {}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["run"] == "wait":
            return self._wait(command["pid"])
        if command["run"] == "work-here":
            return self._work_here(command)
        assert threading.active_count() == 1, threading.enumerate()
        listener = socket.create_server(("127.0.0.1", 0))
        receive, send = os.pipe()
        pid = os.fork()
        if not pid:
            self._run(command, listener, send)
        os.close(send)
        port = listener.getsockname()[1]
        listener.close()
        self.answers[pid] = receive
        return {"pid": pid, "port": port}

    def _wait(self, pid: int) -> dict[str, Any]:
        _, status = os.waitpid(pid, 0)
        with os.fdopen(self.answers.pop(pid), "rb") as answer:
            return {"status": os.waitstatus_to_exitcode(status), "answer": answer.read().decode()}

    def warm(self, command: dict[str, Any], announce: Callable[[dict[str, Any]], None]) -> None:
        """Serve the API in this process until SIGTERM."""
        listener = socket.create_server(("127.0.0.1", 0))
        announce({"pid": os.getpid(), "port": listener.getsockname()[1]})
        with environment_of(command):
            serve(self.app, listener)
        listener.close()

    def _work_here(self, command: dict[str, Any]) -> dict[str, Any]:
        """Handle an event of the queue in this process."""
        with environment_of(command):
            worker.handler(command["event"], make_context(WORKER_MILLISECONDS))
            worker.make_runner().close()
            worker.make_runner.cache_clear()
        return {}

    def _run(self, command: dict[str, Any], listener: socket.socket, send: int) -> NoReturn:
        """Run a command in a process that was just forked, and end it."""
        status = 1
        try:
            os.close(0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.environ.update(command["environment"])
            CLOCK.move(command["ahead"])
            if command["run"] == "serve":
                serve(self.app, listener)
            else:
                work(command["event"], send)
            status = 0
        except SystemExit:
            status = 0
        except BaseException:
            logging.getLogger(__name__).exception("The forked process failed")
        finally:
            logging.shutdown()
            os._exit(status)


def main(log: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(descriptor, number)
    shorten_waits()
    replace_schedules()
    note_model_requests()
    import_all()
    warm_clients()
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises the signal that ended it again
    server = ForkServer()

    def announce(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    announce({})
    for line in sys.stdin:
        command = json.loads(line)
        if command["run"] == "warm":
            server.warm(command, announce)
            announce({})
        else:
            announce(server.answer(command))


if __name__ == "__main__":
    main(sys.argv[1])
