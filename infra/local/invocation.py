"""One invocation of a function: the event, and the response as it arrives.

It is a pipe between the Runtime API, which feeds it, and one reader. Two events tell what has happened: `begun`, after
which the caller has something to read, and `done`, which is final, whoever ends the invocation first: the function, its
timeout, or a stop. Bytes that arrive later are dropped. The function is never slowed by its reader, and goes on without
it, as in Lambda.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(frozen=True)
class FunctionError:
    """The reason why an invocation failed; `payload` is the JSON that Lambda returns to the caller."""

    type: str
    message: str
    payload: bytes

    @classmethod
    def of(cls, error_type: str, message: str) -> "FunctionError":
        """Return an error that Lambda itself reports."""
        body = {"errorType": error_type, "errorMessage": message}
        return cls(error_type, message, json.dumps(body).encode())

    @classmethod
    def reported(cls, header: str | None, payload: bytes) -> "FunctionError":
        """Read an error that the function's runtime reported."""
        try:
            body = json.loads(payload)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return cls.of(header or "Runtime.Unknown", "Unknown application error occurred")
        error_type = body.get("errorType") or header or "Runtime.Unknown"
        return cls(str(error_type), str(body.get("errorMessage", "")), payload)


@dataclass(frozen=True)
class Retries:
    """Retries of a failed asynchronous event: at most `count`.

    After the last one, a record of the event is sent to the queue with this ARN, if there is one.
    """

    count: int = 2
    queue_arn: str = ""


def response_too_large(limit: int) -> FunctionError:
    """Return the error of a response over `limit` bytes."""
    message = f"Response payload size exceeded maximum allowed payload size ({limit} bytes)."
    return FunctionError.of("Function.ResponseSizeTooLarge", message)


class Invocation:
    """The response of one invocation; `limit` is the maximum number of bytes for its caller.

    `content_type` is the one that the function sent. `body()` yields the raw payload as it arrives, including the
    prelude and the NUL bytes of a streamed response. `error` is set once `body()` is exhausted. After an error before
    the first byte, the body is empty.
    """

    def __init__(
        self, request_id: str, event: bytes, *, limit: int | None = None, client_context: str | None = None
    ) -> None:
        self.request_id = request_id
        self.event = event
        self.client_context = client_context
        self.content_type = ""
        self.error: FunctionError | None = None
        self.begun = asyncio.Event()
        self.done = asyncio.Event()
        self._limit = limit
        self._size = 0
        self._chunks: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._abandoned = False

    @property
    def ended(self) -> bool:
        return self.done.is_set()

    def begin(self, content_type: str) -> None:
        """Record that the function has begun its response."""
        self.content_type = content_type
        self.begun.set()

    def feed(self, data: bytes) -> None:
        """Add bytes of the function's response. They are dropped once the reader is gone."""
        if self._limit is not None:
            self._size += len(data)
            if self._size > self._limit:
                self.finish(response_too_large(self._limit))
        if not self._abandoned and not self.ended:
            self._chunks.append(data)
            self._arrived.set()

    def finish(self, error: FunctionError | None = None) -> None:
        """End the response. Later calls have no effect."""
        if not self.ended:
            self.error = error
            self.done.set()
            self.begun.set()
            self._arrived.set()

    async def body(self) -> AsyncGenerator[bytes, None]:
        """Yield the payload as it arrives. The function continues if the reader leaves, as in Lambda."""
        try:
            while True:
                while self._chunks:
                    yield self._chunks.popleft()
                if self.ended:
                    return
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            self._abandoned = True
            self._chunks.clear()

    async def read(self) -> bytes:
        """Return the whole payload."""
        return b"".join([chunk async for chunk in self.body()])
