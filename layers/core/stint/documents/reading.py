"""Conversion of a request's documents to texts.

Documents are read concurrently, since most of the time is that of other servers, but only two at once, since each is in
memory as a whole. They are converted one after the other (`converter.py`).

After an error no further document is started. `gather` waits for those that are being read, so that none is left behind
when the request has been answered. Of several errors, the first by position is the answer.

With `originals`, a file for code need not have a text. Its error is kept, and it counts as read.
"""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import unquote_to_bytes

from stint.dataclasses import dataclass, field
from stint.documents.converter import Converter
from stint.documents.limits import Limits
from stint.documents.mime_types import Kind, MimeType, choose, kind_of, parse_mime_type
from stint.documents.served import DocumentData, InlineDocument, Originals, Unreadable
from stint.domain.content import URL, Document, TextContentItem, items_of, text_of
from stint.domain.errors import InvalidRequest

Source = Callable[[], Awaitable[DocumentData]]
"""A function that reads a document from elsewhere, or raises InvalidRequest."""
Fetch = Callable[[str], Awaitable[DocumentData]]
"""A function that fetches an http(s) URL within limits, or raises InvalidRequest: `stint.net.guard.Guard.fetch`."""

READ_AT_ONCE = 2
"""Documents in memory at once, as bytes: each has up to 10 MB, and twice that while it is fetched."""

PIECE = 65_536
"""Characters of a data URL that are decoded at a time. Divisible by four, the characters of a base64 group."""

STANDARD = bytes.maketrans(b"-_", b"+/")


async def read_documents(
    documents: Sequence[Document | Source],
    fetch: Fetch,
    limits: Limits,
    places: Sequence[str] = (),
    originals: Originals | None = None,
) -> list[str]:
    """Read the documents of a request concurrently, and return their texts in order.

    With `originals`, the documents that it keeps need no text: that of one without is empty.

    Raises:
        InvalidRequest: (`unsupported_document`, `unreadable_document`, `document_too_large`, `too_many_documents`, or a
            code of the guard) names the first invalid one by its location, `documents[i]` unless `places` has another.
    """
    places = places or [f"documents[{index}]" for index in range(len(documents))]
    if len(documents) > limits.documents:
        message = f"A request may have at most {limits.documents} documents, not {len(documents):,}."
        raise InvalidRequest(message, code="too_many_documents", param=places[limits.documents])
    async with Converter(limits) as converter:
        reading = ConcurrentReader(fetch, limits, converter, originals)
        placed = enumerate(zip(places, documents, strict=True))
        reads = (reading.read(index, place, document) for index, (place, document) in placed)
        results = await asyncio.gather(*reads, return_exceptions=True)
    texts: list[str] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        texts.append(result)
    return texts


@dataclass(slots=True)
class ConcurrentReader:
    """Reads the documents of one request. After an error no further one is started, because the request fails."""

    fetch: Fetch
    """Fetches a URL."""
    limits: Limits
    """The limits of the request."""
    converter: Converter
    """Shared by all documents of the request."""
    originals: Originals | None = None
    """Keeps documents as they were sent, if that is wanted."""
    turnstile: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READ_AT_ONCE))
    """Limits the documents in memory."""
    characters: int = 0
    """Characters of the texts that were read so far."""
    failed: bool = False
    """Whether a document could not be read."""

    async def read(self, index: int, place: str, document: Document | Source) -> str:
        """Read one document. Errors name its location."""
        async with self.turnstile:
            if self.failed:
                return ""
            try:
                text = await self.to_text(index, document)
                self.count(text)
                return text
            except Unreadable as error:
                if self.originals is not None and index in self.originals.bodies:
                    self.originals.errors[index] = error
                    return ""
                code, message = error.code, f"{error}{self.originals.limits if self.originals else ''}"
            except InvalidRequest as error:
                code, message = error.code, error.message
            self.failed = True
            raise InvalidRequest(f"{place}: {message.rstrip('.')}.", code=code, param=place)

    def count(self, text: str) -> None:
        """Count the characters of a text as soon as it is read, so that texts over the limit are not kept."""
        total = self.characters + len(text)
        if total > self.limits.characters:
            raise Unreadable(
                f"it has {len(text):,} characters, and the documents read so far have {total:,} in total; at "
                f"most {self.limits.characters:,} are allowed. Send only the relevant part",
                "document_too_large",
            )
        self.characters = total

    def keep(self, index: int, raw: DocumentData) -> DocumentData:
        if self.originals is not None:
            self.originals.keep(index, raw)
        return raw

    async def to_text(self, index: int, document: Document | Source) -> str:
        """Fetch a document if it is a URL, and convert it to text."""
        if not isinstance(document, Document):
            return await self.convert_bytes(self.keep(index, await document()), parse_mime_type(""))
        declared = parse_mime_type(document.mime_type)
        if self.originals is None and declared.essence and not declared.generic:
            # Only the declared type is known here. What a server declares is checked after the fetch.
            kind_of(declared)  # before anything is fetched
        content = document.content
        if not isinstance(content, URL):
            if not all(isinstance(item, TextContentItem) for item in items_of(content)):
                raise Unreadable("its content is not text: send images in the messages", "unsupported_document")
            text = text_of(content)
            if self.originals is not None:
                self.originals.keep(index, InlineDocument(declared.essence, text.encode(errors="replace")))
            return await self.convert_text(text, declared)
        scheme = content.uri[:40].partition(":")[0].strip().lower()
        if scheme == "data":
            raw: DocumentData = await asyncio.to_thread(parse_data_url, content.uri, self.limits.data_url_bytes)
        elif scheme in ("http", "https"):
            raw = await self.fetch(content.uri)
        else:
            raise Unreadable(f"a URL must be http, https or data, not {content.uri[:40]!r}", "unsupported_document")
        return await self.convert_bytes(self.keep(index, raw), declared)

    async def convert_text(self, text: str, declared: MimeType) -> str:
        """Convert a document that was sent as text. Without a declared type it is plain text already."""
        kind = Kind.text if declared.generic else kind_of(declared)
        if kind is Kind.pdf:
            raise Unreadable("a PDF cannot be sent as text: use a data URL or an http(s) URL", "unsupported_document")
        if kind is Kind.html:
            return await self.converter.convert(kind, text.encode(errors="replace"), declared.essence, "utf-8")
        return text

    async def convert_bytes(self, raw: DocumentData, declared: MimeType) -> str:
        """Convert a document that was sent or fetched as bytes."""
        served = parse_mime_type(raw.content_type)
        chosen = choose(declared, served)
        charset = served.charset or declared.charset
        return await self.converter.convert(kind_of(chosen), raw.body, chosen.essence, charset)


def parse_data_url(url: str, most_bytes: int) -> InlineDocument:
    """Decode a data URL, base64 or percent-encoded. Without a type it is US-ASCII text, as the RFC says.

    Raises:
        Unreadable: it has no comma, its base64 is invalid, or it has more than `most_bytes`.
    """
    url = url.strip()
    comma = url.find(",")
    if comma < 0:
        raise Unreadable("a data URL needs a comma before its data: data:text/plain,Hello")
    # Before anything is decoded or copied.
    if len(url) - comma > 3 * most_bytes + 1:  # percent-encoding takes three characters per byte
        raise too_large(most_bytes)
    header = url[len("data:") : comma].strip()
    body = unquote(url[comma + 1 :].encode())
    if header.lower().endswith(";base64"):
        header = header[: -len(";base64")]
        body = decode_base64(body)
    if len(body) > most_bytes:
        raise too_large(most_bytes)
    if header.startswith(";"):
        header = f"text/plain{header}"
    return InlineDocument(header or "text/plain;charset=US-ASCII", body)


def unquote(data: bytes) -> bytes:
    """Decode percent-encoded bytes in pieces. urllib makes an object per escape, 250 MB for two million."""
    if b"%" not in data:
        return data
    pieces: list[bytes] = []
    start = 0
    while start < len(data):
        end = start + PIECE
        divided = data.find(b"%", end - 2, end)  # no piece ends inside an escape such as %41
        end = divided if divided > start else end
        pieces.append(unquote_to_bytes(data[start:end]))
        start = end
    return b"".join(pieces)


def decode_base64(data: bytes) -> bytes:
    """Decode base64 in either alphabet, with or without padding and white space."""
    compact = data.translate(STANDARD, b" \t\r\n\f\v").rstrip(b"=")
    try:
        return base64.b64decode(compact + b"=" * (-len(compact) % 4), validate=True)
    except binascii.Error:
        raise Unreadable("its data URL has invalid base64") from None


def too_large(most_bytes: int) -> Unreadable:
    return Unreadable(f"its data URL has more than {most_bytes:,} bytes", "document_too_large")
