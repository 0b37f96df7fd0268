"""The parts of a file's content in S3, and their compact list in the file's record."""

from collections.abc import Sequence

from stint.dataclasses import dataclass

PREFIX = 16
"""Bytes of the random end of an object's key."""

LENGTH = 4
DIGEST = 32
SIZE = PREFIX + LENGTH + DIGEST


@dataclass(frozen=True, slots=True)
class StoredPart:
    """An object in S3."""

    blob: str
    length: int
    digest: bytes


def pack_parts(parts: Sequence[StoredPart]) -> bytes:
    """Return SIZE bytes for each part. The keys of the objects differ only in their random end."""
    return b"".join(
        bytes.fromhex(part.blob[-2 * PREFIX :]) + part.length.to_bytes(LENGTH, "big") + part.digest for part in parts
    )


def unpack_parts(prefix: str, packed: bytes) -> list[StoredPart]:
    """Return the parts that `pack_parts` packed. `prefix` is that of their keys."""
    entries = [packed[at : at + SIZE] for at in range(0, len(packed), SIZE)]
    return [
        StoredPart(prefix + each[:PREFIX].hex(), int.from_bytes(each[PREFIX:-DIGEST], "big"), each[-DIGEST:])
        for each in entries
    ]
