"""Reads of blocks: what a search needs from memory or the bucket, and the records of what was found.

A block begins with what a search compares, its vectors and words, and ends with the records of its chunks. So a search
reads the beginning of a block, and then only the records of the few chunks that it returns.

    block               read by a search        then
    in memory           nothing                 records of the chunks that were found, unless it is there as a whole
    of a small store    all of it, at once      nothing
    of a larger one     the beginning           records of the chunks that were found; close ones by one request

Blocks never change under their name, so one in memory is never outdated. One that was merged into another is missing in
the bucket: NotFound tells the caller to begin again with a newer manifest.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Container, Iterator, Sequence

from stint.retrieval.objects import ObjectStore
from stint.retrieval.packed.block import HEADER_BYTES, Block, BlockKeys, end_of_keys
from stint.retrieval.packed.manifest import BlockInfo
from stint.retrieval.packed.manifests import block_key
from stint.retrieval.packed.scan import FoundRow

AT_ONCE = 4
"""Blocks that are read concurrently, each of up to 8 MB."""
SMALL_PART = 4
"""A store is small if its blocks would take at most a quarter of the memory. They are read and held with their texts,
so that a search needs no request but that of the manifest."""
KEY_BYTES = 128
"""Bytes of a key for which the beginning of a block is read. One with longer keys takes another request."""
GAP = 64_000
"""Bytes between two records up to which they are read by one request."""


class BlockCache:
    """Blocks by the keys of their objects, up to a number of bytes. The least recently used ones are dropped first."""

    def __init__(self, most_bytes: int) -> None:
        self.most = most_bytes
        self._blocks: OrderedDict[str, Block] = OrderedDict()
        self.size = 0

    def get(self, key: str) -> Block | None:
        if key in self._blocks:
            self._blocks.move_to_end(key)
        return self._blocks.get(key)

    def add(self, key: str, block: Block, kept: Container[str]) -> None:
        """Hold a block if there is room. `kept` are the blocks of the same store, which are not dropped for it.

        A store that is larger than the cache is read from its start again and again: if each block took the place of
        the one that is needed next, none would ever be found.
        """
        if key in self._blocks:
            return
        free = self.most - self.size
        dropped = []
        for other, held in self._blocks.items():
            if free >= len(block.body):
                break
            if other not in kept:
                dropped.append(other)
                free += len(held.body)
        # Nothing is dropped for a block that does not fit in the end.
        if free >= len(block.body):
            self.drop(dropped)
            self._blocks[key] = block
            self.size += len(block.body)

    def drop(self, keys: list[str]) -> None:
        """Drop blocks. Missing ones are ignored."""
        for key in keys:
            if (held := self._blocks.pop(key, None)) is not None:
                self.size -= len(held.body)


class Blocks:
    """The blocks of indexes. Raises NotFound for one that was merged into another."""

    def __init__(self, objects: ObjectStore, held_bytes: int) -> None:
        self._objects = objects
        self._cache = BlockCache(held_bytes)

    @property
    def held_bytes(self) -> int:
        """Return the size of the blocks in memory."""
        return self._cache.size

    async def each(self, index: str, infos: Sequence[BlockInfo]) -> AsyncIterator[tuple[BlockInfo, Block]]:
        """Yield the part of each block that a search reads, in the order of `infos`."""
        async for part in self.parts(index, infos):
            for info, block in part:
                yield info, block

    async def parts(self, index: str, infos: Sequence[BlockInfo]) -> AsyncIterator[list[tuple[BlockInfo, Block]]]:
        """Yield the same in groups: up to AT_ONCE blocks that are read, and those between them that are in memory."""
        for part in self._groups(index, infos):
            blocks = await asyncio.gather(*(self.read(index, info, infos) for info in part))
            yield list(zip(part, blocks, strict=True))

    async def keys(self, index: str, infos: Sequence[BlockInfo]) -> AsyncIterator[tuple[BlockInfo, BlockKeys]]:
        """Yield the keys of each block, in the order of `infos`. Of a small store, the blocks are read and held."""
        if self._is_small(infos):
            async for info, block in self.each(index, infos):
                yield info, block
            return
        for part in self._groups(index, infos):
            each = await asyncio.gather(*(self._read_keys(index, info) for info in part))
            for info, names in zip(part, each, strict=True):
                yield info, names

    async def _read_keys(self, index: str, info: BlockInfo) -> BlockKeys:
        key = block_key(index, info.name)
        if (held := self._cache.get(key)) is not None:
            return held
        size = min(info.search_size, HEADER_BYTES + KEY_BYTES * (info.rows + info.deleted))
        body = await self._objects.read_range(key, 0, size)
        if (end := end_of_keys(body)) > size:
            body += await self._objects.read_range(key, size, end - size)
        return BlockKeys(body)

    def _is_small(self, infos: Sequence[BlockInfo]) -> bool:
        return sum(info.size for info in infos) <= self._cache.most // SMALL_PART

    def _groups(self, index: str, infos: Sequence[BlockInfo]) -> Iterator[list[BlockInfo]]:
        """Yield successive blocks, of which at most AT_ONCE must be read."""
        group: list[BlockInfo] = []
        unread = 0
        for info in infos:
            missing = self._cache.get(block_key(index, info.name)) is None
            if missing and unread == AT_ONCE:
                yield group
                group, unread = [], 0
            group.append(info)
            unread += missing
        if group:
            yield group

    async def read(self, index: str, info: BlockInfo, infos: Sequence[BlockInfo]) -> Block:
        """Return the part of a block that a search reads; all of it in a small store. `infos` are those of its store.

        Raises NotFound if it was merged into another.
        """
        key = block_key(index, info.name)
        if (held := self._cache.get(key)) is not None:
            return held
        size = info.size if self._is_small(infos) else info.search_size
        block = Block(await self._objects.read_range(key, 0, size))
        self._cache.add(key, block, {block_key(index, each.name) for each in infos})
        return block

    async def whole(self, index: str, info: BlockInfo) -> Block:
        """Return a block with its texts."""
        key = block_key(index, info.name)
        held = self._cache.get(key)
        return (
            held if held and len(held.body) == info.size else Block(await self._objects.read_range(key, 0, info.size))
        )

    def forget(self, index: str, infos: Sequence[BlockInfo]) -> None:
        self._cache.drop([block_key(index, info.name) for info in infos])

    async def records(self, index: str, every: Sequence[FoundRow]) -> dict[str, bytes]:
        """Return the records of found chunks by their keys."""
        spans = list(spans_of([each for each in every if each.record is None]))
        bodies = await asyncio.gather(*(self._read_span(index, span) for span in spans))
        records = {each.key: each.record for each in every if each.record is not None}
        for span, body in zip(spans, bodies, strict=True):
            start = span[0].place[0]
            records |= {each.key: body[each.place[0] - start : each.place[1] - start] for each in span}
        return records

    async def _read_span(self, index: str, span: Sequence[FoundRow]) -> bytes:
        start, end = span[0].place[0], span[-1].place[1]
        return await self._objects.read_range(block_key(index, span[0].block), start, end - start)


def spans_of(every: Sequence[FoundRow]) -> list[list[FoundRow]]:
    """Return groups of records that are close to each other in the same block."""
    spans: list[list[FoundRow]] = []
    for each in sorted(every, key=lambda found: (found.block, found.place)):
        last = spans[-1][-1] if spans else None
        if last and last.block == each.block and each.place[0] - last.place[1] <= GAP:
            spans[-1].append(each)
        else:
            spans.append([each])
    return spans
