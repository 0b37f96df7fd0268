"""Writes of blocks, and rewrites of them, so that a store has few, and little that is hidden.

Each rewrite is in this order: read the blocks, write the new ones, replace them in the manifest, delete the old ones. A
process that dies in between leaves blocks that no manifest names, never a manifest with a missing block. The compare
and swap decides between two that rewrite the same blocks; the one that loses deletes what it has written.

  rewrite         when                                             blocks
  merge           8 blocks of a size, after a write                those, without what they hide of each other
  remove_hidden   a quarter of the rows was deleted, or no room    all that are small or have hidden rows
  purge           a deletion                                       those that have rows with the deleted keys

Deleted keys go with the oldest block only, because older blocks may have rows for them to hide. Merges and the removal
of hidden rows are optional (`tidy`): if another writer was faster, nothing is lost. A purge is not, since a deletion
promises that the bucket has nothing left, so it begins again, ATTEMPTS times.

A newer block hides rows of older ones, so the order of blocks is meaning, and only neighbours may be merged. These are
the newest blocks, in sizes that grow by four: each chunk is then rewritten a few times however large the store becomes,
and a search reads few blocks.
"""

import asyncio
from collections.abc import Iterator, Sequence, Set

from stint.domain.errors import Conflict, NotFound, StoreUnavailable
from stint.retrieval.objects import ObjectStore
from stint.retrieval.packed.block import Block, Mask, Row, encode_block, split
from stint.retrieval.packed.manifest import BlockInfo, Manifest
from stint.retrieval.packed.manifests import PREFIX, Manifests, block_key
from stint.retrieval.packed.reading import Blocks
from stint.retrieval.packed.scan import live_rows, rows_of
from stint.retrieval.packed.unused import block_name, refuse_late, unused_names

Content = tuple[Sequence[Row], Sequence[str]]
"""Rows and deleted keys of a block to write."""


ATTEMPTS = 5
"""Attempts of a deletion whose blocks others rewrite."""

RUN, FULL, SMALLEST = 8, 1_000_000, 64_000
"""Blocks that are merged at once, the size from which a block is not merged, and the limit of the smallest ones."""
FEWEST_DELETED = 256
"""A smaller number of deleted keys is no reason to rewrite blocks."""


class BlockWriter:
    """Writes of blocks, and merges after them."""

    def __init__(self, objects: ObjectStore, manifests: Manifests, blocks: Blocks) -> None:
        self._objects, self._manifests, self._blocks = objects, manifests, blocks

    async def write(self, index: str, content: Content, dimension: int) -> BlockInfo:
        """Write a block that is in no manifest yet."""
        rows, deleted = content
        body, search_size = await asyncio.to_thread(encode_block, rows, deleted, dimension)
        info = BlockInfo(block_name(), len(rows), len(deleted), len(body), search_size=search_size)
        await self._objects.write(block_key(index, info.name), body)
        return info

    async def remove(self, index: str, infos: Sequence[BlockInfo]) -> None:
        """Delete blocks that are in no manifest any more."""
        self._blocks.forget(index, infos)
        if infos:
            await self._objects.delete([block_key(index, info.name) for info in infos])

    async def remove_unused(self, index: str) -> None:
        """Delete the blocks of killed writers. Raises NotFound if there is no manifest."""
        prefix = f"{PREFIX}{index}/"
        # Listed before the manifest is read: a block that was added in between is in the manifest, so it is not
        # deleted.
        names = [key.removeprefix(prefix) for key in await self._objects.keys(prefix)]
        if old := unused_names(names, ()):
            left = unused_names(old, (await self._manifests.read(index)).manifest.names)
            await self._objects.delete([block_key(index, name) for name in left])

    async def tidy(self, index: str, manifest: Manifest) -> None:
        """Merge small blocks, and remove hidden rows, if there are enough of them."""
        try:
            if too_many_deleted(manifest):
                await self.remove_hidden(index, manifest)
            elif run := small_run(manifest):
                await self._merge(index, manifest, run)
            else:
                return
            await self.remove_unused(index)
        except NotFound:  # another writer merges them, or the index was dropped
            return

    async def _merge(self, index: str, manifest: Manifest, run: Sequence[BlockInfo]) -> None:
        oldest = run[0] == manifest.blocks[0]
        blocks = [await self._blocks.whole(index, info) for info in run]
        parts = await asyncio.to_thread(lambda: list(merged_rows(blocks, oldest=oldest, dimension=manifest.dimension)))
        written = [await self.write(index, part, manifest.dimension) for part in parts]
        await self._replace(index, run, written, oldest=oldest)

    async def remove_hidden(self, index: str, manifest: Manifest) -> None:
        """Rewrite the blocks that have hidden rows, or are small, and drop all deleted keys."""
        hidden: set[bytes] = set()
        alive: dict[str, Mask] = {}
        # The newest first, so that `hidden` has what each block must hide.
        async for info, block in self._blocks.each(index, manifest.blocks[::-1]):
            alive[info.name] = await asyncio.to_thread(live_rows, block, hidden)
        written: list[BlockInfo] = []
        for run in runs(manifest.blocks, alive):
            written += run if kept(run[0], alive) else await self._rewrite(index, run, alive, manifest.dimension)
        await self._replace(index, manifest.blocks, written, oldest=True)

    async def purge(self, index: str, keys: Set[bytes]) -> None:
        """Rewrite the blocks with rows that were deleted, so that the bucket has nothing left of them.

        Raises:
            NotFound: the index was dropped.
            StoreUnavailable: others rewrite the same blocks all the time.
        """
        manifest = (await self._manifests.last_known(index)).manifest
        for _ in range(ATTEMPTS):
            try:
                if await self._purge_blocks(index, manifest, keys):
                    return
            except NotFound:  # a block was merged into another after the manifest was read
                pass
            manifest = (await self._manifests.read(index)).manifest
        raise StoreUnavailable(
            f"Vector index {index!r} is rewritten too often, so its chunks stay in the bucket. Try again."
        )

    async def _purge_blocks(self, index: str, manifest: Manifest, keys: Set[bytes]) -> bool:
        """Return whether all blocks of a manifest have no rows with these keys any more."""
        done = True
        async for info, block in self._blocks.each(index, [info for info in manifest.blocks if info.rows]):
            purged = await asyncio.to_thread(rows_of, block, keys)
            if purged.any():
                done &= await self._keep_rows(index, info, ~purged, manifest.dimension)
        return done

    async def _keep_rows(self, index: str, info: BlockInfo, kept_rows: Mask, dimension: int) -> bool:
        """Replace a block by one with some of its rows. Return whether the manifest still had it."""
        block = await self._blocks.whole(index, info)
        deleted = [key.decode() for key in block.deleted.tolist()]
        parts = list(split(block.rows(kept_rows), dimension)) or ([[]] if deleted else [])
        # The deleted keys of the block still hide rows of older ones, even if none of its own rows is left.
        contents = [(part, deleted if at == 0 else ()) for at, part in enumerate(parts)]
        written = [await self.write(index, content, dimension) for content in contents]
        return await self._replace(index, [info], written, oldest=False)

    async def _rewrite(
        self, index: str, run: Sequence[BlockInfo], alive: dict[str, Mask], dimension: int
    ) -> list[BlockInfo]:
        """Write the rows of successive blocks that are not hidden, with at most two blocks in memory."""
        written, rest = list[BlockInfo](), list[Row]()
        for info in run:
            block = await self._blocks.whole(index, info)
            parts = list(split([*rest, *block.rows(alive[info.name])], dimension))
            rest = parts.pop() if parts else []
            written += [await self.write(index, (part, ()), dimension) for part in parts]
        return written + ([await self.write(index, (rest, ()), dimension)] if rest else [])

    async def _replace(self, index: str, run: Sequence[BlockInfo], by: Sequence[BlockInfo], *, oldest: bool) -> bool:
        """Put blocks in place of others, unless another writer did, and return whether that succeeded.

        The blocks that are not used are deleted.
        """

        def replace(manifest: Manifest) -> Manifest | None:
            # At each attempt of the compare and swap, since the attempts take time, too.
            refuse_late(index, [info for info in by if info not in run])
            return replaced(manifest, run, by, oldest=oldest)

        try:
            changed = await self._manifests.change(index, replace)
        # Only these two say that the manifest does not have the new blocks. After a lost answer it may have them.
        except (Conflict, NotFound):
            changed = None
        unused, used = (run, by) if changed else (by, run)
        await self.remove(index, [info for info in unused if info not in used])
        return changed is not None


def kept(info: BlockInfo, alive: dict[str, Mask]) -> bool:
    """Return whether a block stays as it is: it is large, and has nothing hidden and no deleted keys."""
    return info.size >= FULL and not info.deleted and bool(alive[info.name].all())


def runs(blocks: Sequence[BlockInfo], alive: dict[str, Mask]) -> Iterator[list[BlockInfo]]:
    """Yield the blocks that stay, one by one, and between them those that are rewritten together."""
    run: list[BlockInfo] = []
    for info in blocks:
        if not kept(info, alive):
            run.append(info)
            continue
        if run:
            yield run
            run = []
        yield [info]
    if run:
        yield run


def small_run(manifest: Manifest) -> list[BlockInfo]:
    """Return the newest blocks that should be merged: 8 of up to 64 KB, or of 256 KB, or of 1 MB.

    So each chunk is rewritten at most three times, and a store has fewer than 24 blocks that are not full.
    """
    limit = SMALLEST
    while limit <= FULL * 2:
        run = trailing(manifest.blocks, limit)
        if len(run) >= RUN:
            return run
        limit *= 4
    return []


def trailing(blocks: Sequence[BlockInfo], limit: int) -> list[BlockInfo]:
    """Return the blocks after the newest one that is larger than a limit."""
    # Only blocks after the newest large one: a merge may not change the order in which blocks hide each other.
    large = [at for at, block in enumerate(blocks) if block.size >= min(limit, FULL)]
    return list(blocks[large[-1] + 1 if large else 0 :])[-2 * RUN :]


def too_many_deleted(manifest: Manifest) -> bool:
    """Return whether the keys that were deleted are as many as a quarter of the rows."""
    deleted = sum(block.deleted for block in manifest.blocks)
    return deleted >= max(FEWEST_DELETED, sum(block.rows for block in manifest.blocks) / 4)


def merged_rows(blocks: Sequence[Block], *, oldest: bool, dimension: int) -> Iterator[tuple[list[Row], list[str]]]:
    """Yield the rows and deleted keys of the blocks that replace a run, which is in the order of the manifest.

    If the run contains the oldest block, there is nothing left that its deleted keys would hide.
    """
    hidden: set[bytes] = set()
    masks = [live_rows(block, hidden) for block in reversed(blocks)][::-1]
    rows = [row for block, alive in zip(blocks, masks, strict=True) for row in block.rows(alive)]
    deleted = [] if oldest else sorted({key.decode() for block in blocks for key in block.deleted.tolist()})
    parts = list(split(rows, dimension)) or [[]]
    for at, part in enumerate(parts):
        keys = deleted if at == 0 else []
        if part or keys:
            yield part, keys


def replaced(manifest: Manifest, run: Sequence[BlockInfo], by: Sequence[BlockInfo], *, oldest: bool) -> Manifest | None:
    """Return the manifest with other blocks in place of a run, or None if it no longer has that run."""
    names, wanted = manifest.names, [block.name for block in run]
    if wanted[0] not in names:
        return None
    at = names.index(wanted[0])
    # Another writer may have merged some of them, or have put a block before them.
    if names[at : at + len(wanted)] != wanted or (oldest and at > 0):
        return None
    return manifest.with_blocks([*manifest.blocks[:at], *by, *manifest.blocks[at + len(wanted) :]])
