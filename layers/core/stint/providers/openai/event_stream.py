"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), of which only the data counts.

Lines end with CRLF, LF or CR. A CR at the end of a piece may be the first half of a CRLF, so a LF that follows it is
skipped. A line that is not complete is kept in pieces, and only new bytes are searched, so that the time is linear in
the size of a stream, however it is divided.
"""

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""Maximum bytes of an event, such as an image."""

OVERHEAD = 50
"""Bytes of memory that each kept piece takes besides its own."""


class EventTooLarge(Exception):
    """An event of a stream has more than MAX_EVENT_BYTES."""


class EventStreamDecoder:
    """Decoder of one stream, without I/O."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        """The pieces of the line that is not complete."""
        self._data: list[bytes] = []
        """The lines of data of the event that is not complete."""
        self._size = 0
        """Bytes of both."""
        self._skips_line_feed = False
        self._begins = True

    def feed(self, data: bytes) -> list[str]:
        """Return the data of the events that end in these bytes, without those that have none. Raises EventTooLarge."""
        if self._skips_line_feed and data:
            data = data.removeprefix(b"\n")
            self._skips_line_feed = False
        if data.endswith(b"\r"):
            self._skips_line_feed = True
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        events = [event for line in lines if (event := self._end_line(line)) is not None]
        if rest:
            self._keep(rest)
            self._line.append(rest)
        return events

    def _end_line(self, end: bytes) -> str | None:
        """Read a line, and return the data of the event that it ends."""
        line = end
        if self._line:
            line = b"".join((*self._line, end))
            self._size -= len(line) - len(end) + OVERHEAD * len(self._line)
            self._line.clear()
        if self._begins:
            self._begins = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            event = b"\n".join(self._data).decode(errors="replace")
            self._data, self._size = [], 0
            return event or None
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value.removeprefix(b" ")
            self._keep(value + b"\n")
            self._data.append(value)
        return None

    def _keep(self, piece: bytes) -> None:
        """Count bytes that are kept until the end of the event."""
        self._size += len(piece) + OVERHEAD
        if self._size > MAX_EVENT_BYTES:
            raise EventTooLarge(f"An event has more than {MAX_EVENT_BYTES} bytes.")
