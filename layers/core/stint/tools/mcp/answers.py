"""Checks of an MCP server's messages before the `mcp` package parses them."""

import re

from stint.domain.errors import InvalidRequest
from stint.domain.json_text import has_too_many_values
from stint.tools.list_budget import ListBudget

MOST_LINES = 50_000
"""Maximum lines of event streams. Each takes at least a microsecond, even an empty one."""

MOST_VALUES = 50_000
"""Maximum values in one message. 200,000 in a result take a second of CPU time."""

EVENT_ENDS = (b"\r\n\r\n", b"\n\n", b"\r\r")
DATA = re.compile(rb"^data:(.*)", re.MULTILINE)


class ReceiveBudget:
    """Counts the bytes and lines of all messages of a session, and the values in each message.

    Raises InvalidRequest (`url_too_large`) from any method.
    """

    def __init__(self, host: str, max_bytes: int, budget: ListBudget | None = None) -> None:
        self._host = host
        self._max_bytes = max_bytes
        self._budget = budget
        self._bytes = self._lines = 0

    def count(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        if self._bytes > self._max_bytes:
            raise self.too_large(f"{self._max_bytes:,} bytes")
        if self._budget is not None:
            self._budget.count(len(chunk))

    def count_lines(self, chunk: bytes) -> None:
        self._lines += chunk.count(b"\n") + chunk.count(b"\r")
        if self._lines > MOST_LINES:
            raise self.too_large(f"{MOST_LINES:,} lines")

    def check(self, message: bytes) -> None:
        if has_too_many_values(message, MOST_VALUES):
            raise self.too_large(f"{MOST_VALUES:,} values in a message")

    def too_large(self, limit: str) -> InvalidRequest:
        return InvalidRequest(f"{self._host} sent more than {limit}", code="url_too_large")


class AnswerCheck:
    """Checks one response chunk by chunk: a JSON document at its end, an event stream at the end of each event."""

    def __init__(self, received: ReceiveBudget, content_type: str) -> None:
        self._received = received
        self._streams = content_type.lstrip().lower().startswith("text/event-stream")
        self._pending = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._received.count(chunk)
        # The end of an event has up to four bytes, of which three may have come before.
        begin = max(len(self._pending) - 3, 0)
        self._pending += chunk
        if not self._streams:
            return
        self._received.count_lines(chunk)
        end = max(self._pending.rfind(mark, begin) for mark in EVENT_ENDS)
        if end >= 0:
            events = bytes(self._pending[:end]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            for event in events.split(b"\n\n"):
                self._received.check(b"".join(DATA.findall(event)))
            del self._pending[:end]

    def finish(self) -> None:
        if not self._streams:
            self._received.check(bytes(self._pending))
