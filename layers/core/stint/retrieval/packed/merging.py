"""Merges of blocks: many small ones become a larger one, and hidden rows are removed.

A newer block hides rows of older ones, so the order of blocks is meaning, and only neighbours may be merged. These are
the newest blocks, in sizes that grow by four: each chunk is then rewritten a few times however large the store becomes,
and a search reads few blocks. The functions here only compute; `block_writer.py` has the reads, the writes and their
order.
"""

from collections.abc import Iterator, Sequence

from stint.retrieval.packed.block import Block, Row, split
from stint.retrieval.packed.manifest import BlockInfo, Manifest
from stint.retrieval.packed.scan import live_rows

RUN, FULL, SMALLEST = 8, 1_000_000, 64_000
"""Blocks that are merged at once, the size from which a block is not merged, and the limit of the smallest ones."""
FEWEST_DELETED = 256
"""A smaller number of deleted keys is no reason to rewrite blocks."""


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
