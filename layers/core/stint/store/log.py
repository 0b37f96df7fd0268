"""Logs in the table: a header, and records in order up to the one that closes the log, or a seal.

A log is its own fence. Each index is a key that is written once: one writer gets it, and every other one is refused. To
stop a writer that may be dead, another process writes a record at the writer's next index. This needs no clock, and
works without a lease.

- An **ending** closes the log, or lets it wait for its client. It is the last record's `ended_as`.
- A **fence** is an empty record. It stops a process that has resumed a completed turn; the turn stays completed.
- A **seal** (`sealed_at`) is not part of the log. It is where the writer of a deleted object, or of a turn that has not
  begun, writes next, and expires after an hour.

The states of a turn, by its header and last record, and what the operations of `TurnStore` do:

    state           header and last record             put_header   append     seal(ending)         get
    unknown         none                               stored       -          seal as header       NotFound
    never begins    seal as header                     refused      -          unchanged            NotFound
    running         header; none, or without an end    refused      stored     ending               in_progress
    awaiting input  header; awaiting_input             refused      stored     ending if asked for  awaiting_input
    completed       header; completed, or a fence      refused      stored     fence                completed
    closed          header; failed or cancelled        refused      ignored    unchanged            failed, cancelled
    deleted         seal as header and next record     refused      refused    unchanged            NotFound

- `append` writes the index that its writer counts as the next one. It raises Interrupted if that index is taken, in any
  state. Readers ignore the records after a closing one.
- `seal` repeats with the record that it met, until it writes an index or finds the log closed. It leaves a full log
  of LAST_INDEX + 1 records as it is.
- A deletion first marks the session. Then it seals the next index, unless the log is closed, and replaces the header
  and the pending calls by seals (`Deletion`).

In the log of a response, every ending closes it, so it has no fence. `ResponseStore.seal` raises NotFound for a
response without a header.

`SessionOpener.reconcile` compares a session's log with the lease that a request has acquired:

    the lease was               the history
    released                    is known if it ends with `last`; otherwise it is read from the last known turn on. A
                                last turn that is running is sealed, because no other process can have the lease
    taken over                  is read after the holder's turn was sealed
    taken over, to resume the   is read, and then the turn is sealed, unless the holder has stored the results that the
    holder's turn               client sends again

docs/decisions.md, entry 15, has the reasons.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from typing import NamedTuple

from stint.domain.run_outcome import RunStatus
from stint.store import keys
from stint.store.documents import context_size, json_size
from stint.store.items import Item

ENDS = "sk, ended_as, sealed_at"
"""The attributes that show how far a log goes and whether it ended. A fence has `ended_as`, too."""

CLOSING = (RunStatus.failed, RunStatus.cancelled)
"""Endings that no record of a turn may follow. A turn that waits for input, or is complete, may be resumed."""


class LogItems(NamedTuple):
    """The items of a log. `header` is None if it never began. `ended` means that no record may follow.

    `lease` is the lease record of a response, if there is one.
    """

    header: Item | None
    records: list[Item]
    ended: bool
    lease: Item | None = None

    @property
    def ended_as(self) -> str | None:
        """Return the status that the last record ends the turn with; None while the turn runs."""
        return self.records[-1].get("ended_as") if self.records else None

    @property
    def compacts(self) -> bool:
        """Return whether a record replaces what is before it, in this log and in those before."""
        return any("compacts" in item for item in self.records)

    @property
    def compacted(self) -> "LogItems":
        """Return the log without the records before the last one that replaces them."""
        first = max((place for place, item in enumerate(self.records) if "compacts" in item), default=0)
        return self._replace(records=self.records[first:])

    @property
    def skipped(self) -> int:
        """Count the bytes of JSON of what a record of the log replaces."""
        return self.context_size - sum(map(context_size, self.compacted.records)) if self.compacts else 0

    @property
    def needed_size(self) -> int:
        """Count the bytes of JSON that later model calls need."""
        return self.context_size - self.skipped

    @property
    def items(self) -> list[Item]:
        return [*([self.header] if self.header else []), *self.records]

    @property
    def size(self) -> int:
        """Count the bytes of JSON of header and records."""
        return sum(map(json_size, self.items))

    @property
    def context_size(self) -> int:
        """Count the bytes of JSON of header and records, without large generated images."""
        return sum(map(context_size, self.items))


async def turn_logs(items: AsyncIterable[Item]) -> AsyncGenerator[LogItems, None]:
    """Cut the sorted items of a session into logs, one per turn."""
    group: list[Item] = []
    async for item in items:
        if group and keys.turn_of(item["sk"]) != keys.turn_of(group[0]["sk"]):
            yield turn_log(group)
            group = []
        group.append(item)
    if group:
        yield turn_log(group)


async def first_logs(items: AsyncIterable[Item], limit: int, max_bytes: int) -> tuple[list[LogItems], bool]:
    """Return the first logs of a session's sorted items, and whether others follow.

    It ends with the log that reaches `limit` or `max_bytes` of JSON, and reads the first item of the next one. Turns
    that never began do not count.
    """
    logs, group, total = list[LogItems](), list[Item](), 0
    async for item in items:
        if "sealed_at" in item and keys.is_header(item["sk"]):
            continue
        if group and keys.turn_of(item["sk"]) != keys.turn_of(group[0]["sk"]):
            log, group = turn_log(group), []
            if log.header is not None:
                logs.append(log)
                total += log.size
            if len(logs) >= limit or total >= max_bytes:
                return logs, True
        group.append(item)
    log = turn_log(group)
    return [*logs, log] if log.header is not None else logs, False


def turn_log(items: Iterable[Item]) -> LogItems:
    """Make a log of one turn's items, whatever their order. A seal in place of the header keeps it from beginning."""
    found = list(items)
    header = next((item for item in found if keys.is_header(item["sk"])), None)
    # The records of a turn that is being deleted may still be there. None of them counts.
    if header is not None and "sealed_at" in header:
        return LogItems(None, [], ended=True)
    records = [item for item in found if not keys.is_header(item["sk"])]
    return _cut(header, records, CLOSING)


def response_log(items: Iterable[Item]) -> LogItems:
    """Make a log of a response's items, whatever their order; any ending closes it."""
    found = list(items)
    header = next((item for item in found if keys.is_response_header(item["sk"])), None)
    log = _cut(header, [item for item in found if keys.is_response_record(item["sk"])])
    return log._replace(lease=next((item for item in found if keys.is_response_lease(item["sk"])), None))


def _cut(header: Item | None, records: list[Item], closing: tuple[str, ...] | None = None) -> LogItems:
    """Keep the records up to one whose ending closes the log, or a seal; without `closing` every ending does."""
    kept = list[Item]()
    # `seal` adds the record that it met to those that it has read, so they may be out of order.
    for item in sorted(records, key=lambda item: str(item["sk"])):
        if "sealed_at" in item:
            return LogItems(header, kept, ended=True)
        kept.append(item)
        if "ended_as" in item and (closing is None or item["ended_as"] in closing):
            return LogItems(header, kept, ended=True)
    return LogItems(header, kept, ended=False)
