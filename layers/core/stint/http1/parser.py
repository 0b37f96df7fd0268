"""Responses of HTTP/1.1 (RFC 9112), parsed strictly: a response whose end is ambiguous is refused.

Connections are used again. If client and server disagreed about where a response ends, the rest of it would be read as
the answer to the next request, which may be of another tenant. So each of these closes the connection: both lengths, a
length twice, an encoding other than `chunked`, a chunk that is longer than its size, bytes after the end, and line
breaks other than CRLF. A body without a length ends with the connection, which only some callers accept.

  state         waits for                          then
  HEAD          an empty line; skips 1xx           LENGTH, CHUNK_SIZE, UNTIL_CLOSE or END
  LENGTH        the rest of Content-Length         END
  CHUNK_SIZE    a line with a size                 CHUNK_DATA, or TRAILERS if it is 0
  CHUNK_DATA    the rest of a chunk and its CRLF   CHUNK_SIZE
  TRAILERS      an empty line                      END
  UNTIL_CLOSE   the end of the connection          END
  END           nothing: further bytes are surplus

Everything that is kept has a limit, and the patterns have no repetition inside a repetition that could match the same
bytes in two ways, so they take linear time.
"""

import re
from enum import Enum, auto

from stint.dataclasses import dataclass

HEAD_LIMIT = 64 * 1024
"""Maximum bytes of a head, of all interim heads together, and of trailers."""
BODY_LIMIT = 32 * 1024 * 1024
"""Maximum bytes of a body. BatchGetItem returns up to 16 MB of items, and binary values are base64."""
CHUNK_LINE_LIMIT = 256
VERSION = b"HTTP/1."
NO_BODY = (204, 304)
"""Statuses without a body, whatever their headers say."""

_FIELD = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*\r\n"
_HEAD = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: [^\x00-\x08\x0a-\x1f\x7f]*)?\r\n((?:%b)*)" % _FIELD)
_TRAILERS = re.compile(rb"(?:%b)*\r\n" % _FIELD)
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")


class MalformedResponse(Exception):
    """The server's response is not HTTP/1.1, or exceeds a limit."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The beginning of a response; names of headers are in lower case."""

    status: int
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response."""

    status: int
    headers: dict[str, str]
    body: bytes


class ParserState(Enum):
    """States of a parser; see the head of the module."""

    HEAD = auto()
    LENGTH = auto()
    CHUNK_SIZE = auto()
    CHUNK_DATA = auto()
    TRAILERS = auto()
    UNTIL_CLOSE = auto()
    END = auto()


class ResponseParser:
    """Parser of the response to one request, without I/O.

    `tunnel`: the request is CONNECT. `until_close`: a body may end with its connection. `max_body`: maximum bytes of
    the body, or None if its reader takes it piece by piece.
    """

    def __init__(self, *, tunnel: bool = False, until_close: bool = False, max_body: int | None = BODY_LIMIT) -> None:
        self.head: ResponseHead | None = None
        self.ended = False
        """Whether the response is complete."""
        self.body = bytearray()
        """The part of the body that was not taken yet, without the framing of chunks."""
        self._tunnel, self._until_close, self._max_body = tunnel, until_close, max_body
        self._state = ParserState.HEAD
        self._buffer = bytearray()
        self._searched = 0
        """Bytes of the buffer that have no end of a head or of trailers, so that each byte is searched once."""
        self._heads = 0
        self._closes = False
        self._has_surplus = False
        self._left = 0
        """Missing bytes of the body, or of the chunk."""
        self._size = 0
        """Bytes of the body, with the current chunk."""

    @property
    def keep_alive(self) -> bool:
        """Return whether the connection may carry another request after this one."""
        # Bytes after the response belong to no request, so the connection ends with it.
        return self.ended and not self._closes and not self._has_surplus

    def take_body(self) -> bytes:
        """Return the part of the body that was received since the last call."""
        body = bytes(self.body)
        self.body.clear()
        return body

    def feed(self, data: bytes) -> None:
        """Parse received bytes. Raises MalformedResponse."""
        if self._state is ParserState.LENGTH and len(data) < self._left:  # most of a large body, without the buffer
            self.body += data
            self._left -= len(data)
            return
        if self.ended:
            self._has_surplus = True
            return
        self._buffer += data
        while self._buffer and self._step():
            pass
        self.ended = self._state is ParserState.END
        if self.ended and self._buffer:
            self._has_surplus = True
            self._buffer.clear()

    def feed_eof(self) -> None:
        """Parse the end of the connection, which is the end of some bodies."""
        if self._state is ParserState.UNTIL_CLOSE:
            self._state, self.ended = ParserState.END, True

    def _step(self) -> bool:
        """Parse a part of the buffer. Return False if more bytes are needed, or none."""
        match self._state:
            case ParserState.HEAD:
                return self._parse_head()
            case ParserState.LENGTH:
                return self._take(ParserState.END)
            case ParserState.CHUNK_SIZE:
                return self._parse_chunk_size()
            case ParserState.CHUNK_DATA:
                return self._parse_chunk_data()
            case ParserState.TRAILERS:
                return self._skip_trailers()
            case ParserState.UNTIL_CLOSE:
                self._count(len(self._buffer))
                self._left = len(self._buffer)
                return self._take(ParserState.UNTIL_CLOSE)
            case ParserState.END:
                return False

    def _parse_head(self) -> bool:
        """Parse a head, which may be an interim one."""
        end = self._find_empty_line()
        if self._heads + (len(self._buffer) if end < 0 else end) > HEAD_LIMIT:
            raise MalformedResponse(f"The head of the response has more than {HEAD_LIMIT} bytes.")
        # What speaks another protocol may never send the end of a head.
        if not VERSION.startswith(self._buffer[: len(VERSION)]):
            raise MalformedResponse("The response is not HTTP/1.")
        if end < 0:
            return False
        head = bytes(self._buffer[: end + 2])
        del self._buffer[: end + 4]
        self._heads += len(head)
        version, found = _read_head(head)
        # Nothing asked for it, and what follows would be of an unknown protocol.
        if found.status == 101:
            raise MalformedResponse("The server switched to another protocol.")
        if found.status >= 200:
            tokens = found.headers.get("connection", "").lower().replace(" ", "").split(",")
            # A tunnel lasts longer than the answer that opens it, whatever that says about the connection.
            is_tunnel = self._tunnel and found.status < 300
            self._closes = not is_tunnel and (version == b"0" or "close" in tokens)
            self._state = self._body_state(version, found)
            self.head = found
        return True

    def _body_state(self, version: bytes, head: ResponseHead) -> ParserState:
        """Return the state after the head, and set what is left of the body."""
        encoding, length = head.headers.get("transfer-encoding"), head.headers.get("content-length")
        # A tunnel's answer ends with its head, even if it has a Content-Length (RFC 9112, section 6.3).
        if head.status in NO_BODY or (self._tunnel and head.status < 300):
            return ParserState.END
        if encoding is not None:
            if length is not None or encoding.lower() != "chunked" or version == b"0":
                raise MalformedResponse("The Transfer-Encoding of the response is not supported.")
            return ParserState.CHUNK_SIZE
        if length is None:
            if not self._until_close:
                raise MalformedResponse("The response has neither Content-Length nor Transfer-Encoding.")
            self._closes = True
            return ParserState.UNTIL_CLOSE
        # `int` also accepts signs, spaces, underscores and other digits.
        if not (length.isascii() and length.isdigit() and len(length) <= 12):
            raise MalformedResponse("The Content-Length of the response is malformed.")
        self._count(int(length))
        self._left = self._size
        return ParserState.LENGTH if self._left else ParserState.END

    def _take(self, after: ParserState) -> bool:
        """Move bytes to the body. The state is `after` when none are left."""
        taken = min(self._left, len(self._buffer))
        self.body += self._buffer[:taken]
        del self._buffer[:taken]
        self._left -= taken
        if not self._left:
            self._state = after
        return not self._left

    def _parse_chunk_size(self) -> bool:
        end = self._buffer.find(b"\r\n", 0, CHUNK_LINE_LIMIT)
        if end < 0:
            if len(self._buffer) >= CHUNK_LINE_LIMIT:
                raise MalformedResponse("The size of a chunk is malformed.")
            return False
        match = _CHUNK_LINE.fullmatch(bytes(self._buffer[:end]))
        if match is None:
            raise MalformedResponse("The size of a chunk is malformed.")
        self._left = int(match[1], 16)
        self._count(self._left)
        self._state = ParserState.CHUNK_DATA if self._left else ParserState.TRAILERS
        del self._buffer[: end + 2]
        return True

    def _parse_chunk_data(self) -> bool:
        """Move the bytes of a chunk to the body, and skip the line break after them."""
        if self._left and not self._take(ParserState.CHUNK_DATA):
            return False
        if not b"\r\n".startswith(self._buffer[:2]):
            raise MalformedResponse("A chunk of the response is longer than its size.")
        if len(self._buffer) < 2:
            return False
        del self._buffer[:2]
        self._state = ParserState.CHUNK_SIZE
        return True

    def _skip_trailers(self) -> bool:
        end = 0 if self._buffer.startswith(b"\r\n") else self._find_empty_line() + 2
        if (len(self._buffer) if end == 1 else end) > HEAD_LIMIT:
            raise MalformedResponse(f"The trailers of the response have more than {HEAD_LIMIT} bytes.")
        if end == 1:
            return False
        if _TRAILERS.fullmatch(self._buffer[: end + 2]) is None:
            raise MalformedResponse("The trailers of the response are malformed.")
        del self._buffer[: end + 2]
        self._state = ParserState.END
        return True

    def _find_empty_line(self) -> int:
        """Return where the first empty line of the buffer begins, or -1. Raises MalformedResponse for bare LF."""
        start = max(0, self._searched - 3)
        end = self._buffer.find(b"\r\n\r\n", start)
        if end < 0 and self._buffer.find(b"\n\n", start) >= 0:
            raise MalformedResponse("The lines of the response do not end with CRLF.")
        self._searched = len(self._buffer) if end < 0 else 0
        return end

    def _count(self, size: int) -> None:
        """Count bytes of the body before they are kept."""
        self._size += size
        if self._max_body is not None and self._size > self._max_body:
            raise MalformedResponse(f"The body of the response has more than {self._max_body} bytes.")


def _read_head(head: bytes) -> tuple[bytes, ResponseHead]:
    """Return the digit of the minor version, and the head."""
    match = _HEAD.fullmatch(head)
    if match is None:
        raise MalformedResponse("The head of the response is malformed.")
    version, status, fields = match.groups()
    headers: dict[str, str] = {}
    for line in fields.decode("latin-1").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name = name.lower()
        if name in headers and name in ("content-length", "transfer-encoding"):
            raise MalformedResponse(f"The response has more than one {name} header.")
        value = value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return version, ResponseHead(int(status), headers)
