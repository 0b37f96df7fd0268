"""Limits on the documents of a request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits; `characters` applies to all documents of a request together.

    PDFs, and HTML after the first `small_bytes`, are costly to read: together they have `cpu_seconds`, and each has
    `memory_bytes` and at most `seconds`.
    """

    documents: int = 100
    data_url_bytes: int = 10_000_000
    characters: int = 500_000
    pages: int = 500
    small_bytes: int = 64_000
    cpu_seconds: int = 4
    memory_bytes: int = 40_000_000
    seconds: float = 60.0
