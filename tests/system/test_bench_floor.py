"""The floor of the benchmark does the same as the product for a simple streamed turn."""

import asyncio
import json
import re
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from infra.bench.client import turn_body
from infra.bench.model_server import ModelServer, running_model_server
from infra.bench.processes import SETTINGS, Launcher, RunningFunction, launcher, with_model
from infra.bench.streams import SHORT
from infra.bench.turns import make_sessions
from infra.local.cloud import Plan, running_cloud, serving_front
from infra.local.engine import Engine
from infra.local.server import listen
from tests.store.dynamodb_proxy import DynamoDBProxy

ROUNDS = (("GetItem", "GetItem", "UpdateItem"), ("PutItem",), ("PutItem",), ("UpdateItem",))
"""Calls of a turn that are made at once, in the order of the rounds."""
VARYING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d{4}-\d\d-\d\d[T ][\d:.,]+|1-[0-9a-f]{8}-bench|(?<=#stop:)\d"
)
EXPRESSIONS = ("ConditionExpression", "UpdateExpression")


@dataclass
class Recorded:
    """The second turn of a session: its calls to DynamoDB, model request, events and lines of log.

    `order` has "sent" and "answered" for each call.
    """

    calls: list[tuple[str, str]] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    request: dict[str, Any] = field(default_factory=dict)
    answer: bytes = b""
    lines: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def recorded(empty_engine: Engine) -> tuple[Recorded, Recorded]:
    """Return a turn of the product and one of the floor."""
    return asyncio.run(record_both(empty_engine))


async def record_both(engine: Engine) -> tuple[Recorded, Recorded]:
    async with AsyncExitStack() as stack:
        model = stack.enter_context(running_model_server())
        proxy = stack.enter_context(DynamoDBProxy(engine.environment()["AWS_ENDPOINT_URL_DYNAMODB"]))
        cloud = await stack.enter_async_context(running_cloud(Plan(SETTINGS), engine.running, ignore))
        listener = stack.enter_context(closing(listen()))
        front = await stack.enter_async_context(serving_front(cloud, listener, ignore))
        launch = await stack.enter_async_context(launcher(cloud, with_model(model.url) | proxy.environment()))
        sessions = await asyncio.to_thread(make_sessions, front, 2)
        product = await stack.enter_async_context(launch.function("turns"))
        floor = await stack.enter_async_context(launch.floor())
        found = [
            await record(launch, function, session, proxy, model)
            for function, session in zip((product, floor), sessions, strict=True)
        ]
    return found[0], found[1]


async def record(
    launch: Launcher, function: RunningFunction, session: str, proxy: DynamoDBProxy, model: ModelServer
) -> Recorded:
    event = launch.event("POST", f"{session}/turn", turn_body(SHORT))
    await function.answer(event)
    found = Recorded()
    function.output.clear()

    def see(operation: str, body: str) -> None:
        found.calls.append((operation, body))
        found.order.append("sent")

    answering = proxy.editing(answer=lambda _: found.order.append("answered"))
    with proxy.held_in_rounds(*ROUNDS), proxy.watching(see), answering:
        found.answer = await function.answer(event)
    found.request, found.lines = model.request, [*function.output]
    return found


def ignore(_subject: str, _line: str) -> None:
    """Drop a line of the cloud."""


def test_the_floor_makes_the_same_calls_in_the_same_rounds(recorded: tuple[Recorded, Recorded]) -> None:
    product, floor = recorded

    assert len(product.calls) == sum(map(len, ROUNDS))
    assert sorted(map(outline, floor.calls)) == sorted(map(outline, product.calls))


def test_the_rounds_of_both_follow_each_other(recorded: tuple[Recorded, Recorded]) -> None:
    expected = [each for calls in ROUNDS for each in ["sent"] * len(calls) + ["answered"] * len(calls)]

    assert [each.order for each in recorded] == [expected, expected]


def test_the_calls_of_the_floor_have_the_same_size(recorded: tuple[Recorded, Recorded]) -> None:
    sizes = [sum(len(body) for _, body in each.calls) for each in recorded]

    assert sizes[1] == pytest.approx(sizes[0], rel=0.01)


def test_the_floor_sends_the_same_request_to_the_model(recorded: tuple[Recorded, Recorded]) -> None:
    product, floor = recorded

    assert len(product.request["messages"]) == 4
    assert floor.request == product.request


def test_the_floor_sends_the_same_events(recorded: tuple[Recorded, Recorded]) -> None:
    product, floor = (split(each.answer) for each in recorded)

    assert len(product) == 6
    assert floor == product


def test_the_floor_writes_the_same_lines(recorded: tuple[Recorded, Recorded]) -> None:
    product, floor = ([shape(json.loads(line)) for line in each.lines] for each in recorded)

    assert len(product) == 2
    assert [line | {"location": ""} for line in floor] == [line | {"location": ""} for line in product]


def outline(call: tuple[str, str]) -> str:
    """Return a call with its keys, attributes and values, without what differs from turn to turn."""
    operation, body = call
    request = {name: value for name, value in json.loads(body).items() if name not in EXPRESSIONS}
    return f"{operation} {json.dumps(shape(request), sort_keys=True)}"


def split(answer: bytes) -> list[Any]:
    """Return the prelude and the events of a streamed answer."""
    prelude, _, events = answer.partition(bytes(8))
    lines = [event.decode().partition("\ndata: ") for event in events.split(b"\n\n") if event]
    return [shape(json.loads(prelude)), *((number, shape(json.loads(data))) for number, _, data in lines)]


def shape(value: Any, name: str = "") -> Any:
    """Return a document without ids, times and numbers. Documents in attributes of records are read, too."""
    if isinstance(value, dict):
        if name == "doc":
            return shape(json.loads(value["S"]))
        return {each: "bytes" if each == "B" else shape(found, each) for each, found in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0
    if name == "N":
        return "0"
    return VARYING.sub("*", value) if isinstance(value, str) else value
