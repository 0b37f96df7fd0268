"""The stored streams of background responses: the events that each has sent so far.

A stream is a log, too: batches of events, each under the sequence number of its first event. The next batch has one
possible key, so two workers cannot both continue a stream. A worker that takes a response over must decide where the
stream goes on before it runs, because the last worker may be alive and add another batch: it freezes the next key.

    the next key   put_events(lease)   freeze(lease)     freeze()   end_events   deletion
    unwritten      written             frozen for it     frozen     written      sealed
    frozen for     its lease writes;   frozen for the    frozen     written      sealed
    a lease        others refused      new lease
    frozen         refused             frozen for it     frozen     written      sealed
    written        refused             refused           refused    refused      the key after it is sealed
    sealed         refused             refused           refused    refused      unchanged

Refused is Interrupted. A freeze without a lease is that of a process that ends the response: only the end may follow.
The end is made from the log, so it is the same whoever writes it. Readers skip keys that are frozen or sealed.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import suppress

from stint.domain.errors import Interrupted
from stint.domain.schema import Schema
from stint.store import keys
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.records import expiry, new_seal
from stint.store.table import NEW, Table

# A frozen key has no events. Any process that ends the response, or takes it over, may replace it.
UNWRITTEN = f"{NEW} OR attribute_exists(frozen_at)"
UNWRITTEN_OR_OWN = f"{NEW} OR frozen_by = :lease_id"


class EventBatch(Schema):
    """Events as JSON texts with successive sequence numbers."""

    events: list[str]


class BackgroundStore:
    """The stored streams of responses, in the responses' partitions.

    The response's existence is not checked. Nothing is written for an hour after its deletion.
    """

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    async def put_events(
        self,
        tenant: str,
        response_id: str,
        first_seq: int,
        events: list[str],
        lease_id: str = "",
        expires_at: int | None = None,
    ) -> None:
        """Store a batch of events, whose first number follows the last batch. `expires_at` is that of the response.

        Raises Interrupted if another worker's batch starts with that number, the stream is frozen there for another
        lease, or the response was deleted.
        """
        # The condition names the lease, so that a worker that has frozen the stream for itself goes on, and no other.
        item = _batch(tenant, response_id, first_seq, events, expires_at=expires_at)
        blobs, owner = keys.response_blobs(tenant, response_id, expires=expires_at is not None), {":lease_id": lease_id}
        try:
            await self._documents.put_new(
                item, EventBatch(events=events), blobs, condition=UNWRITTEN_OR_OWN, values=owner
            )
        except ConditionFailed:
            raise _lost(response_id) from None

    async def freeze(self, tenant: str, response_id: str, first_seq: int, lease_id: str | None = None) -> None:
        """Allow only `end_events`, and the worker with a lease, to store events from a sequence number on.

        It may be repeated, also for another lease.

        Raises Interrupted if a batch starts with that number, or the response was deleted.
        """
        item = keys.response_events(tenant, response_id, first_seq)._asdict()
        owner = {"frozen_by": lease_id} if lease_id else {}
        try:
            await self._table.put_new(
                item | {"event_count": 0, "frozen_at": int(time.time())} | owner, condition=UNWRITTEN
            )
        except ConditionFailed:
            raise _lost(response_id) from None

    async def end_events(
        self, tenant: str, response_id: str, first_seq: int, events: list[str], expires_at: int | None = None
    ) -> None:
        """Store the last events, whether or not the stream is frozen there. Raises Interrupted as `put_events`."""
        item = _batch(tenant, response_id, first_seq, events, expires_at=expires_at)
        blobs = keys.response_blobs(tenant, response_id, expires=expires_at is not None)
        try:
            await self._documents.put_new(item, EventBatch(events=events), blobs, condition=UNWRITTEN)
        except ConditionFailed:
            raise _lost(response_id) from None

    async def events(
        self, tenant: str, response_id: str, after_seq: int = -1, *, at_batch: bool = False
    ) -> AsyncGenerator[list[str], None]:
        """Read the stored events after a sequence number, batch by batch.

        `at_batch`: the number is the last one of a batch, as in a tail, so that no earlier batch is read.
        """
        pk, first = keys.response_records(tenant, response_id), max(after_seq + 1, 0)
        place = keys.response_events(tenant, response_id, first).sk
        # The caller may have stopped within a batch, whose key is before `first`.
        if first > 0 and not at_batch and (rest := await self._rest(pk, place, first)):
            yield rest
        async for item in self._table.query(pk, since=place):
            if "sealed_at" not in item and "frozen_at" not in item:
                yield await self._read(item)

    async def count_events(self, tenant: str, response_id: str) -> int:
        """Return the number of stored events, from the last batch."""
        pk, ends = keys.response_records(tenant, response_id), "sk, event_count"
        last: Item = await anext(self._table.query(pk, newest_first=True, page=1, attributes=ends), {})
        return (keys.first_event(last.get("sk", "")) or 0) + int(last.get("event_count", 0))

    async def _rest(self, pk: str, place: str, first: int) -> list[str]:
        """Read the events from `first` on in the batch that starts before it, if there are any."""
        item: Item = await anext(self._table.query(pk, before=place, newest_first=True, page=1), {})
        begins = keys.first_event(item.get("sk", ""))
        if begins is None or begins + int(item["event_count"]) <= first:
            return []
        return (await self._read(item))[first - begins :]

    async def _read(self, item: Item) -> list[str]:
        [raw] = await self._documents.read([item])
        return EventBatch.model_validate_json(raw).events

    async def stop(self, tenant: str, response_id: str) -> None:
        """Seal the next writes of a deleted response's worker: the lease, and the stream."""
        # The lease first: its worker then stops at its next look, and no other one begins.
        seal = new_seal()
        await self._table.put(keys.response_lease(tenant, response_id)._asdict() | seal)
        pk, ends = keys.response_records(tenant, response_id), "sk, event_count, sealed_at"
        while True:
            last: Item = await anext(self._table.query(pk, newest_first=True, page=1, attributes=ends), {})
            begins = keys.first_event(last.get("sk", ""))
            if begins is not None and "sealed_at" in last:
                return
            # A frozen key has no events, so the seal replaces it.
            place = 0 if begins is None else begins + int(last["event_count"])
            with suppress(ConditionFailed):
                item = keys.response_events(tenant, response_id, place)._asdict() | seal
                await self._table.put_new(item, condition=UNWRITTEN)
                return


def _batch(tenant: str, response_id: str, first_seq: int, events: list[str], expires_at: int | None) -> Item:
    key = keys.response_events(tenant, response_id, first_seq)
    return key._asdict() | {"event_count": len(events)} | expiry(expires_at)


def _lost(response_id: str) -> Interrupted:
    return Interrupted(f"Response {response_id} was taken over by another worker, or deleted.")
