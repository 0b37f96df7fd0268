"""Events of the Responses API as server-sent events (Open Responses, "Streaming")."""

import json
import logging
from collections.abc import AsyncIterator

from stint.domain.errors import StintError
from stint.domain.openai.response_events import ResponseEvent
from stint.http.sse import DONE, escape_line_breaks

logger = logging.getLogger(__name__)


def encode(event: ResponseEvent) -> bytes:
    """Write one event whole, its name and its data: readers may see no more than one write at a time."""
    return frame(event.type, event.to_json())


def frame(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), escape_line_breaks(data))


async def encode_all(events: AsyncIterator[ResponseEvent]) -> AsyncIterator[bytes]:
    """Write events, and the end of the stream behind them."""
    async for event in events:
        yield encode(event)
    yield DONE


async def encode_stored(texts: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """Write stored events; the mark of the end is left out where the stream is not at its end.

    A client that finds no mark comes again, with the number of the last event that it has.
    """
    try:
        async for text in texts:
            yield frame(json.loads(text)["type"], text.encode())
    except StintError as error:
        logger.info("A stream is left before its end", extra={"error_code": error.code})
        return
    yield DONE
