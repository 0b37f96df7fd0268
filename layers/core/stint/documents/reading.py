"""The documents of a turn as texts."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from stint.documents.data_urls import parse_data_url
from stint.documents.html import html_to_text
from stint.documents.mime_types import Kind, MimeType, choose, kind_of, parse_mime_type
from stint.documents.pdf import pdf_to_text
from stint.documents.served import Served, Unreadable
from stint.documents.text import decode
from stint.domain.content import URL, TextContentItem, items_of, text_of
from stint.domain.errors import InvalidRequest
from stint.domain.turns import Document

Fetch = Callable[[str], Awaitable[Served]]
"""Gets an http(s) URL with caps of time and bytes, or raises InvalidRequest: `stint.net.guard.Guard.fetch`."""

READ_AT_ONCE = 4
"""Documents in memory side by side, as bytes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What documents may cost. `characters` counts those of all documents of a turn; `seconds` is for reading one."""

    data_url_bytes: int = 10_000_000
    characters: int = 500_000
    pages: int = 500
    seconds: float = 10.0


async def read_documents(
    documents: Sequence[Document], fetch: Fetch, limits: Limits, places: Sequence[str] = ()
) -> list[str]:
    """Read the documents of a request side by side; give their texts in order.

    Raises:
        InvalidRequest: (`unsupported_document`, `unreadable_document`, `document_too_large`, or a code of the guard)
            names the first one at fault by its place, `documents[i]` unless `places` tell another.
    """
    places = places or [f"documents[{index}]" for index in range(len(documents))]
    turnstile = asyncio.Semaphore(READ_AT_ONCE)

    async def read_one(place: str, document: Document) -> str:
        async with turnstile:
            return await read_document(place, document, fetch, limits)

    reads = (read_one(place, document) for place, document in zip(places, documents, strict=True))
    results = await asyncio.gather(*reads, return_exceptions=True)
    texts: list[str] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        texts.append(result)
    refuse_excess(texts, limits.characters, places)
    return texts


async def read_document(place: str, document: Document, fetch: Fetch, limits: Limits) -> str:
    """Read one document; errors name it by its place."""
    try:
        return await to_text(document, fetch, limits)
    except Unreadable as error:
        code, message = error.code, str(error)
    except InvalidRequest as error:
        code, message = error.code, error.message
    raise InvalidRequest(f"{place}: {message.rstrip('.')}.", code=code, param=place)


async def to_text(document: Document, fetch: Fetch, limits: Limits) -> str:
    """Get a document's bytes, if they are elsewhere, and turn it into text."""
    declared = parse_mime_type(document.mime_type)
    if declared.essence and not declared.generic:
        kind_of(declared)  # before anything is fetched
    content = document.content
    if not isinstance(content, URL):
        if not all(isinstance(item, TextContentItem) for item in items_of(content)):
            raise Unreadable("its content is not text: send images in the messages", "unsupported_document")
        return await convert_text(text_of(content), declared, limits)
    scheme = content.uri.partition(":")[0].strip().lower()
    if scheme == "data":
        raw: Served = parse_data_url(content.uri, limits.data_url_bytes)
    elif scheme in ("http", "https"):
        raw = await fetch(content.uri)
    else:
        raise Unreadable(f"a URL must be http, https or data, not {content.uri[:40]!r}", "unsupported_document")
    return await convert_bytes(raw, declared, limits)


async def convert_text(text: str, declared: MimeType, limits: Limits) -> str:
    """Turn a document sent as text into plain text; of no declared kind, it is plain text already."""
    kind = Kind.text if declared.generic else kind_of(declared)
    if kind is Kind.pdf:
        raise Unreadable("a PDF cannot be sent as text: use a data URL or an http(s) URL", "unsupported_document")
    if kind is Kind.html:
        return await asyncio.to_thread(html_to_text, text, time.monotonic() + limits.seconds)
    return text


async def convert_bytes(raw: Served, declared: MimeType, limits: Limits) -> str:
    """Turn a document that came as bytes into plain text; in a thread, as long ones take their time."""
    served = parse_mime_type(raw.content_type)
    until = time.monotonic() + limits.seconds
    chosen = choose(declared, served)
    match kind_of(chosen):
        case Kind.pdf:
            return await asyncio.to_thread(pdf_to_text, raw.body, until, limits.pages, limits.characters)
        case Kind.html:
            text = decode(raw.body, served.charset or declared.charset, chosen.essence)
            return await asyncio.to_thread(html_to_text, text, until)
        case Kind.text:
            return decode(raw.body, served.charset or declared.charset, chosen.essence)


def refuse_excess(texts: list[str], most: int, places: Sequence[str]) -> None:
    """Refuse documents that are too long together.

    Raises:
        InvalidRequest: names the document that goes over the limit.
    """
    total = 0
    for place, text in zip(places, texts, strict=True):
        total += len(text)
        if total > most:
            raise InvalidRequest(
                f"{place}: with its {len(text):,} characters the documents of this request have {total:,}; {most:,} "
                "are the most. Send the part that matters.",
                code="document_too_large",
                param=place,
            )
