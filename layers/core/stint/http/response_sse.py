"""Events of the Responses API as server-sent events (Open Responses, "Streaming")."""

from collections.abc import AsyncIterator

from stint.domain.response_events import ResponseEvent
from stint.http.sse import escape_line_breaks

DONE = b"data: [DONE]\n\n"


def encode(event: ResponseEvent) -> bytes:
    """Write one event whole, its name and its data: readers may see no more than one write at a time."""
    return frame(event.type, event.model_dump_json())


def frame(name: str, data: str) -> bytes:
    return f"event: {name}\ndata: {escape_line_breaks(data)}\n\n".encode()


async def encode_all(events: AsyncIterator[ResponseEvent]) -> AsyncIterator[bytes]:
    """Write events, and the end of the stream behind them."""
    async for event in events:
        yield encode(event)
    yield DONE
