"""`make invoke`: invoke a function with one event, in a process of its own.

The files in `events/` name objects (sessions, files, keys) that must exist. They are stored again before each event
that names one, so that an event has the same effect however often it is sent. This needs the product's code, so it is
imported for such events only.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from infra.local.cloud import Plan, running_cloud
from infra.local.engine import ROOT, RunningEngine
from infra.local.environment import model_note, openai_variable
from infra.local.errors import LocalCloudError
from infra.local.event_sources import create_buses
from infra.local.invocation import Invocation
from infra.local.proxy_response import Head, MalformedResponse, parse_buffered, read_prelude
from infra.local.sample_ids import (
    AGENT,
    API_KEY,
    ASKING_EVENTS,
    AUTOMATION,
    CHAT_COMPLETION,
    CONTAINER,
    CONVERSATION,
    DELETED,
    FILE,
    MODEL,
    NEW_VAULT,
    NEW_WEBHOOK_ENDPOINT,
    RESPONSES,
    SHIELD,
    STOPPED_SESSION,
    TOOLGROUP,
    UPLOADS,
    VAULT,
    VECTOR_DB,
    VECTOR_STORES,
    WEBHOOK_ENDPOINT,
)
from infra.local.schedules import create_groups, name_groups
from infra.local.state import State
from infra.local.system import Function, Invoke, System

EVENTS = ROOT / "events"
SHOWN = 4
"""Number of events of each function that a usage error lists."""
# https://docs.aws.amazon.com/apigateway/latest/developerguide/response-transfer-mode-lambda.html
_STREAMED = "application/vnd.awslambda.http-integration-response"


async def invoke(plan: Plan, function: str, event: Path, folder: Path) -> bool:
    """Invoke the function, and return whether it succeeded.

    The response is printed as it arrives, and the function's log goes to standard error. The data is that of the state
    folder. If a cloud is running there, its engine is used, otherwise a new one. The sample resources that the events
    in `events/` use are stored again first.
    """
    payload = read_event(event)
    running = State(folder).published_engine()
    if running is not None:
        return await invoke_on(running, plan, function, payload)
    await State(folder).wait_for_engine()
    with State(folder) as state:
        return await invoke_on(state.engine, plan, function, payload, lock=state.lock)


async def invoke_on(
    engine: Path | RunningEngine, plan: Plan, name: str, payload: bytes, lock: int | None = None
) -> bool:
    async with running_cloud(plan, engine, log_to_stderr, lock) as cloud:
        if openai_variable(plan.shell):
            log_to_stderr("invoke", f"default model {cloud.models.default}{model_note(plan.shell)}")
        function = find_function(cloud.system, name)
        await asyncio.to_thread(create_buses, cloud.system, cloud.engine)
        await asyncio.to_thread(create_groups, cloud.engine, name_groups(cloud.system))
        await prepare(payload, {**function.environment, **cloud.services})
        invocation = await cloud.functions.invoke(function.name, payload, stream=streams(cloud.system, function))
        try:
            await print_answer(invocation)
        except MalformedResponse as error:
            if invocation.error is None:
                raise LocalCloudError(f"{function.name} did not return an HTTP response: {error}") from error
    if invocation.error:
        print(f"{function.name} failed: {invocation.error.payload.decode('utf-8', 'replace')}", file=sys.stderr)
    return invocation.error is None


async def prepare(payload: bytes, environment: Mapping[str, str]) -> None:
    """Store the samples if the event names one of them; a tool is found only once its toolgroup is stored."""
    objects = (
        AGENT,
        CHAT_COMPLETION,
        CONTAINER,
        CONVERSATION,
        *DELETED,
        FILE,
        MODEL,
        *RESPONSES,
        SHIELD,
        TOOLGROUP,
        *UPLOADS,
    )
    names = (
        *objects,
        *VECTOR_STORES,
        VECTOR_DB,
        *ASKING_EVENTS,
        API_KEY,
        AUTOMATION,
        VAULT,
        NEW_VAULT,
        WEBHOOK_ENDPOINT,
        NEW_WEBHOOK_ENDPOINT,
        STOPPED_SESSION,
        "get_boiling_point",
    )
    if any(name.encode() in payload for name in (*names, CONTAINER)):
        from infra.local.samples import store_samples  # noqa: PLC0415 - imports the product, which other events do not need

        await store_samples(environment)


def streams(system: System, function: Function) -> bool:
    """Return whether a route of the function streams."""
    integrations = (route.integration for route in system.routes)
    return any(
        integration.stream
        for integration in integrations
        if isinstance(integration, Invoke) and integration.function == function.name
    )


async def print_answer(invocation: Invocation) -> None:
    """Print an HTTP response as status, headers and body, anything else unchanged. Raises MalformedResponse."""
    chunks = invocation.body()
    if invocation.content_type == _STREAMED:
        head, start = await read_prelude(chunks)
        await print_http(head, start, chunks)
        return
    payload = b"".join([chunk async for chunk in chunks])
    try:
        head, body = parse_buffered(payload)
    except MalformedResponse:
        show(payload + b"\n")
    else:
        await print_http(head, body, chunks)


async def print_http(head: Head, start: bytes, chunks: AsyncIterator[bytes]) -> None:
    """Print the head and the body. JSON is printed at the end, indented, everything else as it arrives."""
    lines = [f"HTTP {head.status}", *(f"{name}: {value}" for name, value in head.headers)]
    show("\n".join(lines).encode() + b"\n\n")
    if dict(head.headers).get("content-type") == "application/json":
        show(indented(start + b"".join([chunk async for chunk in chunks])) + b"\n")
        return
    show(start)
    async for chunk in chunks:
        show(chunk)


def indented(body: bytes) -> bytes:
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False).encode()
    except ValueError:
        return body


def show(data: bytes) -> None:
    """Print at once. After the reader has closed the pipe, output is dropped so that the function can finish."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def find_function(system: System, name: str) -> Function:
    """Return a function by its folder's name, its logical id, or its full name."""
    for function in system.functions:
        if name in (function.code.name, function.logical_id, function.name):
            return function
    known = ", ".join(sorted(function.code.name for function in system.functions))
    raise LocalCloudError(f"there is no function {name!r}. Use FUNCTION={known.replace(', ', ' or ')}")


def read_event(event: Path) -> bytes:
    """Read a JSON file. Raises LocalCloudError if it is not JSON, or, with a list of events, if it cannot be read."""
    try:
        payload = event.read_bytes()
        json.loads(payload)
    except OSError as error:
        raise LocalCloudError(f"cannot read the event {event}: {error.strerror}\n{usage()}") from error
    except ValueError as error:
        raise LocalCloudError(f"the event {event} is not JSON: {error}") from error
    return payload


def usage() -> str:
    """Return usage instructions with some events of each function; events/README.md describes all."""
    lines = ["usage: make invoke FUNCTION=turns EVENT=events/turns/create_turn.json", "Events, all in events/:"]
    for folder in sorted(path for path in EVENTS.iterdir() if path.is_dir()):
        names = sorted(path.name for path in folder.glob("*.json"))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        lines.append(f"  {folder.name + '/':<11} {' '.join(names[:SHOWN])}{more}")
    return "\n".join(lines)


def log_to_stderr(subject: str, line: str) -> None:
    print(f"[{subject}] {line}", file=sys.stderr, flush=True)
