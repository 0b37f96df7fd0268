"""The contents of documents: read, and divided into chunks.

  content           is                                       text
  `FileContent`     an uploaded file                         extracted, and stored with the document
  `ObjectContent`   an object of the inbox, in one version   likewise
  `StoredContent`   a text or chunks that a caller sent      as sent

Errors say whether another attempt may succeed. UnreadableDocument is final: the file is missing, broken or too large,
and will be. Any other StintError is a fault of the moment.

Chunks must be the same in each attempt, because a later one continues at a number of chunk. So an extracted text is
stored first and read again; extracting it once more takes long, and a new version of a library may find other text.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stint.dataclasses import dataclass, field
from stint.documents.limits import FILE_LIMITS
from stint.domain.errors import InvalidRequest, NotFound, TooLarge
from stint.domain.vector_stores import (
    AUTO_SIZES,
    AnyChunking,
    DocumentSettings,
    FailureCode,
    FileContent,
    InsertedChunks,
    InsertedText,
    LastError,
    ObjectContent,
    StoredContent,
    WindowChunking,
)
from stint.retrieval.chunking.static import chunk_static
from stint.retrieval.chunking.windows import chunk_windows
from stint.retrieval.port import Vector
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument

ExtractText = Callable[[bytes, str, str | None], Awaitable[str]]
"""A function that converts a file to text. Raises InvalidRequest with the code of a LastError."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document, maybe with a vector that its caller made."""

    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The chunks of a document, and the whole text if it was extracted from a file."""

    chunks: Sequence[Chunk]
    text: str | None = None


class UnreadableDocument(Exception):
    """A document cannot be ingested, however often it is tried."""

    def __init__(self, error: LastError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class ContentReader:
    """Reads the contents of documents: files, texts and chunks that callers sent, objects of the inbox."""

    tenant: str
    store: Store
    extract_text: ExtractText

    async def load(self, settings: DocumentSettings) -> bytes:
        """Return the content of a document as it is stored.

        Raises:
            UnreadableDocument: it no longer exists, or is too large.
            StintError: it cannot be read now.
        """
        with unreadable():
            match settings.content:
                case StoredContent() as content:
                    return await self.store.vector_store_contents.get(content)
                case FileContent(file_id=file_id):
                    file = await self.store.files.open(self.tenant, file_id)
                    # Before it is in memory.
                    refuse_large(file.file.bytes, settings)
                    return b"".join([piece async for piece in self.store.files.read(file)])
                case ObjectContent() as content:
                    refuse_large(content.size, settings)
                    return await self.store.inbox.read(content)

    async def divide(self, settings: DocumentSettings, body: bytes) -> Content:
        """Return the chunks of a loaded content.

        Raises:
            UnreadableDocument: it has no text that could be read.
        """
        with unreadable():
            if not isinstance(settings.content, StoredContent):
                text = await self.extract_text(body, settings.filename, None)
                return Content(refuse_empty(await split(text, settings.chunking), settings), text)
        if settings.content.type == "chunks":
            inserted = InsertedChunks.model_validate_json(body)
            return Content([Chunk(one.text, one.metadata, one.embedding) for one in inserted.chunks])
        return Content(await split(InsertedText.model_validate_json(body).text, settings.chunking))

    async def read_again(self, found: StoredDocument) -> Content | None:
        """Return the chunks of a document that was ingested in part, without extracting its text again.

        None if it has no progress, or its text is not stored any more.
        """
        settings, progress = found.settings, found.progress
        if progress is None:
            return None
        if isinstance(settings.content, StoredContent):
            return await self.divide(settings, await self.load(settings))
        if progress.text is None:
            return None
        try:
            text = (await self.store.vector_store_contents.get(progress.text)).decode()
        except NotFound:
            return None
        return Content(await split(text, settings.chunking), text)


@contextmanager
def unreadable() -> Iterator[None]:
    """Raise UnreadableDocument for the errors of a content that cannot be read, however often it is tried."""
    try:
        yield
    except NotFound as error:
        raise UnreadableDocument(LastError(code="invalid_file", message=error.message)) from error
    except InvalidRequest as error:
        raise UnreadableDocument(last_error_of(error)) from error


def refuse_large(size: int, settings: DocumentSettings) -> None:
    """Raise InvalidRequest for a file or object that is over the limit, before it is in memory."""
    most = FILE_LIMITS.file_bytes
    if size > most:
        message = f"The file {settings.filename[-80:]!r} has {size:,} bytes; at most {most:,} are read. "
        raise InvalidRequest(f"{message}Split it.", code="invalid_file")


def refuse_empty(chunks: Sequence[Chunk], settings: DocumentSettings) -> Sequence[Chunk]:
    if not chunks:
        message = f"The file {settings.filename!r} has no text."
        raise UnreadableDocument(LastError(code="invalid_file", message=message))
    return chunks


async def split(text: str, chunking: AnyChunking) -> list[Chunk]:
    """Divide a text in a thread."""
    return await asyncio.to_thread(_split, text, chunking)


def _split(text: str, chunking: AnyChunking) -> list[Chunk]:
    if isinstance(chunking, WindowChunking):
        found = chunk_windows(text, chunking.size, chunking.overlap)
    else:
        sizes = chunking.static if chunking.type == "static" else AUTO_SIZES
        found = chunk_static(text, sizes.max_chunk_size_tokens, sizes.chunk_overlap_tokens)
    return [Chunk(chunk.text, {"token_count": chunk.token_count}) for chunk in found]


def last_error_of(error: InvalidRequest | TooLarge) -> LastError:
    """Return the reason of a failure that the document itself causes."""
    code: FailureCode = "unsupported_file" if error.code == "unsupported_file" else "invalid_file"
    return LastError(code=code, message=error.message)
