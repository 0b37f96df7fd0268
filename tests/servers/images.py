"""Small PNGs, and their reading."""

import struct
import zlib
from dataclasses import dataclass

SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Picture:
    """A PNG with a palette of two colours. `rows` has the bits of each row as text."""

    width: int
    height: int
    palette: bytes
    transparent: bool
    rows: list[str]

    @property
    def black(self) -> int:
        """Return the number of black pixels."""
        return sum(row[: self.width].count("1") for row in self.rows)


def read_png(data: bytes) -> Picture:
    """Read a PNG of one bit per pixel, and check its checksums."""
    assert data.startswith(SIGNATURE)
    chunks: dict[bytes, bytes] = {}
    place = len(SIGNATURE)
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        name, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", data, place + 8 + length) == (zlib.crc32(name + body),)
        chunks[name] = body
        place += 12 + length
    width, height, depth, kind, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, kind) == (1, 3)
    raw, step = zlib.decompress(chunks[b"IDAT"]), (width + 7) // 8 + 1
    assert len(raw) == height * step
    rows = ["".join(f"{byte:08b}" for byte in raw[at + 1 : at + step]) for at in range(0, len(raw), step)]
    assert not any(raw[at] for at in range(0, len(raw), step))
    return Picture(width, height, chunks[b"PLTE"], chunks.get(b"tRNS") == b"\0", rows)
