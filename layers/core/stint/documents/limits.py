"""Limits on the documents of a request."""

from stint.dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits; `characters` applies to all documents of a request together, and `text_bytes` to each text as UTF-8.

    PDFs, files of Office, and HTML after the first `small_bytes`, are costly to read: together they have `cpu_seconds`,
    and each has `memory_bytes` and at most `seconds`.
    """

    documents: int = 100
    """Documents of a request."""
    data_url_bytes: int = 10_000_000
    """Bytes of a data URL after decoding."""
    characters: int = 500_000
    """Characters of all texts of a request together."""
    text_bytes: int = 2_000_000
    """Bytes of one text as UTF-8."""
    pages: int = 500
    """Pages of a PDF."""
    small_bytes: int = 64_000
    """Bytes of HTML of a request that are converted without a process."""
    cpu_seconds: int = 4
    """CPU time of the process, for all documents of a request together."""
    memory_bytes: int = 40_000_000
    """Memory that one document may take, in bytes."""
    seconds: float = 60.0
    """Time of one document, in seconds."""
    file_bytes: int = 10_000_000
    """Bytes of an uploaded file."""


FILE_LIMITS = Limits(
    characters=24_000_000,
    text_bytes=24_000_000,
    pages=5_000,
    cpu_seconds=120,
    memory_bytes=250_000_000,
    seconds=480.0,
    file_bytes=50_000_000,
)
"""Limits of a file that the worker reads: it has 512 MB, and 900 s in which it gets 260 s of CPU time.

The text has about five million tokens at most: 24 million characters of English, 8 million of Chinese.
"""


FIRST_SECONDS, SECONDS_PER_MEGABYTE = 15, 30


def limits_for_file(size: int, limits: Limits = FILE_LIMITS) -> Limits:
    """Return the limits of a file of so many bytes: a small one may not take the CPU time of a large one.

    The operators, fonts and forms of a PDF cost CPU time in ways that no count of one of them bounds. 15 s, and 30 s
    per megabyte, are several times what files of text take: 3 to 11 ms per page of a PDF, 34 microseconds per cell.
    """
    seconds = FIRST_SECONDS + SECONDS_PER_MEGABYTE * size // 1_000_000
    return replace(limits, cpu_seconds=min(limits.cpu_seconds, seconds))


def limits_for(fetched_bytes: int) -> Limits:
    """Return the limits of a process that fetches at most so many bytes of a document.

    With less than usual, a PDF is read in twenty times as much, since the process has less memory.
    """
    usual = Limits()
    return replace(usual, memory_bytes=min(usual.memory_bytes, 20 * fetched_bytes))
