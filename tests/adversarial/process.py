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
from base64 import b64encode
from collections.abc import Iterator
from importlib import import_module
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import cast
from urllib.parse import unquote

from fastapi import FastAPI
from functions.worker.app import handler
from infra.local.engine import Engine
from infra.openapi.document import describe_api
from starlette.types import Receive, Scope, Send
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
from stint_runtime.client import Invocation, ResponseStream, RuntimeApi
from stint_runtime.errors import FunctionError
from stint_runtime.exchange import App
from stint_runtime.loop import serve as serve_event
from stint_runtime.memory import Collector
from stint_runtime.options import Options, read_options
from stint_runtime.response import prelude

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
    describe_api()  # builds the routes
    prepare_mcp()
    for module in ("mcp.client.session", "mcp.client.sse", "mcp.client.streamable_http"):
        import_module(module)
    requests = [get("/v1/openapi.json")]
    posts = ("/v1/agents", "/v1/toolgroups", "/v1/responses", "/v1/chat/completions", "/v1/nothing")
    requests += [post(path, {"input": 1}) for path in posts]
    for request in requests:
        asyncio.run(send(app, invocation_of(request)))


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
    with asyncio.Runner() as runner:
        runner.run(send(app, invocation_of(get("/v1/agents"))))
        meter, collector = Meter(), Collector(read_options(os.environ).function_bytes)
        connection.send((os.getpid(), meter.held))
        for request in receive_all(connection):
            given = request if isinstance(request, Event) else invocation_of(request)
            del request
            meter.start()
            if isinstance(given, Event):
                began = time.thread_time()
                answer = handle(given)
                meter.add_stretch(time.thread_time() - began)
            else:
                answer = runner.run(send(app, given))
            connection.send((answer, meter.stop()))
            del answer, given
            collector.collect()


def receive_all(connection: Connection) -> Iterator[Request | Event]:
    while True:
        try:
            yield connection.recv()
        except EOFError:
            return


def invocation_of(request: Request) -> Invocation:
    """Return a request as API Gateway sends it to a function."""
    try:
        body, encoded = request.body.decode(), False
    except UnicodeDecodeError:
        body, encoded = b64encode(request.body).decode(), True
    event = {
        "httpMethod": request.method,
        "path": request.path,
        "requestContext": {"path": "/"},
        "multiValueHeaders": {name: [text] for name, text in request.headers.items()},
        "body": body,
        "isBase64Encoded": encoded,
    }
    return Invocation(new_id(), json.dumps(event).encode(), {}, received_ms=time.time_ns() // 1_000_000)


class KeptAnswer(RuntimeApi):
    """The Runtime API for one invocation: it keeps the beginning of the response."""

    def __init__(self) -> None:
        super().__init__("")
        self.content = bytearray()

    async def stream(self, invocation: Invocation) -> ResponseStream:
        return cast("ResponseStream", self)

    async def write(self, data: bytes, *, last: bool = False) -> None:
        self.content += data[: max(0, MOST_ANSWER - len(self.content))]

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def fail(self, invocation: Invocation, error: FunctionError) -> None:
        self.content += prelude(500, []) + error.to_json()


async def send(app: App, invocation: Invocation) -> Answer:
    """Let the streaming runtime serve an invocation. Paths and queries reach the app as they were sent."""

    async def with_address(scope: Scope, receive: Receive, send_message: Send) -> None:
        path, _, query = scope["aws.event"]["path"].partition("?")
        address = {"path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(), "root_path": ""}
        await app({**scope, **address}, receive, send_message)

    api = KeptAnswer()
    await serve_event(with_address, api, invocation, Options())
    head, _, body = bytes(api.content).partition(bytes(8))
    return Answer(json.loads(head)["statusCode"], body)


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
