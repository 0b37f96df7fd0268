"""Counts of documents in progress that a process keeps for some seconds, so that polling does not read them all."""

import time
from collections import OrderedDict
from dataclasses import dataclass, field

from stint.domain.vector_stores import StoreUsage

DOCUMENTS_PER_SECOND = 100
"""A count is kept for a second per so many documents. That of a small store is always current."""

MAX_SECONDS = 10.0
MAX_COUNTS = 256


@dataclass(slots=True)
class RecentCounts:
    """Counts by store and batch, the least recent first. A change of the store's documents by a request outdates one.

    Documents that the worker completes or fails are counted when the time is over.
    """

    _counts: "OrderedDict[tuple[str, str], tuple[str, float, StoreUsage]]" = field(default_factory=OrderedDict)

    def get(self, store_id: str, batch_id: str, change_id: str) -> StoreUsage | None:
        seen, until, usage = self._counts.get((store_id, batch_id), ("", 0.0, None))
        return usage if seen == change_id and time.monotonic() < until else None

    def put(self, store_id: str, batch_id: str, change_id: str, usage: StoreUsage, documents: int) -> None:
        """Keep a count for which so many documents were read."""
        until = time.monotonic() + min(documents // DOCUMENTS_PER_SECOND, MAX_SECONDS)
        self._counts[store_id, batch_id] = (change_id, until, usage)
        self._counts.move_to_end((store_id, batch_id))
        while len(self._counts) > MAX_COUNTS:
            self._counts.popitem(last=False)

    def forget(self) -> None:
        """Forget all counts: documents were changed in a way that the store's record does not show."""
        self._counts.clear()
