"""Counts of the attacks of a test, for the last line of the run."""

import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

PROPERTY = "attacks"

Record = Callable[[str, object], None]


@dataclass
class Attacks:
    """The attacks of one kind: how many by route, the slowest, and those that got in."""

    routes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    got_in: list[str] = field(default_factory=list)
    slowest: float = 0.0

    @contextmanager
    def attack(self, route: str) -> Iterator[None]:
        """Count one attack on a route, and measure it."""
        self.routes[route] += 1
        began = time.perf_counter()
        yield
        self.slowest = max(self.slowest, time.perf_counter() - began)

    def record(self, record_property: Record) -> None:
        """Leave the counts for the summary, and fail if an attack got in."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = {"routes": dict(self.routes), "in": len(self.got_in), "slowest": self.slowest, "kilobytes": peak}
        record_property(PROPERTY, found)
        assert not self.got_in, "\n".join(self.got_in)
