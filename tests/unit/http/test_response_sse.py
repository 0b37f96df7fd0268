from collections.abc import AsyncIterator

from stint.domain.errors import DeadlineExceeded, StoreUnavailable
from stint.http.response_sse import encode_stored
from stint.http.sse import DONE


async def write(*parts: str | Exception) -> bytes:
    """Write stored events as they go out; an exception is raised in its place."""

    async def stored() -> AsyncIterator[str]:
        for part in parts:
            if isinstance(part, Exception):
                raise part
            yield part

    return b"".join([frame async for frame in encode_stored(stored())])


async def test_stored_events_have_their_names_and_a_mark_at_the_end() -> None:
    text = '{"sequence_number":0,"type":"response.created"}'

    assert await write(text) == f"event: response.created\ndata: {text}\n\n".encode() + DONE


async def test_a_stream_that_is_left_before_its_end_has_no_mark() -> None:
    text = '{"type":"response.created"}'

    for error in (DeadlineExceeded("The time is over."), StoreUnavailable("The store is down.")):
        assert await write(text, error) == f"event: response.created\ndata: {text}\n\n".encode()
