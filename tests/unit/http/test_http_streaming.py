import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest
from fastapi import Response
from fastapi.responses import StreamingResponse
from tests.clock import CLOCK

from stint.domain.errors import DeadlineExceeded, ModelError, StintError, StoreUnavailable
from stint.domain.schema import Schema
from stint.http.routes.responses import RESPONSE_FORMAT
from stint.http.sse import COMMENT, DONE
from stint.http.streaming import StreamFormat, buffer_document, encode_events, stream_events
from stint.services.runs.run_handle import close_on, open_events

BEAT = 30.0
ENDED = (b"end",)


class Document(Schema):
    text: str = "whole"


@dataclass
class Run:
    error: StintError | None = None


async def play(*parts: str | Exception | float) -> AsyncGenerator[str, None]:
    """Yield texts; an exception is raised in its place, and a number is a silence."""
    for part in parts:
        if isinstance(part, float):
            await asyncio.sleep(part)
        elif isinstance(part, Exception):
            raise part
        else:
            yield part


async def read(response: Response) -> list[bytes]:
    assert isinstance(response, StreamingResponse)
    return [chunk.encode() if isinstance(chunk, str) else bytes(chunk) async for chunk in response.body_iterator]


async def pass_time(answer: "asyncio.Task[Response]", seconds: float) -> Response:
    """Return an answer that waits for a clock."""
    await start_timers()
    CLOCK.move(seconds)
    return await answer


async def start_timers() -> None:
    """Let tasks run until they wait. A timer that starts after the clock was moved would take real time."""
    for _ in range(10):
        await asyncio.sleep(0)


def broken(error: Exception) -> tuple[bytes, ...]:
    return str(error).encode(), *ENDED


FORMAT: StreamFormat[str] = StreamFormat(str.encode, end=ENDED, encode_error=broken)


async def test_a_stream_has_every_event_and_its_end() -> None:
    response = await stream_events(play("a", "b"), FORMAT, BEAT)

    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["x-accel-buffering"] == "no"
    assert await read(response) == [b"a", b"b", b"end"]


async def test_a_silent_stream_begins_and_is_kept_open() -> None:
    answer = asyncio.create_task(stream_events(play(BEAT * 1.5, "a"), FORMAT, BEAT))
    response = await pass_time(answer, BEAT)
    frames = asyncio.create_task(read(response))
    await start_timers()
    CLOCK.move(BEAT)

    assert await frames in ([b"a", b"end"], [COMMENT, b"a", b"end"])


async def test_a_run_that_fails_at_once_is_raised_after_it_was_read_to_its_end() -> None:
    seen, error = [], ModelError("The model is gone.")

    async def events() -> AsyncGenerator[str, None]:
        for part in ("failed", "end"):
            seen.append(part)
            yield part

    with pytest.raises(ModelError):
        await open_events(events(), BEAT, Run(error))

    assert seen == ["failed", "end"]


async def test_an_exception_before_the_first_event_is_raised() -> None:
    with pytest.raises(ModelError):
        await stream_events(play(ModelError("The model is gone.")), FORMAT, BEAT)


async def test_an_exception_in_a_stream_is_written_as_the_api_does() -> None:
    response = await stream_events(play("a", ModelError("gone")), FORMAT, BEAT)

    assert await read(response) == [b"a", b"gone", b"end"]


async def test_a_stream_breaks_off_where_the_api_has_no_form_for_an_exception() -> None:
    response = await stream_events(play("a", ModelError("gone")), StreamFormat(str.encode, end=ENDED), BEAT)

    with pytest.raises(ModelError):
        await read(response)


async def whole(*, late: bool = False, error: Exception | None = None) -> Document:
    if late:
        await asyncio.sleep(BEAT * 1.5)
    if error is not None:
        raise error
    return Document()


async def test_a_document_that_is_there_in_time_is_the_whole_answer() -> None:
    response = await buffer_document(whole(), BEAT, Run())

    assert not isinstance(response, StreamingResponse)
    assert response.body == b'{"text":"whole"}'


@pytest.mark.parametrize("raised", [True, False])
async def test_a_failure_before_the_first_space_is_raised(raised: bool) -> None:
    error = ModelError("The model is gone.")

    with pytest.raises(ModelError):
        await buffer_document(whole(error=error if raised else None), BEAT, None if raised else Run(error))


@pytest.mark.parametrize("error", [None, ModelError("gone")])
async def test_a_late_document_or_what_it_failed_with_comes_after_spaces(error: Exception | None) -> None:
    work = whole(late=True, error=error)
    answer = asyncio.create_task(buffer_document(work, BEAT, encode_error=lambda error: str(error).encode()))
    response = await pass_time(answer, BEAT)
    chunks = asyncio.create_task(read(response))
    await start_timers()
    CLOCK.move(BEAT)

    first, *_, last = await chunks
    assert (first, last) == (b" ", b'{"text":"whole"}' if error is None else b"gone")


@pytest.mark.parametrize("cancel_with_client", [True, False])
async def test_work_ends_with_its_client_only_where_that_is_asked_for(cancel_with_client: bool) -> None:
    gate, ends = asyncio.Event(), list[str]()

    async def work() -> Document:
        try:
            await gate.wait()
            ends.append("whole")
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        return Document()

    answer = asyncio.create_task(buffer_document(work(), BEAT, cancel_with_client=cancel_with_client))
    reader = asyncio.create_task(read(await pass_time(answer, BEAT)))
    for _ in range(5):
        await asyncio.sleep(0)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    gate.set()
    for _ in range(3):
        await asyncio.sleep(0)

    assert ends == ["cancelled" if cancel_with_client else "whole"]


async def write_stored(*parts: str | Exception) -> bytes:
    """Write stored events of a response as they go out."""
    events = close_on(StintError, play(*parts))
    return b"".join([frame async for frame in encode_events(events, RESPONSE_FORMAT.events)])


async def test_stored_events_have_their_names_and_a_marker_at_the_end() -> None:
    text = json.dumps({"sequence_number": 0, "type": "response.created"})

    assert await write_stored(text) == f"event: response.created\ndata: {text}\n\n".encode() + DONE


async def test_a_stream_that_is_left_before_its_end_has_no_marker() -> None:
    text = '{"type":"response.created"}'

    for error in (DeadlineExceeded("The time is over."), StoreUnavailable("The store is down.")):
        assert await write_stored(text, error) == f"event: response.created\ndata: {text}\n\n".encode()
