"""One invocation of a function: the event, and the answer as it arrives."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(frozen=True)
class FunctionError:
    """Why an invocation failed; `payload` is the JSON that Lambda gives to the caller."""

    type: str
    message: str
    payload: bytes

    @classmethod
    def of(cls, error_type: str, message: str) -> "FunctionError":
        """Make an error that Lambda itself reports."""
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
    """What becomes of an asynchronous event that a function failed on.

    It is tried `count` times more, and then kept in the queue with this ARN, when there is one.
    """

    count: int = 2
    queue_arn: str = ""


def response_too_large(limit: int) -> FunctionError:
    """Make the error of an answer over `limit` bytes."""
    message = f"Response payload size exceeded maximum allowed payload size ({limit} bytes)."
    return FunctionError.of("Function.ResponseSizeTooLarge", message)


class Invocation:
    """The answer of one invocation; `limit` is the most bytes that its caller can take.

    `content_type` is what the function sent. `body()` gives the raw payload as it arrives (a streamed answer's prelude
    and NUL bytes included). `error` is known once `body()` is exhausted; an error before the first byte leaves the body
    empty.
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
        self.ended = False
        self._limit = limit
        self._size = 0
        self._chunks: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._abandoned = False

    def begin(self, content_type: str) -> None:
        """Note that the function has begun to answer."""
        self.content_type = content_type
        self.begun.set()

    def feed(self, data: bytes) -> None:
        """Take bytes of the function; nobody keeps them once the reader is gone."""
        if self._limit is not None:
            self._size += len(data)
            if self._size > self._limit:
                self.finish(response_too_large(self._limit))
        if not self._abandoned and not self.ended:
            self._chunks.append(data)
            self._arrived.set()

    def finish(self, error: FunctionError | None = None) -> None:
        """End the answer; the first ending counts."""
        if not self.ended:
            self.ended, self.error = True, error
            self.begun.set()
            self._arrived.set()

    async def body(self) -> AsyncGenerator[bytes, None]:
        """Give the payload as it arrives; a reader that leaves does not stop the function, as in Lambda."""
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
        """Give the whole payload."""
        return b"".join([chunk async for chunk in self.body()])
