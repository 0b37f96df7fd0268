"""What the documents of a request may cost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`characters` is for all documents of a request together.

    Documents that are costly to read share `cpu_seconds`, and each gets `memory_bytes`: PDFs, and HTML after the first
    `small_bytes`. `seconds` is the longest wait for one of them.
    """

    documents: int = 100
    data_url_bytes: int = 10_000_000
    characters: int = 500_000
    pages: int = 500
    small_bytes: int = 64_000
    cpu_seconds: int = 4
    memory_bytes: int = 40_000_000
    seconds: float = 60.0
