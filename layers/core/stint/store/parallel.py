"""Concurrent calls that wait for the network."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")

THREADS = 8
"""Maximum threads, as many as a client's connections."""


def map_concurrently(do: Callable[[A], R], over: Sequence[A], threads: int = THREADS) -> list[R]:
    """Call a function with each argument in threads, and return the results in order. One call needs no thread."""
    if len(over) < 2:
        return [do(one) for one in over]
    with ThreadPoolExecutor(min(threads, len(over))) as pool:
        return list(pool.map(do, over))
