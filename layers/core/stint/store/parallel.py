"""Calls that wait for the network, side by side."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")

THREADS = 8
"""No more than the connections that a client keeps."""


def side_by_side(do: Callable[[A], R], over: Sequence[A], threads: int = THREADS) -> list[R]:
    """Do the same with each and give the results in order; one alone needs no thread."""
    if len(over) < 2:
        return [do(one) for one in over]
    with ThreadPoolExecutor(min(threads, len(over))) as pool:
        return list(pool.map(do, over))
