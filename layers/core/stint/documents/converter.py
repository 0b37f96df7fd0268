"""Conversion of documents to text, with a separate process for costly ones."""

import asyncio
from types import TracebackType
from typing import Self

from stint.documents.conversion import Job, convert
from stint.documents.limits import Limits
from stint.documents.mime_types import Kind
from stint.documents.reader_process import ProcessEnded, ReaderProcess
from stint.documents.served import Unreadable


class Converter:
    """Converts the documents of one request, one after the other.

    PDFs, large HTML and many HTML pages are converted in a process, which starts with the first of them and ends with
    the request.
    Plain text is decoded here, at 10 ms per megabyte. A process that exceeds its limits is not replaced, because the
    request has then used up its budget.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._turnstile = asyncio.Lock()
        self._process: ReaderProcess | None = None
        self._failure: Unreadable | None = None
        self._bytes = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._process is not None:
            await self._process.stop()

    async def convert(self, kind: Kind, body: bytes, essence: str, charset: str | None) -> str:
        """Convert a document to plain text.

        Raises:
            Unreadable: it cannot be read, is too long, or needs too much time or memory.
        """
        job = Job(
            kind.name,
            essence,
            charset,
            self._limits.pages,
            characters=self._limits.characters,
            text_bytes=self._limits.text_bytes,
        )
        async with self._turnstile:
            if kind is Kind.text or (kind is Kind.html and self._is_small(body)):
                return await asyncio.to_thread(convert, job, body)
            return await self._convert_apart(job, body)

    def _is_small(self, body: bytes) -> bool:
        """Count an HTML page, and return whether all pages together are still small."""
        # Counted together, since many small pages cost as much as a large one.
        self._bytes += len(body)
        return self._bytes <= self._limits.small_bytes

    async def _convert_apart(self, job: Job, body: bytes) -> str:
        if self._failure is not None:
            raise self._failure
        if self._process is None:
            self._process = await ReaderProcess.start(self._limits)
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._process.convert(job, body)
        except TimeoutError:
            # Kept, so that no further document of the request starts another process with a new budget.
            self._failure = too_costly(f"more than {self._limits.seconds:g} s")
        except ProcessEnded as ended:
            cpu = f"more than {self._limits.cpu_seconds} s of CPU time, including the documents before it"
            self._failure = too_costly(cpu) if ended.for_cpu_time else Unreadable(f"{ended}: send a part, or its text")
        raise self._failure


def too_costly(cost: str) -> Unreadable:
    return Unreadable(f"reading it takes {cost}: send a part, or its text", "document_too_large")
