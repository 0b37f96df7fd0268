"""Responses of HTTP/1.1 (RFC 9112), parsed strictly: a response whose end is ambiguous is refused.

Connections are used again. If client and server disagreed about where a response ends, the rest of it would be read as
the answer to the next request, which may be of another tenant. So each of these closes the connection: both lengths or
none, a length twice, an encoding other than `chunked`, a chunk that is longer than its size, bytes after the end, and
line breaks other than CRLF.

  state      `_status`   `_length`   `_ended`   waits for
  head       0           -           -          an empty line; responses 1xx are skipped
  body       set         a number    -          that many bytes
  chunks     set         None        False      the size line of a chunk, and the chunk
  trailers   set         None        True       an empty line

Everything that is kept has a limit, and the patterns have no repetition inside a repetition that could match the same
bytes in two ways, so they take linear time.
"""

import re

from stint.dataclasses import dataclass

HEAD_LIMIT = 64 * 1024
"""Maximum bytes of a head, of all interim heads together, and of trailers."""
BODY_LIMIT = 32 * 1024 * 1024
"""Maximum bytes of a body. BatchGetItem returns up to 16 MB of items, and binary values are base64."""
CHUNK_LINE_LIMIT = 256
NO_BODY = (204, 304)
"""Statuses without a body, whatever their headers say."""

_FIELD = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*\r\n"
_HEAD = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: [^\x00-\x08\x0a-\x1f\x7f]*)?\r\n((?:%b)*)" % _FIELD)
_TRAILERS = re.compile(rb"(?:%b)*\r\n" % _FIELD)
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?")


class MalformedResponse(Exception):
    """The server's response is not HTTP/1.1, or exceeds a limit."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


class ResponseParser:
    """Parser of the response to one request, without I/O. `tunnel`: the request is CONNECT."""

    def __init__(self, *, tunnel: bool = False) -> None:
        self._tunnel = tunnel
        self._buffer = bytearray()
        self._heads = 0
        self._status = 0
        self._version = b""
        self._headers: dict[str, str] = {}
        self._length: int | None = None
        self._chunks = bytearray()
        self._ended = False

    @property
    def surplus(self) -> bool:
        """Return whether bytes follow the response."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> HttpResponse | None:
        """Return the response once it is complete. Raises MalformedResponse."""
        self._buffer += data
        if not self._status and not self._parse_head():
            return None
        if self._length is None:
            if not self._parse_chunks():
                return None
            body = bytes(self._chunks)
        else:
            if len(self._buffer) < self._length:
                return None
            body = bytes(self._buffer[: self._length])
            del self._buffer[: self._length]
        return HttpResponse(self._status, self._headers, body, self._keeps_alive())

    def _parse_head(self) -> bool:
        """Parse the head of the final response, after those of interim ones. Return whether it is complete."""
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if self._heads + (len(self._buffer) if end < 0 else end) > HEAD_LIMIT:
                raise MalformedResponse(f"The head of the response has more than {HEAD_LIMIT} bytes.")
            if end < 0:
                return False
            head = bytes(self._buffer[: end + 2])
            del self._buffer[: end + 4]
            self._heads += len(head)
            status = self._read_head(head)
            if status >= 200:
                self._length = self._body_length(status)
                self._status = status
                return True
            # Nothing asked for it, and what follows would be of an unknown protocol.
            if status == 101:
                raise MalformedResponse("The server switched to another protocol.")

    def _read_head(self, head: bytes) -> int:
        match = _HEAD.fullmatch(head)
        if match is None:
            raise MalformedResponse("The head of the response is malformed.")
        self._version, status, fields = match.groups()
        self._headers = {}
        for line in fields.decode("latin-1").split("\r\n")[:-1]:
            name, _, value = line.partition(":")
            name = name.lower()
            if name in self._headers and name in ("content-length", "transfer-encoding"):
                raise MalformedResponse(f"The response has more than one {name} header.")
            self._headers[name] = value.strip(" \t")
        return int(status)

    def _body_length(self, status: int) -> int | None:
        """Return the length of the body; None means chunks."""
        encoding, length = self._headers.get("transfer-encoding"), self._headers.get("content-length")
        # A tunnel's answer ends with its head, even if it has a Content-Length (RFC 9112, section 6.3).
        if status in NO_BODY or (self._tunnel and status < 300):
            return 0
        if encoding is not None:
            if length is not None or encoding.lower() != "chunked" or self._version == b"0":
                raise MalformedResponse("The Transfer-Encoding of the response is not supported.")
            return None
        if length is None:
            raise MalformedResponse("The response has neither Content-Length nor Transfer-Encoding.")
        # `int` also accepts signs, spaces, underscores and other digits.
        if not (length.isascii() and length.isdigit() and len(length) <= 12):
            raise MalformedResponse("The Content-Length of the response is malformed.")
        if int(length) > BODY_LIMIT:
            raise MalformedResponse(f"The body of the response has more than {BODY_LIMIT} bytes.")
        return int(length)

    def _parse_chunks(self) -> bool:
        """Move complete chunks to the body, and return whether the last one was read."""
        while not self._ended:
            end = self._buffer.find(b"\r\n", 0, CHUNK_LINE_LIMIT)
            if end < 0:
                if len(self._buffer) >= CHUNK_LINE_LIMIT:
                    raise MalformedResponse("The size of a chunk is malformed.")
                return False
            size = self._chunk_size(bytes(self._buffer[:end]))
            after = end + 2 + size
            if size == 0:
                self._ended = True
                del self._buffer[:after]
            elif len(self._buffer) < after + 2:
                return False
            elif self._buffer[after : after + 2] != b"\r\n":
                raise MalformedResponse("A chunk of the response is longer than its size.")
            else:
                self._chunks += self._buffer[end + 2 : after]
                del self._buffer[: after + 2]
        return self._skip_trailers()

    def _chunk_size(self, line: bytes) -> int:
        match = _CHUNK_LINE.fullmatch(line)
        if match is None:
            raise MalformedResponse("The size of a chunk is malformed.")
        size = int(match[1], 16)
        if len(self._chunks) + size > BODY_LIMIT:
            raise MalformedResponse(f"The body of the response has more than {BODY_LIMIT} bytes.")
        return size

    def _skip_trailers(self) -> bool:
        end = 0 if self._buffer.startswith(b"\r\n") else self._buffer.find(b"\r\n\r\n") + 2
        if (len(self._buffer) if end == 1 else end) > HEAD_LIMIT:
            raise MalformedResponse(f"The trailers of the response have more than {HEAD_LIMIT} bytes.")
        if end == 1:
            return False
        if _TRAILERS.fullmatch(self._buffer[: end + 2]) is None:
            raise MalformedResponse("The trailers of the response are malformed.")
        del self._buffer[: end + 2]
        return True

    def _keeps_alive(self) -> bool:
        # Bytes after the response belong to no request, so the connection ends with it.
        tokens = self._headers.get("connection", "").lower().replace(" ", "").split(",")
        return self._version == b"1" and "close" not in tokens and not self._buffer
