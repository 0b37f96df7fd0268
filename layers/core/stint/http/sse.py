"""Server-sent events, for all APIs."""

from stint.domain.schema import Schema
from stint.http.errors import ErrorObject

COMMENT = b": keep-alive\n\n"
COMMENT_LINE = b": keep-alive\n"
"""The comment in streams with `id:` lines. After one of these, clients take an empty line for an event without data."""

DONE = b"data: [DONE]\n\n"
"""The marker at the end of the streams of OpenAI's API."""

LINE_BREAKS = {character.encode(): b"\\u%04x" % ord(character) for character in "\u0085\u2028\u2029"}


class StreamError(Schema):
    """The data of the last event of a turn that failed."""

    error: ErrorObject


def encode_frame(data: bytes, name: str = "") -> bytes:
    """Return one event with its name, if any, and its data. It is one write, because readers may see single writes."""
    line = b"data: %b\n\n" % escape_line_breaks(data)
    return b"event: %b\n%b" % (name.encode(), line) if name else line


def escape_line_breaks(text: bytes) -> bytes:
    """Escape characters that JSON allows and some readers take for the end of a line."""
    if text.isascii():
        return text
    for character, escaped in LINE_BREAKS.items():
        text = text.replace(character, escaped)
    return text
