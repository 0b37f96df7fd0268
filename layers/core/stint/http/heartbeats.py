"""Heartbeats, which keep a silent connection open.

Two tasks write to one connection: one sends the chunks, the other sends a heartbeat after each silence. A heartbeat
between the two halves of a chunk would break the stream, so each write holds a lock. Whoever gets the lock looks at the
clock again: a chunk may have been sent while the heartbeat waited. The time of a write counts from its end, so a client
that reads slowly gets no heartbeats on top of a chunk that is still being sent.

    the chunks end               the heartbeats are cancelled, and the response ends
    a chunk or a write fails     both tasks end, and the first error is raised, not a group of errors
    the response is cancelled    both tasks are cancelled; `aclosing` ends the events in each of these cases
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from fastapi.responses import StreamingResponse
from starlette.types import Send


class HeartbeatResponse(StreamingResponse):
    """A streamed response with `heartbeat` after every `seconds` of silence.

    API Gateway cuts a stream after 5 minutes of silence (30 seconds at an edge-optimized endpoint), proxies sooner:
    https://docs.aws.amazon.com/apigateway/latest/developerguide/response-transfer-mode.html
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        heartbeat: bytes,
        seconds: float,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(chunks, media_type=media_type, headers=headers)
        self.chunks, self.heartbeat, self.seconds = chunks, heartbeat, seconds

    async def stream_response(self, send: Send) -> None:
        """Send the chunks as they arrive. A failure of a heartbeat ends them, too."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        failure: BaseException | None = None
        try:
            await self.send_body(HeartbeatBody(send, self.heartbeat, self.seconds))
        except BaseExceptionGroup as failures:
            failure = failures.exceptions[0]
        if failure is not None:
            raise failure
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send_body(self, body: "HeartbeatBody") -> None:
        """Send the chunks in a task, which resumes without the frames of all middleware."""
        async with asyncio.TaskGroup() as group:
            heartbeats = group.create_task(body.send_heartbeats())
            sending = group.create_task(self.send_chunks(body))
            sending.add_done_callback(lambda _: heartbeats.cancel())
        sending.result()

    async def send_chunks(self, body: "HeartbeatBody") -> None:
        async with aclosing(self.chunks) as chunks:
            async for chunk in chunks:
                await body.send_chunk(chunk)


class HeartbeatBody:
    """The body of a response, which gets a heartbeat after each silence. A chunk that is being sent is no silence."""

    def __init__(self, send: Send, heartbeat: bytes, seconds: float) -> None:
        self.send, self.heartbeat, self.seconds = send, heartbeat, seconds
        self.clock = asyncio.get_running_loop().time
        self.sent_at = self.clock()
        self.sending = asyncio.Lock()

    async def send_chunk(self, chunk: bytes) -> None:
        async with self.sending:
            await self.write(chunk)

    async def send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self.sent_at + self.seconds - self.clock())
            async with self.sending:
                if self.clock() - self.sent_at >= self.seconds:
                    await self.write(self.heartbeat)

    async def write(self, data: bytes) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": True})
        self.sent_at = self.clock()
