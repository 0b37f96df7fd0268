"""Faults and order of DynamoDB calls, implemented with botocore's own events."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ConnectionClosedError
from tests.store.conftest import Cloud

LOST = "stint.lost"


@contextmanager
def watching(cloud: Cloud, see: Callable[[str, str, dict[str, Any]], None]) -> Iterator[None]:
    """Call `see` with operation, body and context before each call is sent. Its exceptions reach the caller."""

    def before(model: Any, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        see(model.name, str(params["body"]), context)

    events = cloud.dynamodb.meta.events
    events.register_first("before-call", before)
    try:
        yield
    finally:
        events.unregister("before-call", before)


@contextmanager
def failing(cloud: Cloud, operation: str, marker: str = "", *, lost: bool = False, times: int = 99) -> Iterator[None]:
    """Make calls fail whose body contains `marker`. With `lost`, they take effect, but their responses are lost."""
    left = times

    def see(name: str, body: str, context: dict[str, Any]) -> None:
        nonlocal left
        if name != operation or marker not in body or not left:
            return
        left -= 1
        if not lost:
            raise ConnectionClosedError(endpoint_url="test")
        context[LOST] = True

    def after(context: dict[str, Any], **_: Any) -> None:
        if LOST in context:
            raise ConnectionClosedError(endpoint_url="test")

    events = cloud.dynamodb.meta.events
    events.register_last("after-call", after)
    try:
        with watching(cloud, see):
            yield
    finally:
        events.unregister("after-call", after)


@contextmanager
def held_together(cloud: Cloud, *operations: str) -> Iterator[Counter[str]]:
    """Hold the first calls until all of `operations` have been called, so they must be concurrent."""
    with held_in_rounds(cloud, operations) as seen:
        yield seen


@contextmanager
def held_in_rounds(cloud: Cloud, *rounds: Sequence[str]) -> Iterator[Counter[str]]:
    """Hold each call until all calls of its round have been made. Rounds are in order. Yields counts of all calls."""
    places = [number for number, operations in enumerate(rounds) for _ in operations]
    barriers = [threading.Barrier(len(operations)) for operations in rounds]
    found = [Counter[str]() for _ in rounds]
    seen, lock = Counter[str](), threading.Lock()

    def see(name: str, body: str, context: dict[str, Any]) -> None:
        with lock:
            place = seen.total()
            seen[name] += 1
        if place < len(places):
            found[places[place]][name] += 1
            barriers[places[place]].wait(30)

    with watching(cloud, see):
        yield seen
    assert found == [Counter(operations) for operations in rounds]
