"""Responses in the table: a header, an append-only log whose indexes are written once, and a list entry.

`stint.store.log` tells how a log separates its writers. No lease is needed for that: a request runs its own response,
and a worker has the lease only so that two workers do not do the same work. A response's partition has:

    key              record
    {index}          record of the log
    lease            lease, attempts and signals (`stint.store.response_leases`, `stint.store.run_signals`)
    meta             header
    stream:{first}   batch of stored events (`stint.store.background`)

    state of the log   append         seal              deletion
    running            stored         ending            the next index, the lease and the stream are sealed
    ended              ignored        unchanged         the lease and the stream are sealed if there is a lease record
    being deleted      Interrupted    NotFound          goes on
    no header          -              NotFound          nothing is left to do

A deletion removes the list entry first and the header, and the ending with it, last: it can be stopped anywhere, and a
repetition finds by the header that there is work, and by the ending that nothing need be sealed again.
"""

import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, ResponseStatus, StoredResponse
from stint.domain.paging import MAX_BYTES, Page
from stint.store import keys
from stint.store.attempts import attempt_attributes
from stint.store.background import BackgroundStore
from stint.store.blobs import Blobs
from stint.store.documents import Documents, to_json
from stint.store.failures import ConditionFailed
from stint.store.items import Item, mark_of
from stint.store.keys import response_partials
from stint.store.log import ENDS, LogItems, response_log
from stint.store.owners import add_owners, remove_owners
from stint.store.parallel import map_concurrently
from stint.store.records import delete_partition, expiry, is_expired, mark_deleted, new_seal, query_shards, read_marked
from stint.store.response_logs import CALLS, NO_LINKS, ROUND, Chain, ChainReader, KnownLinks, ResponseLogs
from stint.store.table import Table

Order = Literal["asc", "desc"]


class ResponseIds(NamedTuple):
    """The next ids of a list, those of them whose responses may have a status, and whether more ids follow."""

    ids: list[str]
    candidates: list[str]
    more: bool


class ResponseStore:
    """Responses. One exists while its header exists and is not marked as deleted; otherwise methods raise NotFound.

    The log separates writers, because each index is written once. Records after an ending are ignored.
    """

    def __init__(self, table: Table, documents: Documents, blobs: Blobs, background: BackgroundStore) -> None:
        self._table = table
        self._documents = documents
        self._blobs = blobs
        self._background = background
        self._logs = ResponseLogs(table, documents)

    async def put(
        self, tenant: str, header: ResponseHeader, users: Sequence[str] = (), attempt: RequestAttempt = NO_ATTEMPT
    ) -> None:
        """Store a response under its new id: header and list entry in one call, one unit each if they are small.

        Before that, a unit is written for each of its end users, and for each of those of its conversation.
        """
        key, entry = keys.response(tenant, header.response_id), keys.response_entry(tenant, header.response_id)
        end = expiry(header.expires_at)
        owned = end | await self._add_owners(tenant, header, users)
        packed = await self._documents.pack(
            key._asdict() | owned, header, keys.response_blobs(tenant, header.response_id, expires=bool(end))
        )
        listed = {"model": header.model, "created_at": header.created_at} | attempt_attributes(attempt)
        # One call for both, without a condition: the id is new. If it fails, the list may have an entry without a
        # response, or the other way round. Lists skip the former, and the caller of the latter has got an error.
        await self._table.put_many([packed, entry._asdict() | listed | end])

    async def _add_owners(self, tenant: str, header: ResponseHeader, users: Sequence[str]) -> Item:
        if users and header.conversation_id is not None:
            await add_owners(self._table, tenant, users, "conversation", header.conversation_id)
        return await add_owners(
            self._table, tenant, users, "response", header.response_id, expires_at=header.expires_at
        )

    async def append(
        self, tenant: str, response_id: str, index: int, record: ResponseRecord, expires_at: int | None = None
    ) -> None:
        """Append a record to a response's log. `expires_at` is that of the response.

        Raises Interrupted if its index has another record, because the response was sealed or deleted. Raises Conflict
        if only the index of the ending is left.
        """
        # The last index is kept free for an ending, so that each log can be closed.
        if index == keys.LAST_INDEX and record.ending is None:
            raise Conflict(
                f"Response {response_id} has {index} records, the maximum. Create another response.",
                code="response_full",
            )
        try:
            await self._write(tenant, response_id, index, record, expires_at=expires_at)
        except ConditionFailed:
            raise Interrupted(f"Response {response_id} was ended by another request, or deleted.") from None

    async def _write(
        self, tenant: str, response_id: str, index: int, record: ResponseRecord, expires_at: int | None
    ) -> None:
        item = keys.response_record(tenant, response_id, index)._asdict() | expiry(expires_at)
        if record.ending is not None:
            item["ended_as"] = record.ending.status.value
        item |= mark_of(record.compaction)
        prefix, ending = keys.response_blobs(tenant, response_id, expires=expires_at is not None), record.ending
        counted = ending.consumption if ending else None
        await self._documents.put_record(item, record, prefix, counted)

    async def seal(
        self, tenant: str, response_id: str, record_of: Callable[[StoredResponse], ResponseRecord]
    ) -> StoredResponse:
        """End a response whose writer may be dead, and return it. One that has ended is unchanged.

        `record_of` makes the last record from the log before it. Records that the writer stores in the meantime are
        kept, and its next one is refused. Raises NotFound.
        """
        while True:
            stored = await self.get(tenant, response_id)
            if stored.ending is not None:
                return stored
            record = record_of(stored)
            try:
                await self._write(tenant, response_id, len(stored.records), record, expires_at=stored.header.expires_at)
            except ConditionFailed:  # the writer is alive: its record counts, and the next index is tried
                continue
            size = stored.size + len(to_json(record))
            return StoredResponse(stored.header, [*stored.records, record], size)

    async def get(self, tenant: str, response_id: str) -> StoredResponse:
        """Read a response: one Query per MB, and the blobs concurrently."""
        log = await self._logs.find(tenant, response_id)
        if log is None:
            raise NotFound("Response", response_id)
        return (await self._logs.read([log]))[0]

    async def read_rest(self, tenant: str, response_id: str, start: int) -> list[ResponseRecord]:
        """Read the records of a response's log from an index on. Raises NotFound if the response was deleted."""
        return await self._logs.read_rest(tenant, response_id, start)

    async def find_many(self, tenant: str, ids: Sequence[str], max_bytes: int) -> tuple[list[StoredResponse], bool]:
        """Read responses, up to 16 concurrently, and return whether some were omitted.

        Those that do not exist are skipped. At most `max_bytes` of JSON are read, but at least one response.
        """
        found, cut = await self._find_fitting(tenant, ids, max_bytes)
        return await self._logs.read(found), cut

    async def chain(
        self, tenant: str, response_id: str, max_bytes: int | None = None, known: KnownLinks = NO_LINKS
    ) -> Chain:
        """Read a response, and then those that it continues, up to 100 in a round.

        Those that are `known` are only checked for their deletion, with one call for 100, in the first round if the
        caller knows what the response continues. With `max_bytes` of JSON, the chain has the newest links that fit, at
        least one. Raises NotFound with the id of a deleted link.
        """
        return await ChainReader(self._logs, tenant, max_bytes, known).read(response_id)

    async def list(
        self, tenant: str, *, after: str | None = None, limit: int = 20, model: str | None = None, order: Order = "desc"
    ) -> Page[StoredResponse]:
        """List responses by creation, starting after `after`: up to MAX_BYTES of JSON, at least one.

        A response that is deleted between the reads is omitted. Raises NotFound if `after` does not exist.
        """
        await self._require_entry(tenant, after)
        while True:
            ids, more = await query_shards(
                self._table,
                keys.responses(tenant),
                after=after,
                limit=limit,
                newest_first=order == "desc",
                model=model,
            )
            found, cut = await self._find_fitting(tenant, ids, MAX_BYTES)
            if found or not more or not limit:
                return Page(await self._logs.read(found), more or cut)
            after = ids[-1]

    async def find_ids(
        self, tenant: str, *, after: str | None, limit: int, model: str | None, order: Order, status: ResponseStatus
    ) -> ResponseIds:
        """Return the next `limit` ids by creation, and which of them may have a status, without reading the responses.

        Those that ended have the status of their ending. Those without an ending are candidates for each. A Query each
        of one record. Raises NotFound if `after` does not exist.
        """
        await self._require_entry(tenant, after)
        shards, newest_first = keys.responses(tenant), order == "desc"
        ids, more = await query_shards(
            self._table, shards, after=after, limit=limit, newest_first=newest_first, model=model
        )
        ended = await map_concurrently(lambda each: self._logs.ended_as(tenant, each), ids, calls=CALLS)
        candidates = [each for each, found in zip(ids, ended, strict=True) if found in (None, status)]
        return ResponseIds(ids, candidates, more)

    async def _require_entry(self, tenant: str, after: str | None) -> None:
        if after is not None and await self._table.get(keys.response_entry(tenant, after)) is None:
            raise NotFound("Response", after)

    async def _find_fitting(self, tenant: str, ids: Sequence[str], max_bytes: int) -> tuple[Sequence[LogItems], bool]:
        """Return the leading responses that fit into `max_bytes`, and whether some do not."""
        chosen: list[LogItems] = []
        total = 0
        for at in range(0, len(ids), ROUND):
            for log in filter(None, await self._logs.find_many(tenant, ids[at : at + ROUND])):
                total += log.size
                if chosen and total > max_bytes:
                    return chosen, True
                chosen.append(log)
        return chosen, False

    async def put_body(self, tenant: str, response_id: str, body: bytes, *, expires: bool = False) -> str:
        """Store a body without a record among a response's blobs, and return its key."""
        return await self._documents.put_body(keys.response_blobs(tenant, response_id, expires=expires), body)

    async def mark_deleted(self, tenant: str, response_id: str) -> None:
        """Hide a response from all reads at once. It may be repeated. Raises NotFound."""
        item = await mark_deleted(self._table, keys.response(tenant, response_id))
        if item is None or is_expired(item):
            raise NotFound("Response", response_id)

    async def delete(self, tenant: str, response_id: str, deadline: float = float("inf")) -> bool:
        """Stop and delete a marked response, and return whether nothing is left to do.

        It may be stopped and repeated at any point. `deadline` is on the monotonic clock. Raises NotMarkedDeleted if
        the response exists without a mark.
        """
        key = keys.response(tenant, response_id)
        header = await read_marked(self._table, key, "Response", response_id)
        if header is None:
            return True
        await self._table.delete(keys.response_entry(tenant, response_id))
        # Before anything of the log is deleted: an index that becomes free could be written again.
        last = [key, *await self._stop(tenant, response_id)]
        # Header and ending are spared until the rest is gone; a repetition needs both.
        for pk in (key.pk, response_partials(tenant, response_id).pk):
            async for _ in delete_partition(self._table, pk, spare=[one.sk for one in last]):
                if time.monotonic() >= deadline:
                    return False
        # Objects after records, so that no record names an object that is gone.
        blobs = keys.response_blobs(tenant, response_id, expires="expires_at" in header)
        async for _ in self._blobs.delete_prefix(blobs):
            if time.monotonic() >= deadline:
                return False
        await remove_owners(self._table, tenant, header, "response", response_id)
        await self._table.delete_many(last)
        return True

    async def _stop(self, tenant: str, response_id: str) -> Sequence[keys.Key]:
        """Seal the next writes of a response's writer, for an hour, unless there can be none.

        Return the key of the ending, if there is one. It is deleted last, so that a repetition seals nothing.
        """
        pk = keys.response_records(tenant, response_id)
        items = [item async for item in self._table.query(pk, before=keys.AFTER_RECORDS, attributes=ENDS)]
        # With a lease record, a worker or a request that renewed its lease may still write, even after the ending.
        running = not (found := response_log(items)).ended or found.lease is not None
        while not (log := response_log(items)).ended:
            place = keys.response_record(tenant, response_id, len(log.records))._asdict()
            try:
                await self._table.put_new(place | new_seal())
                break
            except ConditionFailed as refused:
                items.append(refused.found)
        # Sealed after the log, because the log decides whether the response has ended.
        if running:
            await self._background.stop(tenant, response_id)
        return [keys.Key(pk, item["sk"]) for item in log.records[-1:] if "ended_as" in item]
