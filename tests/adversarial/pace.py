"""Speed of this processor, so that a limit of CPU time allows the same work on a slower one."""

import time
from statistics import median

REFERENCE_SECONDS = 0.06
"""CPU time of `count` on the processor for which the limits are stated."""

MOST_PACE = 2.0


def count() -> None:
    total = 0
    for number in range(1_000_000):
        total += number


def measure_pace() -> float:
    """Return how many times longer than the reference this processor takes, from 1 to MOST_PACE."""
    return min(max(median(time_count() for _ in range(5)) / REFERENCE_SECONDS, 1.0), MOST_PACE)


def time_count() -> float:
    began = time.thread_time()
    count()
    return time.thread_time() - began
