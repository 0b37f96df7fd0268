"""`python -m infra.bench.first_event`: where the time of a streamed response goes until its first event.

The app runs in this process, beside the local engine and a model server, so there is neither a runtime nor a front. The
header is written while the provider is asked, so both begin together, and the first event waits for the later one. What
it would gain if it waited for neither is the last line.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any
from unittest.mock import patch

from fastapi import FastAPI
from infra.bench.__main__ import MACHINE, silent
from infra.bench.model_server import running_model_server
from infra.bench.processes import MODEL, SETTINGS, with_model
from infra.local.cloud import TEMPLATE, Plan, own_environment, running_cloud
from infra.local.invoke import find_function
from starlette.types import Message

from stint.bootstrap.openai import OpenAIComposition
from stint.http.app import create_app
from stint.http.routes import responses
from stint.loop.model_call import Inference
from stint.services.responses.response_log import ResponseLog
from stint.settings import load_settings

FUNCTION = "stint-responses"
WARM, RUNS = 20, 200
BODY = json.dumps({"model": MODEL, "input": "say: done", "stream": True}).encode()
SILENT = {"POWERTOOLS_LOG_LEVEL": "ERROR", "POWERTOOLS_METRICS_DISABLED": "true"}
PARTS = {
    "checks, plan and context": ("received", "started"),
    "the header's write": ("started", "stored"),
    "the provider's acceptance": ("started", "accepted"),
    "from the later of both to the event": ("ready", "sent"),
    "the first event": ("received", "sent"),
    "of this, the wait for both": ("started", "ready"),
}
"""The parts of the time, with the marks at which each begins and ends."""

Marks = dict[str, float]


class Stopwatch:
    """Notes when a request reaches its marks."""

    def __init__(self) -> None:
        self.marks: Marks = {}

    def note(self, name: str) -> None:
        self.marks.setdefault(name, time.perf_counter())

    def after(self, function: Callable[..., Awaitable[Any]], name: str) -> Callable[..., Awaitable[Any]]:
        """Return a function that notes when it has ended."""

        async def timed(*arguments: Any, **options: Any) -> Any:
            result = await function(*arguments, **options)
            self.note(name)
            return result

        return timed

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the start of the model call, and when it was accepted and the header written."""
        start, read = Inference.__init__, Inference.read_one

        def started(inference: Inference, *arguments: Any) -> None:
            self.note("started")
            start(inference, *arguments)

        with ExitStack() as stack:
            stack.enter_context(patch.object(Inference, "__init__", started))
            stack.enter_context(patch.object(Inference, "read_one", self.after(read, "accepted")))
            stack.enter_context(patch.object(ResponseLog, "put_header", self.after(ResponseLog.put_header, "stored")))
            yield


async def measure(app: FastAPI) -> list[Marks]:
    """Run streamed responses, one after the other, and return the marks of each."""
    return [await run_response(app) for _ in range(WARM + RUNS)][WARM:]


async def run_response(app: FastAPI) -> Marks:
    stopwatch = Stopwatch()
    messages: list[Message] = [{"type": "http.request", "body": BODY, "more_body": False}]
    received: list[bytes] = []

    async def receive() -> Message:
        return messages.pop() if messages else await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        if message.get("body"):
            stopwatch.note("sent")
        received.append(message.get("body", b""))

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/responses", "query_string": b"", "headers": headers}
    with stopwatch.watching():
        stopwatch.note("received")
        await app({**scope, "root_path": "", "asgi": {"version": "3.0", "spec_version": "2.4"}}, receive, send)
    if b"event: response.completed" not in b"".join(received):
        raise RuntimeError(f"no complete response: {received[-1:]!r}")
    marks = stopwatch.marks
    return marks | {"ready": max(marks["stored"], marks["accepted"])}


def render(runs: list[Marks]) -> str:
    """Return the medians of the parts in milliseconds."""
    lines = ["", f"{'Streamed response, warm':40}{'ms':>8}"]
    for name, (start, end) in PARTS.items():
        lines.append(f"  {name:38}{median((marks[end] - marks[start]) * 1000 for marks in runs):8.1f}")
    return "\n".join(lines)


async def main() -> None:
    print(MACHINE)
    with running_model_server() as model:
        plan = Plan(SETTINGS, template=TEMPLATE, shared=True)
        async with running_cloud(plan, None, silent) as cloud:
            services = {**cloud.engine.environment(), **with_model(model.url)}
            own = own_environment(find_function(cloud.system, FUNCTION), services, cloud.system.functions)
            os.environ.update({**own, **SILENT})
            composition = OpenAIComposition(load_settings)
            app = create_app(
                "responses",
                responses.router,
                make_services=composition.make_openai_services,
                read_settings=load_settings,
                buffered=False,
            )
            print(render(await measure(app)))


if __name__ == "__main__":
    asyncio.run(main())
