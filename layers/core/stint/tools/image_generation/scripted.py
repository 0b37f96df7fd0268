"""A scripted image model for the offline demo and for tests: it draws the prompt in letters.

So a reader of a demo, and a test, can see which request made an image. A font file or an image library would be loaded,
or shipped, for this alone; a font of 5 by 7 dots for the printable characters of ASCII has 475 bytes (`DOTS`).
"""

import struct
import textwrap
import zlib
from collections.abc import Iterator

from stint.tools.image_generation.port import GeneratedImage, ImageOptions

SMALL_SIZE = (512, 512)
COLUMNS = 5
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


def columns_of(character: str) -> bytes:
    """Return the columns of a character; those of a question mark for one that the font lacks."""
    place = ord(character) - ord(" ")
    if not 0 <= place < len(DOTS) // COLUMNS:
        place = ord("?") - ord(" ")
    return DOTS[place * COLUMNS : (place + 1) * COLUMNS]


DOTS = bytes.fromhex(
    "0000000000"
    "00005f0000"
    "0007000700"
    "147f147f14"
    "242a7f2a12"
    "2313086462"
    "3649562050"
    "0008070300"
    "001c224100"
    "0041221c00"
    "2a1c7f1c2a"
    "08083e0808"
    "0080703000"
    "0808080808"
    "0000606000"
    "2010080402"
    "3e5149453e"
    "00427f4000"
    "7249494946"
    "2141494d33"
    "1814127f10"
    "2745454539"
    "3c4a494931"
    "4121110907"
    "3649494936"
    "464949291e"
    "0000140000"
    "0040340000"
    "0008142241"
    "1414141414"
    "0041221408"
    "0201590906"
    "3e415d594e"
    "7c1211127c"
    "7f49494936"
    "3e41414122"
    "7f4141413e"
    "7f49494941"
    "7f09090901"
    "3e41415173"
    "7f0808087f"
    "00417f4100"
    "2040413f01"
    "7f08142241"
    "7f40404040"
    "7f021c027f"
    "7f0408107f"
    "3e4141413e"
    "7f09090906"
    "3e4151215e"
    "7f09192946"
    "2649494932"
    "03017f0103"
    "3f4040403f"
    "1f2040201f"
    "3f4038403f"
    "6314081463"
    "0304780403"
    "6159494d43"
    "007f414141"
    "0204081020"
    "004141417f"
    "0402010204"
    "4040404040"
    "0003070800"
    "2054547840"
    "7f28444438"
    "3844444428"
    "384444287f"
    "3854545418"
    "00087e0902"
    "18a4a49c78"
    "7f08040478"
    "00447d4000"
    "2040403d00"
    "7f10284400"
    "00417f4000"
    "7c04780478"
    "7c08040478"
    "3844444438"
    "fc18242418"
    "18242418fc"
    "7c08040408"
    "4854545424"
    "04043f4424"
    "3c4040207c"
    "1c2040201c"
    "3c4030403c"
    "4428102844"
    "4c9090907c"
    "4464544c44"
    "0008364100"
    "0000770000"
    "0041360800"
    "0201020402"
)
"""Five bytes for each character from the space (32) to the tilde (126): its columns, from left to right.

The lowest bit of a byte is the upper dot. The eighth is for descenders, as in g and y.
"""
