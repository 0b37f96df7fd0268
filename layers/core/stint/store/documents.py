"""Documents in items: compact JSON, compressed if that saves a unit, in S3 if it is large.

A write costs a unit for each KB, so the form is chosen by units. The first one that fits is used:

    form                       when
    text in `doc`              it costs one unit, or no more than the compressed form
    compressed bytes in `doc`  the item stays below MAX_ITEM
    object in S3               otherwise; and for a document with large images, whose item has the rest as `brief`

An object is stored before its record, under a random name. So a record never names an object that does not exist yet,
and each writer of the same record has an object of its own. The writer whose record is refused deletes its object. If
it dies before that, the object is deleted with all others under the prefix of its session, response or other owner.
"""

import asyncio
import secrets
import zlib
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import TypeVar

from stint.domain.errors import NotFound, StoreUnavailable
from stint.domain.paging import MAX_BYTES
from stint.domain.receipts import Consumption
from stint.domain.schema import Schema
from stint.metering import count_writes
from stint.store.blobs import Blobs
from stint.store.failures import BlobMissing, ConditionFailed
from stint.store.items import Item, size, write_units
from stint.store.keys import Key
from stint.store.parallel import map_concurrently
from stint.store.table import NEW, Table

D = TypeVar("D", bound=Schema)

MANY_ITEMS = 1_000
"""Items of a list from which on their objects share what they have in common (`domain/field_names.py`)."""

MAX_ITEM = 300_000
"""Bytes of an item above which its document is stored in S3. DynamoDB refuses items of more than 400 KB."""

CHECK_SECONDS = 2.0
"""Maximum seconds of the read that shows whether a write without an answer took effect."""

IN_THREAD = 64_000
"""Bytes from which documents are compressed in a thread: 1 MB takes 40 ms, in which other streams would wait."""


class Documents:
    """Writes and reads documents as part of records.

    An item has its document in `doc` (text, or compressed bytes), or the `blob`, `length` and `sha256` of an object in
    S3. `size` is the document's bytes of JSON if `doc` is not that JSON.
    """

    def __init__(self, table: Table, blobs: Blobs) -> None:
        self._table = table
        self._blobs = blobs

    async def put_new(
        self,
        item: Item,
        document: Schema,
        prefix: str,
        *,
        condition: str = NEW,
        values: Item | None = None,
    ) -> None:
        """Write a record with a document if there is none, or if a condition holds. `prefix` is that of its blob.

        Raises ConditionFailed with the existing record, and then deletes the blob.
        """
        packed = await self.pack(item, document, prefix)
        try:
            await self._table.put_new(packed, condition=condition, values=values)
        except ConditionFailed:
            await self.delete_blob(packed)
            raise

    async def put_record(
        self, item: Item, document: Schema, prefix: str, consumption: Consumption | None = None
    ) -> None:
        """Write a record of a log if there is none.

        The record's own units are added to the `consumption` in it. Raises ConditionFailed as `put_new`.
        """
        packed = await pack_counted(lambda: self.pack(item, document, prefix), consumption)
        # Checked, because a step that is stored and not known to be would end its run, and be in the log all the same.
        try:
            await put_checked(self._table, packed)
        except ConditionFailed:
            await self.delete_blob(packed)
            raise

    async def put_body(self, prefix: str, body: bytes) -> str:
        """Store a body without a record under a prefix, and return its key."""
        return await self._blobs.put(prefix, body)

    async def pack(self, item: Item, document: Schema, prefix: str) -> Item:
        """Return the item with its document. A document that is too large is in S3 when this returns.

        One with large images is in S3, too, and the item has what models get of it as `brief`.
        """
        raw, brief = to_json(document), document.without_images()
        if brief is None:
            return await self.pack_json(item, raw, prefix)
        shown = to_json(brief)
        stored = await self._put_blob(item, raw, min(await _compress(raw), raw, key=len), prefix)
        return stored | {"brief": await _compress(shown), "brief_size": len(shown)}

    async def pack_json(self, item: Item, raw: bytes, prefix: str, *, short: bytes | None = None) -> Item:
        """Return the item with the JSON of its document. `short` is stored in its place if that fits into the item."""
        inline = raw if short is None else short
        measured = item if short is None else item | {"size": len(raw)}
        plain = measured | {"doc": inline.decode()} if len(inline) <= MAX_ITEM else None
        if plain and write_units(plain) == 1:
            return plain
        compressed = await _compress(inline)
        packed = item | {"doc": compressed, "size": len(raw)}
        chosen = plain if plain and write_units(plain) <= write_units(packed) else packed
        if size(chosen) <= MAX_ITEM:
            return chosen
        body = min(compressed if inline is raw else await _compress(raw), raw, key=len)
        return await self._put_blob(item, raw, body, prefix)

    async def _put_blob(self, item: Item, raw: bytes, body: bytes, prefix: str) -> Item:
        key = await self._blobs.put(prefix, body)
        return item | {"blob": key, "length": len(body), "sha256": sha256(body).digest(), "size": len(raw)}

    async def read(self, items: Sequence[Item], *, brief: bool = False) -> list[bytes]:
        """Return the JSON of each item's document; with `brief`, without large generated images.

        Those in S3 are fetched concurrently. Raises NotFound for a blob that was deleted in the meantime.
        """
        inline = [item.get("brief") if brief and "brief" in item else item.get("doc") for item in items]
        large = [item for item, doc in zip(items, inline, strict=True) if doc is None]
        fetched = iter(await map_concurrently(self._fetch, large))
        return [next(fetched) if doc is None else _inline(doc) for doc in inline]

    async def delete_blob(self, item: Item) -> None:
        """Delete the object in S3 with a record's document, if there is one."""
        if "blob" in item:
            await self._blobs.delete(item["blob"])

    async def _fetch(self, item: Item) -> bytes:
        try:
            body = await self._blobs.get(item["blob"], item["length"], item["sha256"])
        except BlobMissing as error:
            raise NotFound("Document", item["blob"]) from error
        return body if item["length"] == item["size"] else await _decompress(body)


async def pack_counted(pack: Callable[[], Awaitable[Item]], consumption: Consumption | None) -> Item:
    """Return an item in which a document's `consumption`, which counts one unit for it, counts all its units."""
    # The count is in the document, whose size it hardly changes: so it is packed again only if it needs more units.
    packed = await pack()
    if consumption is None or (units := write_units(packed)) == 1:
        return packed
    count_writes(consumption, units - 1)
    return await pack()


async def _compress(body: bytes) -> bytes:
    return zlib.compress(body) if len(body) < IN_THREAD else await asyncio.to_thread(zlib.compress, body)


async def _decompress(body: bytes) -> bytes:
    return zlib.decompress(body) if len(body) < IN_THREAD else await asyncio.to_thread(zlib.decompress, body)


def _inline(doc: str | bytes) -> bytes:
    return doc.encode() if isinstance(doc, str) else zlib.decompress(doc)


def json_size(item: Item) -> int:
    """Return the bytes of JSON of an item's document, without reading it."""
    return int(item["size"]) if "size" in item else len(item["doc"].encode())


def cut_history(found: Sequence[Item], max_bytes: int) -> list[Item]:
    """Return records that are too many for a model, oldest first, without the older ones; see `choose_first`."""
    from stint.domain.history_cut import choose_first  # noqa: PLC0415 - few histories are too long

    return list(found[choose_first([item["sk"] for item in found], [*map(context_size, found)], max_bytes) :])


def context_size(item: Item) -> int:
    """Return the bytes of JSON of what models get of an item's document."""
    return int(item["brief_size"]) if "brief_size" in item else json_size(item)


def to_json(document: Schema) -> bytes:
    """Return compact JSON. A small document is written without nulls if it reads back equal."""
    short = document.to_json(exclude_none=True)
    try:
        # Large documents are not parsed again: their nulls are a small part of them.
        same = len(short) <= MAX_ITEM and type(document).model_validate_json(short) == document
    except ValueError:  # a null was a required field's value
        same = False
    return short if same else document.to_json()


def fitting(sizes: Iterable[int]) -> int:
    """Return how many leading documents fit into one response. The first one always does."""
    totals = list(accumulate(sizes))
    return max(bisect_right(totals, MAX_BYTES), min(1, len(totals)))


async def put_checked(table: Table, item: Item) -> None:
    """Write a record if there is none. If no answer comes, read whose record is there.

    Raises:
        ConditionFailed: another writer's record is there.
        StoreUnavailable: the record was not written, or cannot be read soon.
    """
    sent = item | {"nonce": secrets.token_bytes(6)}
    try:
        await table.put_new(sent)
    except StoreUnavailable as error:
        # Only the nonce can tell whose record is there: another writer may have stored an equal step.
        if not error.unsure or not await is_written(table, sent):
            raise


async def is_written(table: Table, sent: Item) -> bool:
    """Return whether a record is as it was sent; False if there is none, or it cannot be read soon.

    Raises:
        ConditionFailed: another writer's record is there.
    """
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            found = await table.get(Key(sent["pk"], sent["sk"]))
    except (StoreUnavailable, TimeoutError):
        return False
    if found is not None and found != sent:
        raise ConditionFailed(found)
    return found is not None
