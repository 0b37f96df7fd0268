"""Outcomes that all providers share.

A tool's failure is a result, not an exception: the model reads it and can try something else. Exceptions are left for
what no other call can change, such as refused credentials.

A result has three sizes. MAX_ANSWER_BYTES limits what is read from a server at all. `head_of` cuts what a model reads;
the whole of it is stored as a blob. The run's budget counts all bytes that arrived, including those of responses that
were dropped as too large (`refused`): otherwise a server could send one such response to each of hundreds of calls.
"""

import base64
import binascii
import json
from typing import Any

from stint.domain.content import Content, ContentItem, ImageContentItem, ImageSource, TextContentItem, items_of
from stint.tools.port import ToolOutcome

TIMEOUT = 30.0
"""Timeout in seconds of a tool whose registration has none."""

MAX_ANSWER_BYTES = 3_000_000
"""Maximum bytes of a response to a call or a listing. As text they may take four times as many."""

REFUSED_BYTES = 1_000_000
"""Bytes that a response over the limit counts, however much of it was read: a server could send one to each call."""

NOTE = "[The result has {total} bytes and was truncated: only the first {limit} are shown.]"
"""The end of a result of which the model gets the beginning only."""

IMAGE_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8")


def failure(message: str) -> ToolOutcome:
    """Make the outcome of a failed call, with a message for the model."""
    return ToolOutcome(content=message, error=True)


def too_large(message: str) -> ToolOutcome:
    """Make the outcome of a call whose response was larger than allowed, and therefore dropped."""
    return ToolOutcome(content=message, error=True, refused=REFUSED_BYTES)


def timed_out(seconds: float) -> ToolOutcome:
    """Make the outcome of a timeout. The tool may still be running."""
    return failure(f"The tool did not respond within {seconds:g} s. It may or may not have finished its work.")


def unknown_tool(name: str, known: list[str]) -> ToolOutcome:
    """Make the outcome of a call of an unknown tool."""
    return failure(f"There is no tool named {name!r}. The tools are: {', '.join(known) or 'none'}.")


def attachment(url: str, media_type: str) -> dict[str, Any]:
    """Describe a document for the metadata key ATTACHMENTS."""
    return {"content": {"uri": url}, "mime_type": media_type}


def data_url(data: bytes, media_type: str) -> str:
    """Return bytes as a data URL (RFC 2397)."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def read_image(encoded: str) -> ImageContentItem | None:
    """Return an image for models from its base64 (PNG, JPEG, GIF or WebP); None for anything else."""
    try:
        head = base64.b64decode(encoded, validate=True)[:12]
    except binascii.Error:
        return None
    if head.startswith(IMAGE_SIGNATURES) or (head[:4], head[8:]) == (b"RIFF", b"WEBP"):
        return ImageContentItem(image=ImageSource(data=encoded))
    return None


def write_json(value: Any) -> str:
    """Return a value as compact JSON for the model, with unescaped characters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size_of(content: Content) -> int:
    """Return the size of a content in bytes, of UTF-8 text and base64 image data."""
    return sum(map(_size_of, items_of(content)))


def head_of(content: Content, limit: int) -> Content:
    """Return the first `limit` bytes of a content for the model, with a note if it was cut.

    Bytes are those of UTF-8 text and base64 image data. An image that does not fit is omitted.
    """
    items = items_of(content)
    total = size_of(content)
    if total <= limit:
        return content
    head: list[ContentItem] = []
    left = limit
    for item in items:
        size = _size_of(item)
        if size <= left:
            head.append(item)
        elif isinstance(item, TextContentItem):
            # No smaller item follows a text that was cut: the model would read it as the continuation.
            head.append(TextContentItem(text=item.text.encode()[:left].decode("utf-8", "ignore")))
            break
        left -= min(size, left)
    return [*head, TextContentItem(text=NOTE.format(total=total, limit=limit))]


def is_head(content: Content) -> bool:
    """Return whether a content ends with the note of `head_of`. A tool may have written the same words."""
    last = content[-1] if isinstance(content, list) and content else None
    begin, _, end = NOTE.partition("{total}")
    return isinstance(last, TextContentItem) and last.text.startswith(begin) and last.text.endswith(end[-9:])


def _size_of(item: ContentItem) -> int:
    if isinstance(item, ImageContentItem):
        image = item.image
        return len(image.data or (image.url.uri if image.url else ""))
    return len(item.text.encode())
