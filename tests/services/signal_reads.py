"""The passing of time as running runs see it: second by second, each with a read of their signals."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import until

from stint.spending.stop_monitor import WATCH_SECONDS
from stint.store.run_signals import RunSignalStore


class SignalReads:
    """Counts the reads of signals."""

    def __init__(self) -> None:
        self.count = 0

    async def let_pass(self, seconds: int) -> None:
        """Let seconds pass, at the end of each of which the signals have been read."""
        for _ in range(seconds):
            before = self.count
            CLOCK.move(WATCH_SECONDS)
            await until(lambda before=before: self.count > before)  # type: ignore[misc]


@contextmanager
def counting_reads() -> Iterator[SignalReads]:
    """Count the reads of signals while the body runs."""
    reads, read = SignalReads(), RunSignalStore.read

    async def count(*args: Any) -> Any:
        found = await read(*args)
        reads.count += 1
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunSignalStore, "read", count)
        yield reads
