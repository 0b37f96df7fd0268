"""The manifest of a packed index: its dimension and its blocks."""

import json
import secrets
from collections.abc import Iterable, Sequence
from typing import Self

from stint.dataclasses import asdict, dataclass, field, replace

RECENT = 32
"""Revisions that a manifest remembers. A writer whose answer was lost finds its own among them."""


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """A block: rows, deleted keys, the size of its object, and of the part of it that a search reads."""

    name: str
    rows: int
    deleted: int
    size: int
    search_size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The blocks of an index, the oldest first."""

    dimension: int
    blocks: Sequence[BlockInfo] = ()
    recent: Sequence[str] = field(default_factory=lambda: [secrets.token_hex(8)])

    @property
    def size(self) -> int:
        """Return the bytes of all blocks."""
        return sum(block.size for block in self.blocks)

    @property
    def names(self) -> list[str]:
        return [block.name for block in self.blocks]

    @property
    def revision(self) -> str:
        """Return the random name of this version, which makes its ETag unique."""
        return self.recent[-1]

    def with_blocks(self, blocks: Iterable[BlockInfo]) -> Self:
        """Return the next revision, with other blocks."""
        # The random name also makes the ETag differ from that of an earlier manifest with the same blocks.
        recent = [*self.recent, secrets.token_hex(8)][-RECENT:]
        return replace(self, blocks=list(blocks), recent=recent)

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()


def decode_manifest(body: bytes) -> Manifest:
    document = json.loads(body)
    blocks = [BlockInfo(**each) for each in document["blocks"]]
    return Manifest(document["dimension"], blocks, document["recent"])
