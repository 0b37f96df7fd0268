"""One ConverseStream call, outside the event loop."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

T = TypeVar("T")


class ConverseCall:
    """A call in a thread of its own, because boto3's event stream blocks.

    The thread is not one of the event loop's, because slow calls would use those up. An event is read on request, so a
    slow reader slows the sender down through the socket.
    """

    def __init__(self, client: "Callable[[], BedrockRuntimeClient]", parameters: dict[str, Any]) -> None:
        self._client = client
        self._parameters = parameters
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bedrock")
        self._stream: Any = None
        self._events: Iterator[Any] = iter(())

    async def open(self) -> None:
        """Send the request, and wait for the first bytes of the answer."""
        await self._run(self._open)

    async def next_event(self) -> dict[str, Any] | None:
        """Return the next event; None at the end."""
        return await self._run(lambda: next(self._events, None))

    def close(self) -> None:
        """End the call without waiting. A blocked read is interrupted, and the thread closes the connection and ends.

        A request without an answer so far cannot be interrupted. Its thread ends with the answer or the timeout.
        """
        if self._stream is not None:
            with suppress(ValueError, RuntimeError, OSError):  # the answer was read to the end
                self._stream._raw_stream.shutdown()  # boto3's close would wait for the blocked read
        # In the same thread, so after the read that was interrupted: the connection is not thread-safe.
        self._thread.submit(self._release)
        self._thread.shutdown(wait=False)

    def _open(self) -> None:
        self._stream = self._client().converse_stream(**self._parameters)["stream"]
        self._events = iter(self._stream)

    def _release(self) -> None:
        if self._stream is not None:
            self._stream.close()

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, copy_context().run, function)
