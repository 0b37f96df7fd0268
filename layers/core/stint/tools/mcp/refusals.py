"""Refusals of an MCP server: the HTTP errors of a session's requests, and the reason that their bodies state.

Servers state it as a JSON-RPC error, in JSON or in an event stream. Some send a text, or JSON of their own, which an
error page of a gateway may also be: that is a remark, and counts less.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
from httpx_sse import EventSource

from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.domain.json_text import parse_json
from stint.domain.known_secrets import redact

MAX_REASON_BYTES = 64_000
REASON_SECONDS = 1.0
"""Maximum seconds to wait for the reason of a refusal."""

LONGEST_REASON = 500
"""Maximum characters of a reason. A longer remark is not shown."""

EVENTS = "text/event-stream"
REMARKS = ("error", "detail", "message", "title")
"""Fields whose text says what is wrong, in JSON that is no JSON-RPC. RFC 9457 has `detail` and `title`."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a server refuses a request: the message of a JSON-RPC error, or a remark. Both may be empty.

    `code` is that of the JSON-RPC error, 0 without one. `supported` are the revisions of the protocol that it names.
    """

    message: str = ""
    remark: str = ""
    code: int = 0
    supported: tuple[str, ...] = ()


class McpRequestRefused(Exception):
    """The server answered a request with an error. `opening`: it was the first message of the session."""

    def __init__(self, method: str, status: int, *, opening: bool, reason: Reason) -> None:
        super().__init__(f"{status} to {method}")
        self.method = method
        self.status = status
        self.opening = opening
        self.reason = reason


def stream_of(response: httpx.Response) -> httpx.AsyncByteStream:
    """Return the stream of a response of an asynchronous transport."""
    assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - an asynchronous transport's is
    return response.stream


async def read_reason(response: httpx.Response) -> Reason:
    """Return the reason in a response, which the server must send at once. The body is kept for the next reader."""
    body = bytearray()
    kind = re.split("[;,]", response.headers.get("content-type", ""))[0].strip().lower()  # a comma joins two headers
    try:
        async with asyncio.timeout(REASON_SECONDS):
            text = await read_text(response, body, kind)
    except (TimeoutError, httpx.HTTPError, StintError, ValueError):
        return Reason()
    finally:
        await response.aclose()
        response.stream = httpx.ByteStream(bytes(body))
    return find_reason(text, kind)


async def read_text(response: httpx.Response, body: bytearray, kind: str) -> str:
    """Return the text of a response, or the data of its first event. `body` gets what was read.

    Raises:
        ValueError: it is too long, or not UTF-8.
    """

    async def read_chunks() -> AsyncIterator[bytes]:
        async for chunk in stream_of(response):
            body.extend(chunk)
            if len(body) > MAX_REASON_BYTES:
                raise ValueError
            yield chunk

    copy = httpx.Response(response.status_code, headers={"content-type": kind}, content=read_chunks())
    if kind != EVENTS:
        return (await copy.aread()).decode()
    async with aclosing(EventSource(copy).aiter_sse()) as events:
        return await anext((event.data async for event in events if event.data), "")


def find_reason(text: str, kind: str) -> Reason:
    """Return the reason in a text of a media type."""
    if kind == "text/plain":
        return Reason(remark=remark_of(text))
    if kind not in ("application/json", EVENTS) and not kind.endswith("+json"):
        return Reason()
    try:
        document = parse_json(text)
    except ValueError:
        return Reason()
    if not isinstance(document, dict):
        return Reason()
    message = message_of(document.get("error"))
    if "jsonrpc" in document:
        error = document.get("error")
        return Reason(message, code=code_of(error), supported=supported_by(error))
    said = (message if name == "error" else document.get(name) for name in REMARKS)
    return Reason(remark=next((remark for each in said if (remark := remark_of(each))), ""))


def message_of(error: Any) -> str:
    """Return the message of an error, which should be an object; empty without one."""
    message = error.get("message") if isinstance(error, dict) else error
    return message.strip() if isinstance(message, str) else ""


def code_of(error: Any) -> int:
    """Return the code of an error, which should be an object; 0 without one."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else 0


def supported_by(error: Any) -> tuple[str, ...]:
    """Return the revisions that an error names."""
    data = error.get("data") if isinstance(error, dict) else None
    supported = data.get("supported") if isinstance(data, dict) else None
    return tuple(each for each in supported if isinstance(each, str)) if isinstance(supported, list) else ()


def remark_of(text: Any) -> str:
    """Return a text if it is short and printable, as an error page is not; otherwise an empty one."""
    words = " ".join(text.split()) if isinstance(text, str) else ""
    return words if len(words) <= LONGEST_REASON and words.isprintable() else ""


def shorten_reason(reason: str) -> str:
    """Return a reason for the caller: on one line, of limited length, and without the request's credentials.

    They are redacted before the cut, after which a part of one would not be recognized.
    """
    printable = "".join(char if char.isprintable() else " " for char in reason)
    return redact(" ".join(printable.split()))[:LONGEST_REASON].rstrip(" .")
