"""The packed vector index.

The ideas of blocks, the manifest and hidden rows are in the package's docstring. This module has the order in which
each operation reads and writes them:

  upsert              blocks, then the manifest, then perhaps a merge
  update_attributes   reads the rows, and writes them again as an upsert does
  delete              the manifest with a block of deleted keys: the rows are hidden; then the rewrites that purge them
  get                 the manifest if it has changed, then the keys of blocks, newest first, until all are found
  query               the manifest if it has changed, then all blocks that are not in memory, newest first
  drop                the manifest, then all objects: a search that reads it in between finds no index

If the store would be too large, what is hidden is removed first, and the write is tried once more.
"""

import asyncio
import json
from collections.abc import Sequence

import numpy as np

from stint.dataclasses import replace
from stint.domain.errors import Conflict, NotFound, StoreUnavailable, TooLarge
from stint.domain.filters import Attributes
from stint.retrieval.entries import check_entries, check_query, last_of_each_key
from stint.retrieval.objects import ObjectStore
from stint.retrieval.packed.block import Block, Mask, Row, make_row, split
from stint.retrieval.packed.block_writer import BlockWriter, Content
from stint.retrieval.packed.manifest import BlockInfo, Manifest
from stint.retrieval.packed.manifests import PREFIX, Manifests, Snapshot
from stint.retrieval.packed.reading import Blocks
from stint.retrieval.packed.scan import FoundRow, Scan, live_rows, make_found, rows_of
from stint.retrieval.packed.unused import refuse_late
from stint.retrieval.port import Entry, Hit, IndexQuery

STORE_BYTES = 512_000_000
"""Largest index. A search that finds none of it in memory reads most of it."""
ATTEMPTS = 5
"""Attempts of an operation whose blocks are merged while it reads them."""


class PackedIndex:
    """A VectorIndex over objects of a bucket. A process holds at most `held_bytes` of blocks."""

    def __init__(self, objects: ObjectStore, held_bytes: int, store_bytes: int = STORE_BYTES) -> None:
        self._objects = objects
        self._most = store_bytes
        self._manifests = Manifests(objects)
        self._blocks = Blocks(objects, held_bytes)
        self._writer = BlockWriter(objects, self._manifests, self._blocks)

    @property
    def held_bytes(self) -> int:
        """Return the size of the blocks in memory."""
        return self._blocks.held_bytes

    async def create(self, index: str, dimension: int) -> None:
        manifest = await self._manifests.create(index, Manifest(dimension))
        if manifest.dimension != dimension:
            raise Conflict(f"Vector index {index!r} has dimension {manifest.dimension}, not {dimension}.")

    async def upsert(self, index: str, entries: Sequence[Entry]) -> None:
        dimension = (await self._manifests.last_known(index)).manifest.dimension
        check_entries(entries, dimension)
        rows = await asyncio.to_thread(lambda: [make_row(entry) for entry in last_of_each_key(entries)])
        await self._append(index, [(part, ()) for part in split(rows, dimension)], dimension)

    async def update_attributes(self, index: str, keys: Sequence[str], attributes: Attributes) -> None:
        for _ in range(ATTEMPTS):
            manifest = (await self._manifests.read(index)).manifest
            try:
                rows = [replace(row, attributes=attributes) for row in await self._rows(index, manifest, keys)]
            except NotFound:  # a block was merged into another after the manifest was read
                continue
            # As deleted keys, those that are replaced count as a reason to rewrite the blocks that have them.
            replaced = sorted(row.key for row in rows)
            parts = list(split(rows, manifest.dimension))
            contents = [(part, replaced if at == 0 else ()) for at, part in enumerate(parts)]
            return await self._append(index, contents, manifest.dimension)
        raise StoreUnavailable(self._rewritten(index))

    async def _rows(self, index: str, manifest: Manifest, keys: Sequence[str]) -> list[Row]:
        """Return the rows with these keys. Raises NotFound if a block was merged into another."""
        wanted, hidden, rows = {key.encode() for key in keys}, set[bytes](), list[Row]()
        async for info, block in self._blocks.each(index, manifest.blocks[::-1] if wanted else ()):
            alive = live_rows(block, hidden) & rows_of(block, wanted)
            if alive.any():
                rows += (await self._blocks.whole(index, info)).rows(alive)
        return rows

    async def delete(self, index: str, keys: Sequence[str]) -> None:
        manifest = (await self._manifests.read(index)).manifest
        if not keys:
            return
        if manifest.blocks:
            # The first write hides all rows at once. What follows may be stopped, and is finished by a repetition.
            await self._append(index, [((), sorted(set(keys)))], manifest.dimension)
            await self._writer.purge(index, {key.encode() for key in keys})
        await self._writer.remove_unused(index)

    async def _append(self, index: str, contents: Sequence[Content], dimension: int) -> None:
        """Write blocks, add them to the manifest, and merge if there are many."""
        written: list[BlockInfo] = []
        try:
            for content in contents:
                written.append(await self._writer.write(index, content, dimension))
            # All blocks are written before the first is named, so that a search finds all chunks of an upsert or none.
            changed = await self._add(index, written, dimension)
        except (Conflict, NotFound, TooLarge):
            # Only then are they in no manifest for sure: a write without an answer may have added them.
            await self._writer.remove(index, written)
            raise
        if changed is not None:
            await self._writer.tidy(index, changed)

    async def _add(self, index: str, written: Sequence[BlockInfo], dimension: int) -> Manifest | None:
        def add(manifest: Manifest) -> Manifest | None:
            refuse_late(index, written)
            if manifest.dimension != dimension:
                raise Conflict(f"Vector index {index!r} was created again, with another dimension.")
            longer = manifest.with_blocks([*manifest.blocks, *written])
            if longer.size > self._most and any(block.rows for block in written):
                raise TooLarge(self._refusal(index, longer.size))
            return longer

        if not written:
            return None
        try:
            return await self._manifests.change(index, add)
        except TooLarge:
            snapshot = await self._manifests.read(index)
            if not any(block.deleted for block in snapshot.manifest.blocks):
                raise
            await self._writer.remove_hidden(index, snapshot.manifest)
            return await self._manifests.change(index, add)

    def _refusal(self, index: str, size: int) -> str:
        return (
            f"Vector index {index!r} would have {size // 1_000_000} MB; the index `packed` holds at most "
            f"{self._most // 1_000_000}. Use the index `s3-vectors` (STINT_VECTOR_INDEX), or several vector stores."
        )

    async def get(self, index: str, keys: Sequence[str]) -> dict[str, Hit]:
        for _ in range(ATTEMPTS):
            manifest = (await self._manifests.read(index)).manifest
            try:
                hits = await self._hits(index, await self._find(index, manifest, keys))
            except NotFound:  # a block was merged into another after the manifest was read
                continue
            return {hit.key: hit for hit in hits}
        raise StoreUnavailable(self._rewritten(index))

    async def _find(self, index: str, manifest: Manifest, keys: Sequence[str]) -> list[FoundRow]:
        """Return the visible rows with these keys. Raises NotFound if a block was merged into another."""
        wanted, rows, newest_first = {key.encode() for key in keys}, list[FoundRow](), manifest.blocks[::-1]
        async for info, names in self._blocks.keys(index, newest_first if wanted else ()):
            if here := wanted.intersection(names.keys.tolist()):
                block = await self._blocks.read(index, info, newest_first)
                found_here = np.flatnonzero(rows_of(block, here)).tolist()
                rows += [make_found(info.name, block, row, 0.0) for row in found_here]
            # Older blocks may have rows with the same keys, which these hide.
            wanted.difference_update(here, names.deleted.tolist())
            if not wanted:
                break
        return rows

    async def query(self, index: str, query: IndexQuery) -> list[Hit]:
        for _ in range(ATTEMPTS):
            snapshot = await self._manifests.read(index)
            check_query(query, snapshot.manifest.dimension)
            try:
                return await self._search(index, snapshot, query)
            except NotFound:  # a block was merged into another after the manifest was read
                continue
        raise StoreUnavailable(self._rewritten(index))

    def _rewritten(self, index: str) -> str:
        return f"Vector index {index!r} is rewritten too often to be read. Try again."

    async def _search(self, index: str, snapshot: Snapshot, query: IndexQuery) -> list[Hit]:
        scan = Scan(query)
        newest_first = snapshot.manifest.blocks[::-1]
        # Which rows are hidden depends on the manifest only, so it is computed once for each version.
        known = snapshot.alive if len(snapshot.alive) == len(newest_first) else None
        alive: dict[str, Mask] = known if known is not None else {}
        hidden: set[bytes] = set()

        def look(part: Sequence[tuple[BlockInfo, Block]]) -> None:
            for info, block in part:
                if known is None:
                    alive[info.name] = live_rows(block, hidden)
                scan.add(info.name, block, alive[info.name])

        async for part in self._blocks.parts(index, newest_first):
            await asyncio.to_thread(look, part)
        # After the last block: a search that was interrupted knows only a part.
        snapshot.alive.update(alive)
        return await self._hits(index, await asyncio.to_thread(scan.results))

    async def _hits(self, index: str, every: Sequence[FoundRow]) -> list[Hit]:
        records = await self._blocks.records(index, every)
        return [make_hit(found, records[found.key]) for found in every]

    async def drop(self, index: str) -> None:
        # First, so that no writer can add a block to an index whose objects are being deleted.
        await self._manifests.delete(index)
        await self._objects.delete_all(f"{PREFIX}{index}/")


def make_hit(found: FoundRow, record: bytes) -> Hit:
    text, document, generation, metadata = json.loads(record.decode("utf-8", "surrogatepass"))
    return Hit(
        found.key, found.score, text, document, generation=generation, attributes=found.attributes, metadata=metadata
    )
