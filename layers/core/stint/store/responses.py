"""Responses in the table: a header, an append-only log in which every place is written once, and a list entry."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import pack_name, unpack_name
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.domain.paging import MAX_BYTES, Page
from stint.store import keys
from stint.store.background import BackgroundStore
from stint.store.blobs import Blobs
from stint.store.documents import Documents, to_json
from stint.store.failures import ConditionFailed
from stint.store.log import ENDS, LogItems, response_log
from stint.store.partitions import delete_partition, query_shards
from stint.store.response_logs import ROUND, ResponseLogs
from stint.store.table import Table
from stint.store.tombstones import mark_deleted, new_seal, read_marked

Order = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True)
class Chain:
    """A response behind those that it continues from, oldest first; `complete` tells that none was left out."""

    links: list[StoredResponse]
    complete: bool


class ResponseStore:
    """A response exists while its header does and is not marked; ids that name none raise NotFound.

    It is the log that keeps writers apart: each place is given once. Records behind an ending are ignored.
    """

    def __init__(self, table: Table, documents: Documents, blobs: Blobs, background: BackgroundStore) -> None:
        self._table = table
        self._documents = documents
        self._blobs = blobs
        self._background = background
        self._logs = ResponseLogs(table, documents)

    def put(self, tenant: str, header: ResponseHeader) -> None:
        """Begin a response under its own new id: header and list entry in one call, a unit each when they are small."""
        key, entry = keys.response(tenant, header.response_id), keys.response_entry(tenant, header.response_id)
        packed = self._documents.pack(key._asdict(), header, keys.response_blobs(tenant, header.response_id))
        listed = {"model": header.model, "created_at": header.created_at}
        self._table.put_many([packed, entry._asdict() | listed])

    def append(self, tenant: str, response_id: str, index: int, record: ResponseRecord) -> None:
        """Add a record at the next place of a response's log.

        Raises Interrupted when somebody else's record stands there: the response was sealed, or deleted. Raises
        Conflict when only the place for the ending is left.
        """
        if index == keys.LAST_INDEX and record.ending is None:
            raise Conflict(
                f"Response {response_id} has {index} records, the most it can have: create another response.",
                code="response_full",
            )
        try:
            self._write(tenant, response_id, index, record)
        except ConditionFailed:
            raise Interrupted(f"Response {response_id} was ended by another request, or deleted.") from None

    def _write(self, tenant: str, response_id: str, index: int, record: ResponseRecord) -> None:
        item = keys.response_record(tenant, response_id, index)._asdict()
        if record.ending is not None:
            item["ended_as"] = record.ending.status.value
        self._documents.put_new(item, record, keys.response_blobs(tenant, response_id))

    def seal(
        self, tenant: str, response_id: str, record_of: Callable[[StoredResponse], ResponseRecord]
    ) -> StoredResponse:
        """End a response whose writer may be gone, and return it as it is then; one that has ended is left as it is.

        `record_of` makes the last record from the log before it. What the writer stores meanwhile is kept, and its next
        record is refused. Raises NotFound.
        """
        while True:
            stored = self.get(tenant, response_id)
            if stored.ending is not None:
                return stored
            record = record_of(stored)
            try:
                self._write(tenant, response_id, len(stored.records), record)
            except ConditionFailed:
                continue
            size = stored.size + len(to_json(record))
            return StoredResponse(stored.header, [*stored.records, record], size)

    def get(self, tenant: str, response_id: str) -> StoredResponse:
        """Read a response: one Query per MB, and the blobs side by side."""
        log = self._logs.find(tenant, response_id)
        if log is None:
            raise NotFound("Response", response_id)
        return self._logs.read([log])[0]

    def find_many(self, tenant: str, ids: Sequence[str], max_bytes: int) -> tuple[list[StoredResponse], bool]:
        """Read responses, up to 16 side by side, and tell whether some were left out.

        Those that do not exist are skipped. At most `max_bytes` of JSON are read, but at least one response.
        """
        found, cut = self._find_fitting(tenant, ids, max_bytes)
        return self._logs.read(found), cut

    def chain(self, tenant: str, response_id: str, max_bytes: int | None = None) -> Chain:
        """Read a response and those that it continues from, up to 16 side by side.

        With `max_bytes` of JSON, the newest links that fit, and at least one. Raises NotFound with the id of a link
        that was deleted.
        """
        chosen: list[LogItems] = []
        total, wanted = 0, [response_id]
        while wanted:
            for link, log in zip(wanted, self._logs.find_many(tenant, wanted), strict=True):
                if log is None:
                    raise NotFound("Response", link)
                total += log.size
                if chosen and max_bytes is not None and total > max_bytes:
                    return Chain(self._logs.read(chosen[::-1]), complete=False)
                chosen.append(log)
            wanted = [unpack_name("resp", link) for link in self._logs.read_header(chosen[-1]).ancestors]
        return Chain(self._logs.read(chosen[::-1]), complete=True)

    def list(
        self, tenant: str, *, after: str | None = None, limit: int = 20, model: str | None = None, order: Order = "desc"
    ) -> Page[StoredResponse]:
        """List responses by creation, those behind `after`: up to MAX_BYTES of JSON, at least one.

        One that is deleted between the reads is left out. Raises NotFound when `after` is no response.
        """
        if after is not None and self._table.get(keys.response_entry(tenant, after)) is None:
            raise NotFound("Response", after)
        while True:
            ids, more = query_shards(
                self._table,
                keys.responses(tenant),
                after=after,
                limit=limit,
                newest_first=order == "desc",
                model=model,
            )
            found, cut = self._find_fitting(tenant, ids, MAX_BYTES)
            if found or not more or not limit:
                return Page(self._logs.read(found), more or cut)
            after = ids[-1]

    def _find_fitting(self, tenant: str, ids: Sequence[str], max_bytes: int) -> tuple[Sequence[LogItems], bool]:
        """Find the leading responses that fit into `max_bytes`, and tell whether some do not."""
        chosen: list[LogItems] = []
        total = 0
        for at in range(0, len(ids), ROUND):
            for log in filter(None, self._logs.find_many(tenant, ids[at : at + ROUND])):
                total += log.size
                if chosen and total > max_bytes:
                    return chosen, True
                chosen.append(log)
        return chosen, False

    def keep(self, tenant: str, response_id: str, body: bytes) -> str:
        """Put a body that belongs to no record among a response's blobs, and give its key."""
        return self._documents.put_body(keys.response_blobs(tenant, response_id), body)

    def mark_deleted(self, tenant: str, response_id: str) -> None:
        """Hide a response from every read at once; marking it again is no error. Raise NotFound when there is none."""
        if mark_deleted(self._table, keys.response(tenant, response_id)) is None:
            raise NotFound("Response", response_id)

    def delete(self, tenant: str, response_id: str, deadline: float = float("inf")) -> bool:
        """Stop whoever runs a marked response, and delete it; return whether nothing is left to do.

        It may be stopped and repeated at any point; a response that is gone is done. `deadline` is on the monotonic
        clock. Raise NotMarkedDeleted when the response has no mark.
        """
        key = keys.response(tenant, response_id)
        if read_marked(self._table, key, "Response", response_id) is None:
            return True
        self._table.delete(keys.response_entry(tenant, response_id))
        self._stop(tenant, response_id)
        for _ in delete_partition(self._table, key.pk, spare=key.sk):
            if time.monotonic() >= deadline:
                return False
        for _ in self._blobs.delete_prefix(keys.response_blobs(tenant, response_id)):
            if time.monotonic() >= deadline:
                return False
        self._table.delete(key)
        return True

    def _stop(self, tenant: str, response_id: str) -> None:
        """Put a seal wherever the response's writer may write next, for an hour, unless nobody can be writing."""
        pk, lease = keys.response_lease(tenant, response_id)
        items = list(self._table.query(pk, before=keys.AFTER_RECORDS, attributes=ENDS))
        running = not response_log(items).ended or any(item["sk"] == lease for item in items)
        while not (log := response_log(items)).ended:
            place = keys.response_record(tenant, response_id, len(log.records))._asdict()
            try:
                self._table.put_new(place | new_seal())
                break
            except ConditionFailed as refused:
                items.append(refused.found)
        if running:
            self._background.stop(tenant, response_id)


def place_behind(header: ResponseHeader) -> tuple[list[str], int]:
    """Give the ancestors and the depth of a response that continues from another one.

    The ancestors are the other one, those above it, and so on, newest first, up to one whose depth is a multiple of
    ROUND: its own ones lead on, so that no header grows with the chain.
    """
    packed = pack_name(header.response_id)
    if header.depth % ROUND == 0:
        return [packed], header.depth + 1
    return [packed, *header.ancestors], header.depth + 1
