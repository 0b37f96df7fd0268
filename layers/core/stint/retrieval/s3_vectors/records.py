"""Chunks as metadata of vectors, within the limits of S3 Vectors. What exceeds them is kept in the bucket."""

import json
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from stint.dataclasses import dataclass
from stint.domain.filters import Attributes
from stint.retrieval.port import Entry, Hit
from stint.retrieval.s3_vectors.filters import WIDE, ZERO, attribute_name, is_plain

TEXT, RECORD = "text", "record"
FILTERABLE_BYTES, METADATA_BYTES, TEXT_BYTES = 1_900, 40_000, 36_000
"""Bytes of filterable metadata, of all, and of a text that is cut: a little less than 2 KB, 40 KB, and what is left."""
PREFIX = "vectors/"
Metadata = dict[str, str | bool | int | float]


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """The metadata of a chunk, and the object for what exceeds them."""

    metadata: Metadata
    key: str = ""
    body: bytes = b""


def overflow_prefix(index: str, key: str = "") -> str:
    """Return the prefix of the objects of an index, or of one chunk."""
    return f"{PREFIX}{index}/{quote(key, safe='')}/" if key else f"{PREFIX}{index}/"


def store_entry(index: str, entry: Entry, *, zero: bool) -> StoredChunk:
    """Return how a chunk is stored."""
    filterable = filterable_metadata(entry.attributes) | ({ZERO: True} if zero else {})
    record = [entry.text, entry.document, entry.generation, entry.attributes, entry.metadata]
    searchable = entry.text.encode("utf-8", "replace").decode().replace("\0", " ")
    inline: Metadata = filterable | {TEXT: searchable, RECORD: json.dumps(record[1:], separators=(",", ":"))}
    # A text that had to be changed to be stored is returned from its object, unchanged.
    if searchable == entry.text and size(inline) <= METADATA_BYTES:
        return StoredChunk(inline if searchable else {name: inline[name] for name in inline if name != TEXT})
    key = f"{overflow_prefix(index, entry.key)}{secrets.token_hex(8)}"
    cut: Metadata = filterable | {RECORD: json.dumps({"key": key})}
    if searchable:
        cut[TEXT] = beginning(searchable)
    return StoredChunk(cut, key, json.dumps(record, separators=(",", ":")).encode())


def beginning(text: str) -> str:
    """Return as much of a text as fits into the metadata as JSON."""
    most = TEXT_BYTES
    while size({TEXT: text}) > TEXT_BYTES:
        text = text.encode()[:most].decode(errors="ignore")
        most -= 2_000
    return text


def filterable_metadata(attributes: Attributes) -> Metadata:
    """Return the attributes by their names in metadata, or only the mark of a chunk that has too many."""
    named: Metadata = {attribute_name(key): value for key, value in attributes.items()}
    fits = size(named) <= FILTERABLE_BYTES
    return named if fits and all(map(is_plain, named.values())) else {WIDE: True}


def size(metadata: Mapping[str, Any]) -> int:
    """Return the bytes of metadata as JSON."""
    return len(json.dumps(metadata, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def overflow_key(metadata: Mapping[str, Any]) -> str | None:
    """Return the key of the object that has the record, None if the metadata have it."""
    record = json.loads(metadata[RECORD])
    return str(record["key"]) if isinstance(record, dict) else None


def read_hit(key: str, score: float, metadata: Mapping[str, Any], body: bytes | None) -> Hit:
    """Return a chunk that was found. `body` is the object that has its record, if there is one."""
    if body is not None:
        text, document, generation, attributes, more = json.loads(body)
    else:
        text = str(metadata.get(TEXT, ""))
        document, generation, attributes, more = json.loads(metadata[RECORD])
    return Hit(key, score, text, document, generation=generation, attributes=attributes, metadata=more)
