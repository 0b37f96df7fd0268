"""A block of a packed index: up to 2,048 chunks with their words and vectors, in one object.

The object begins with what a search reads: a header, and arrays. The chunks' texts follow, to be read by range.

  part            content
  8 bytes         length of the header
  header          JSON: type, offset and shape of each array; padded to 2,048 bytes in all
  keys, deleted   keys of the rows, in order, and keys that this block hides in older ones
  vectors, zero   vectors of length 1, and which rows have none
  lengths         number of words of each row
  terms, starts   hashes of the words, in order, and where the postings of each begin
  rows, counts    postings: the rows that have a word, and how often
  places          where each record begins, and the end of the last one
  attributes      different attributes as JSON, and for each row, which it has
  records         text, document, generation and metadata of each row, as JSON

Arrays are views of the object's bytes, so that reading a block copies nothing. Their offsets are multiples of 8, so
that they are aligned.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stint.dataclasses import dataclass
from stint.domain.filters import Attributes
from stint.retrieval.port import Entry, Vector
from stint.retrieval.words import number_of, words

ROWS, VECTOR_BYTES, TEXT_BYTES = 2_048, 4_000_000, 4_000_000
"""Maximum rows of a new block, and of the bytes of its vectors and texts."""
ALIGNMENT = 8
HEADER_BYTES = 2_048
"""The length of the header and the arrays' offsets in it, which has room for all of them."""
Floats = NDArray[np.float32]
Rows = NDArray[np.uint16]
Mask = NDArray[np.bool_]
Sections = Mapping[str, tuple[str, int, list[int]]]
"""The type, offset and shape of each array."""


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk in a block. The vector has length 1, or is zero.

    `record` is JSON: the text, the document, the generation, and the metadata.
    """

    key: str
    vector: Floats
    attributes: Attributes
    record: bytes


class BlockKeys:
    """The beginning of a block, with its keys. Arrays are views of `body`."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._sections = read_header(body)
        self.keys = cast("NDArray[np.bytes_]", self._array("keys"))
        self.deleted = cast("NDArray[np.bytes_]", self._array("deleted"))

    def _array(self, name: str) -> NDArray[Any]:
        dtype, at, shape = self._sections[name]
        count = int(np.prod(shape))
        return np.frombuffer(self.body, dtype=dtype, count=count, offset=at).reshape(shape)


class Block(BlockKeys):
    """The part of a block that a search reads, or all of it."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.vectors = cast("Floats", self._array("vectors"))
        self.zero = cast("Mask", self._array("zero"))
        self.lengths = cast("NDArray[np.uint32]", self._array("lengths"))
        self._terms, self._starts = self._array("terms"), self._array("starts")
        self._rows, self._counts = self._array("rows"), self._array("counts")
        self.places = cast("NDArray[np.uint64]", self._array("places"))
        self._attributes_of = self._array("attributes_of")

    @cached_property
    def attributes(self) -> list[Attributes]:
        """Return the different attributes of the rows."""
        return cast("list[Attributes]", json.loads(self._array("attributes").tobytes()))

    @property
    def attributes_of(self) -> NDArray[np.uint32]:
        """Return the index in `attributes` of each row."""
        return cast("NDArray[np.uint32]", self._attributes_of)

    def postings(self, term: int) -> tuple[Rows, NDArray[np.uint16]]:
        """Return the rows that have a word, by its number, and how often each has it."""
        at = int(np.searchsorted(self._terms, np.uint64(term)))
        if at == len(self._terms) or int(self._terms[at]) != term:
            return self._rows[:0], self._counts[:0]
        part = slice(int(self._starts[at]), int(self._starts[at + 1]))
        return self._rows[part], self._counts[part]

    def key(self, row: int) -> str:
        return bytes(self.keys[row]).decode()

    def place(self, row: int) -> tuple[int, int]:
        """Return where a row's record begins and ends in the object."""
        return int(self.places[row]), int(self.places[row + 1])

    def rows(self, alive: Mask) -> Iterable[Row]:
        """Yield the rows that are not hidden. The block must be whole."""
        for row in np.flatnonzero(alive).tolist():
            start, end = self.place(row)
            attributes = self.attributes[int(self.attributes_of[row])]
            yield Row(self.key(row), self.vectors[row], attributes, self.body[start:end])


def read_header(body: bytes) -> Sections:
    """Return where the arrays of a block are."""
    length = int.from_bytes(body[:8], "little")
    return cast("Sections", json.loads(body[8 : 8 + length]))


def end_of_keys(body: bytes) -> int:
    """Return where the keys of a block end, from its header. The vectors follow them."""
    return read_header(body)["vectors"][1]


def make_row(entry: Entry) -> Row:
    """Return the row of a chunk."""
    record = [entry.text, entry.document, entry.generation, entry.metadata]
    body = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return Row(entry.key, unit(entry.vector), entry.attributes, body)


def unit(vector: Vector) -> Floats:
    """Return a vector of length 1, or zeros.

    One whose largest component is a subnormal number of 32 bits has too few digits for a direction, and counts as zero.
    """
    numbers = np.asarray(vector, dtype=np.float64)
    largest = float(np.max(np.abs(numbers), initial=0.0))
    if largest < np.finfo(np.float32).tiny:
        return np.zeros(len(numbers), dtype=np.float32)
    # So that the squares of large or small components neither overflow nor vanish.
    scaled = numbers / largest
    shortened: Floats = (scaled / np.sqrt(np.sum(scaled * scaled))).astype(np.float32)
    return shortened


def encode_block(rows: Sequence[Row], deleted: Sequence[str], dimension: int) -> tuple[bytes, int]:
    """Return a block, and the size of the part of it that a search reads."""
    rows = sorted(rows, key=lambda row: row.key)
    # Most chunks of a document have the same attributes, so each is stored and compared once per block.
    distinct: dict[str, int] = {}
    attributes_of = [distinct.setdefault(json.dumps(row.attributes, sort_keys=True), len(distinct)) for row in rows]
    vectors = np.array([row.vector for row in rows], dtype="<f4").reshape(len(rows), dimension)
    arrays: dict[str, NDArray[Any]] = {
        "keys": np.array([row.key.encode() for row in rows] or [b""], dtype="S")[: len(rows)],
        "deleted": np.array([key.encode() for key in deleted] or [b""], dtype="S")[: len(deleted)],
        "vectors": vectors,
        "zero": np.array([not row.vector.any() for row in rows], dtype="?"),
        **word_arrays([words(json.loads(row.record)[0]) for row in rows]),
        "attributes": np.frombuffer(f"[{','.join(distinct)}]".encode("utf-8", "surrogatepass"), dtype="u1"),
        "attributes_of": np.array(attributes_of, dtype="<u4"),
    }
    return join(arrays, [row.record for row in rows])


def word_arrays(texts: Sequence[Sequence[str]]) -> dict[str, NDArray[Any]]:
    """Return the number of words of each row, and the rows of each word with its counts."""
    occurrences: dict[str, dict[int, int]] = {}
    for row, text in enumerate(texts):
        for word in text:
            counts = occurrences.setdefault(word, {})
            counts[row] = counts.get(row, 0) + 1
    numbered = sorted((number_of(word), counts) for word, counts in occurrences.items())
    # Counts have 16 bits. BM25 hardly distinguishes counts that large.
    found = [(row, min(count, 65_535)) for _, counts in numbered for row, count in counts.items()]
    pairs = np.array(found, dtype="<u2").reshape(len(found), 2)
    return {
        "lengths": np.array([len(text) for text in texts], dtype="<u4"),
        "terms": np.array([number for number, _ in numbered], dtype="<u8"),
        "starts": np.cumsum([0, *(len(counts) for _, counts in numbered)]).astype("<u4"),
        "rows": np.ascontiguousarray(pairs[:, 0]),
        "counts": np.ascontiguousarray(pairs[:, 1]),
    }


def join(arrays: Mapping[str, NDArray[Any]], records: Sequence[bytes]) -> tuple[bytes, int]:
    """Return the arrays and records as one object, and where the records begin."""
    # The header's size depends on the offsets in it, so it has a fixed size that is large enough.
    at, sections = HEADER_BYTES, {}
    every = {**arrays, "places": np.zeros(len(records) + 1, dtype="<u8")}
    for name, array in every.items():
        sections[name] = (array.dtype.str, at, list(array.shape))
        at = aligned(at + array.nbytes)
    every["places"] = np.cumsum([at, *map(len, records)]).astype("<u8")
    header = json.dumps(sections).encode()
    parts = [len(header).to_bytes(8, "little"), header.ljust(HEADER_BYTES - 8)]
    parts += [array.tobytes().ljust(aligned(array.nbytes), b"\0") for array in every.values()]
    return b"".join([*parts, *records]), at


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def split(rows: Iterable[Row], dimension: int) -> Iterable[list[Row]]:
    """Yield the rows of each of several blocks."""
    most, size, block = max(1, min(ROWS, VECTOR_BYTES // (4 * dimension))), 0, list[Row]()
    for row in rows:
        if block and (len(block) == most or size + len(row.record) > TEXT_BYTES):
            yield block
            size, block = 0, []
        block.append(row)
        size += len(row.record)
    if block:
        yield block
