"""A model server in a thread, which measures how long it reads each request."""

import asyncio
import base64
import contextlib
import json
import random
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

READ_LIMIT = 64 * 1024 * 1024
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
ANSWER = "done"
DIMENSION = 1_024
"""Of the vectors of embedded texts."""


class ModelServer:
    """Server of embeddings, and of streamed chat completions whose answer is one word. `url` is its base URL.

    `request` is the body of the last request, and `reading` the seconds from its head until it was parsed.
    """

    def __init__(self) -> None:
        self.url = ""
        self.reading = 0.0
        self.request: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    def wait_until_started(self) -> None:
        self._started.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=READ_LIMIT)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close their sockets

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._answer_all(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                began = time.perf_counter()
                self.request = json.loads(await reader.readexactly(content_length(head)))
                self.reading = time.perf_counter() - began
                writer.write(answer_to(self.request))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            writer.transport.abort()


def content_length(head: bytes) -> int:
    fields = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next(int(value) for name, _, value in fields if name == b"content-length")


def answer_to(request: dict[str, Any]) -> bytes:
    """Return the response to a request."""
    if "input" in request:
        body = json.dumps(embeddings(request["input"])).encode()
        return JSON_HEAD % len(body) + body
    return HEAD + b"".join(map(chunk, events(len(request["messages"])))) + b"0\r\n\r\n"


def embeddings(texts: Sequence[str]) -> dict[str, Any]:
    """Return random vectors, of a text always the same."""
    vectors = [array("f", array("b", random.Random(text).randbytes(DIMENSION))) for text in texts]  # noqa: S311
    data = [
        {"index": index, "embedding": base64.b64encode(vector.tobytes()).decode()}
        for index, vector in enumerate(vectors)
    ]
    return {"data": data, "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)}}


def events(messages: int) -> list[bytes]:
    """Return the events of an answer."""
    usage = {"prompt_tokens": messages, "completion_tokens": 1, "total_tokens": messages + 1}
    choices: list[dict[str, Any]] = [
        {"delta": {"content": ANSWER}, "finish_reason": None},
        {"delta": {}, "finish_reason": "stop"},
    ]
    bodies: list[dict[str, Any]] = [{"choices": [{"index": 0, **choice}]} for choice in choices]
    bodies.append({"choices": [], "usage": usage})
    return [*(b"data: %s\n\n" % json.dumps(body).encode() for body in bodies), b"data: [DONE]\n\n"]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@contextlib.contextmanager
def running_model_server() -> Iterator[ModelServer]:
    """Run a model server, and stop it at the end."""
    server = ModelServer()
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    server.wait_until_started()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
