"""The log of a turn as its items: the header, and records up to the one that closes it."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from stint.domain.run_outcome import RunStatus
from stint.store import keys
from stint.store.documents import json_size
from stint.store.items import Item

ENDS = "sk, ended_as, sealed_at"
"""The attributes that show how far a log goes and whether it ended."""

CLOSING = (RunStatus.failed, RunStatus.cancelled)
"""Endings that no record may follow. A turn that waits for input, or is complete, goes on when it is resumed."""


class Log(NamedTuple):
    """`header` is None for a turn that never began. `ended` means that no record may follow."""

    header: Item | None
    records: list[Item]
    ended: bool

    @property
    def ended_as(self) -> str | None:
        """Return the status that the last record ends the turn with; None while the turn runs."""
        return self.records[-1].get("ended_as") if self.records else None

    @property
    def items(self) -> list[Item]:
        return [*([self.header] if self.header else []), *self.records]

    @property
    def size(self) -> int:
        """Count the bytes of JSON of header and records."""
        return sum(map(json_size, self.items))


def logs(items: Iterable[Item]) -> Iterator[Log]:
    """Cut the sorted items of a conversation into logs, one per turn."""
    for _, group in groupby(items, lambda item: keys.turn_of(item["sk"])):
        yield log_of(group)


def log_of(items: Iterable[Item]) -> Log:
    """Make a log of one turn's items, whatever their order.

    A place that bears only a seal ends the log; in place of the header it keeps the turn from beginning.
    """
    header, records = None, list[Item]()
    for item in sorted(items, key=lambda item: str(item["sk"])):
        if "sealed_at" in item:
            return Log(header, records, ended=True)
        if keys.is_header(item["sk"]):
            header = item
            continue
        records.append(item)
        if item.get("ended_as") in CLOSING:
            return Log(header, records, ended=True)
    return Log(header, records, ended=False)
