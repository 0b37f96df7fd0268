"""Process with the whole API that forks for each case, so that every case has its own warm process.

Arguments: the descriptor of a listening socket, the engine's outputs as JSON, and the base URL of `openai/` models. The
process ends when its standard input ends.
"""

import asyncio
import gc
import json
import os
import resource
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from importlib import import_module
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from fastapi import FastAPI
from functions.worker.app import handler
from infra.local.engine import Engine
from tests.adversarial.case import Answer, Event, Request, get, post
from tests.adversarial.meter import Meter
from tests.api.app_fixture import AppFixture

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.chat_models import fetch_images
from stint.domain.ids import new_id
from stint.http.app import create_app
from stint.http.routes.inspection import list_parts
from stint.models.openai_compatible import OpenAICompatible
from stint.models.tool_names import SanitizedToolNames
from stint.tools.mcp.session import prepare_mcp

MOST_CPU_SECONDS = 25
"""A case that exceeds this limit is killed; its actual costs are then unknown."""

MOST_ANSWER = 1_000_000
"""Bytes of a response that cases receive. The rest is dropped: a server does not keep data that it has sent."""


def main(descriptor: str, outputs: str, chat_url: str) -> None:
    engine = Engine()
    engine.outputs = json.loads(outputs)
    world = AppFixture(engine, environment=os.environ)
    world.chat_url = chat_url
    adapters = Adapters(world.settings)
    world.models["fetched"] = lambda: fetch_images(OpenAICompatible(chat_url), world.settings, adapters.fetch)
    world.models["hostile"] = lambda: SanitizedToolNames(OpenAICompatible(chat_url, repeats=0))
    world.models["events"] = lambda: SanitizedToolNames(OpenAICompatible(chat_url, repeats=0, api="responses"))
    app = create_app(
        "all", *list_parts(), make_services=world.make_services, read_settings=lambda: world.settings, buffered=False
    )
    warm_up(app)
    gc.freeze()  # like the runtime after its start
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(10)
    assert threading.active_count() == 1, "a process with threads cannot be forked"
    with socket.socket(fileno=int(descriptor)) as server:
        while server in select.select([server, sys.stdin], [], [])[0]:
            fork(server.accept()[0], world, app)


def warm_up(app: FastAPI) -> None:
    """Trigger the imports of a first request, with requests that are refused before anything is stored."""
    prepare_mcp()
    for module in ("mcp.client.session", "mcp.client.sse", "mcp.client.streamable_http"):
        import_module(module)
    requests = [get("/v1/openapi.json")]
    posts = ("/v1/agents", "/v1/toolgroups", "/v1/responses", "/v1/chat/completions", "/v1/nothing")
    requests += [post(path, {"input": 1}) for path in posts]
    for request in requests:
        asyncio.run(send(app, request))


def fork(connection: socket.socket, world: AppFixture, app: FastAPI) -> None:
    """Serve one case in a child process, and reap the children that have ended."""
    if os.fork() == 0:
        try:
            world.tenant = f"t{new_id()[-12:]}"
            serve(Connection(connection.detach()), app)
        except BaseException:  # noqa: BLE001 - the child must end here after any exception
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    connection.close()
    for _ in range(2):
        os.waitpid(-1, os.WNOHANG)


def serve(connection: Connection, app: FastAPI) -> None:
    """Send the response and the costs of each request, until the connection is closed."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
    connection.send(os.getpid())
    meter = Meter()
    with asyncio.Runner() as runner:
        runner.run(send(app, get("/v1/agents")))
        for request in receive_all(connection):
            meter.start()
            if isinstance(request, Event):
                began = time.thread_time()
                answer = handle(request)
                meter.add_stretch(time.thread_time() - began)
            else:
                answer = runner.run(send(app, request))
            connection.send((answer, meter.stop()))


def receive_all(connection: Connection) -> Iterator[Request | Event]:
    while True:
        try:
            yield connection.recv()
        except EOFError:
            return


async def send(app: FastAPI, request: Request) -> Answer:
    """Send a request to the app like a server, with its body in one piece."""
    path, _, query = request.path.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), text.encode("latin-1")) for name, text in request.headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    messages: list[Any] = [{"type": "http.request", "body": request.body, "more_body": False}]
    status: list[int] = []
    body = bytearray()

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def collect(message: Any) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])
        elif len(body) < MOST_ANSWER:
            body.extend(message.get("body", b""))

    await app(scope, receive, collect)
    return Answer(status[0], bytes(body[:MOST_ANSWER]))


def handle(event: Event) -> Answer:
    """Parse an event and pass it to the worker, like Lambda."""
    context = SimpleNamespace(
        aws_request_id=new_id(), function_name="worker", get_remaining_time_in_millis=lambda: 30_000
    )
    try:
        return Answer(200, json.dumps(handler(json.loads(event.body), context)).encode())
    except Exception as error:  # noqa: BLE001 - like Lambda
        return Answer(500, repr(error).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
