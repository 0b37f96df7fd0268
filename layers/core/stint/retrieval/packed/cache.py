"""Blocks that a process holds in memory."""

from collections import OrderedDict
from collections.abc import Container

from stint.retrieval.packed.block import Block


class BlockCache:
    """Blocks by the keys of their objects, up to a number of bytes. The least recently used ones are dropped first."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
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
        free = self._most - self.size
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
