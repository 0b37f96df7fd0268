"""A scripted image model for the offline demo and for tests: it draws the prompt in letters."""

import struct
import textwrap
import zlib
from collections.abc import Iterator

from stint.tools.image_generation.font import COLUMNS, columns_of
from stint.tools.image_generation.port import GeneratedImage, ImageOptions

SMALL_SIZE = (512, 512)
CELL_WIDTH, CELL_HEIGHT = COLUMNS + 1, 10
MARGIN = 2
"""Cells are dots of a character with its spacing; the margin is in characters."""

CHARACTERS_PER_LINE = 20


class ScriptedImages:
    """Draws the prompt on a colour that depends on it. The same prompt always gets the same image.

    Every size, quality and background is accepted; a transparent background has no colour. The images are PNGs.
    """

    def check(self, model_id: str, options: ImageOptions, /) -> None:
        """Refuse other formats than PNG; see the port."""
        if options.output_format != "png":
            options.refuse(f"scripted/{model_id}", "output_format")
        options.refuse(f"scripted/{model_id}", "output_compression")

    async def generate(self, model_id: str, prompt: str, options: ImageOptions, /) -> GeneratedImage:
        """Draw the prompt; see the port."""
        self.check(model_id, options)
        size = SMALL_SIZE if options.size is None else options.pixels
        return GeneratedImage(draw(prompt, size, transparent=options.background == "transparent"))


def draw(prompt: str, size: tuple[int, int], *, transparent: bool = False) -> bytes:
    """Return a PNG of two colours with the prompt in it, as far as it fits."""
    width, height = size
    scale = max(width // (CELL_WIDTH * (CHARACTERS_PER_LINE + 2 * MARGIN)), 1)
    columns = max(width // (CELL_WIDTH * scale) - 2 * MARGIN, 1)
    lines = textwrap.wrap(prompt[: columns * 100], columns)
    bits = [row for line in lines for row in rows_of(line, scale, width)]
    top = max((height - len(bits)) // 2, 0)
    empty = bytes((width + 7) // 8)
    rows = [*[empty] * top, *bits, *[empty] * height][:height]
    return write_png(width, height, rows, colour_of(prompt), transparent=transparent)


def rows_of(line: str, scale: int, width: int) -> Iterator[bytes]:
    """Yield the rows of pixels of a line of text, a bit each, with the text in the middle."""
    dots = [column for character in line for column in (*columns_of(character), 0)]
    left = max((width - len(dots) * scale) // 2, 0)
    for row in range(CELL_HEIGHT):
        text = "".join(("1" if column >> row & 1 else "0") * scale for column in dots)
        bits = ("0" * left + text)[:width].ljust((width + 7) // 8 * 8, "0")
        yield from [int(bits, 2).to_bytes(len(bits) // 8)] * scale


def colour_of(prompt: str) -> bytes:
    """Return a light colour, red, green and blue, that depends on a text."""
    value = zlib.crc32(prompt.encode(errors="replace"))
    return bytes(160 + (value >> shift & 0xFF) % 80 for shift in (0, 8, 16))


def write_png(width: int, height: int, rows: list[bytes], colour: bytes, *, transparent: bool) -> bytes:
    """Return a PNG with a palette of two colours (https://www.w3.org/TR/png-3/). Bits of the text are black."""
    header = struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = [(b"IHDR", header), (b"PLTE", colour + b"\0\0\0"), (b"IDAT", pixels), (b"IEND", b"")]
    if transparent:
        parts.insert(2, (b"tRNS", b"\0"))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, body) for name, body in parts)


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
