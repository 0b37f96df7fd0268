"""The contents of documents: read, and divided into chunks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

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

    async def read(self, settings: DocumentSettings) -> Content:
        """Return the chunks of a document.

        Raises:
            UnreadableDocument: it no longer exists, or has no text that could be read.
            StintError: it cannot be read now.
        """
        stored = self.store.vector_store_contents
        try:
            match settings.content:
                case StoredContent(type="chunks") as content:
                    inserted = InsertedChunks.model_validate_json(await stored.get(content))
                    return Content([Chunk(one.text, one.metadata, one.embedding) for one in inserted.chunks])
                case StoredContent() as content:
                    text = InsertedText.model_validate_json(await stored.get(content)).text
                    return Content(await split(text, settings.chunking))
                case FileContent(file_id=file_id):
                    file = await self.store.files.open(self.tenant, file_id)
                    body = b"".join([piece async for piece in self.store.files.read(file)])
                case ObjectContent() as content:
                    refuse_large(content, settings)
                    body = await self.store.inbox.read(content)
            text = await self.extract_text(body, settings.filename, None)
        except NotFound as error:
            raise UnreadableDocument(LastError(code="invalid_file", message=error.message)) from error
        except InvalidRequest as error:
            raise UnreadableDocument(last_error_of(error)) from error
        return Content(refuse_empty(await split(text, settings.chunking), settings), text)


def refuse_large(content: ObjectContent, settings: DocumentSettings) -> None:
    """Raise InvalidRequest for an object that is over the limit, before it is in memory."""
    most = FILE_LIMITS.file_bytes
    if content.size > most:
        message = f"The object {settings.filename[-80:]!r} has {content.size:,} bytes; at most {most:,} are read. "
        raise InvalidRequest(f"{message}Divide it.", code="invalid_file")


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
        found = chunk_windows(text, chunking.size)
    else:
        sizes = chunking.static if chunking.type == "static" else AUTO_SIZES
        found = chunk_static(text, sizes.max_chunk_size_tokens, sizes.chunk_overlap_tokens)
    return [Chunk(chunk.text, {"token_count": chunk.token_count}) for chunk in found]


def last_error_of(error: InvalidRequest | TooLarge) -> LastError:
    """Return the reason of a failure that the document itself causes."""
    code: FailureCode = "unsupported_file" if error.code == "unsupported_file" else "invalid_file"
    return LastError(code=code, message=error.message)
