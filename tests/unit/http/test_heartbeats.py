import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.types import Message
from tests.clock import CLOCK

from stint.http.streaming import HeartbeatResponse, stream_frames

SECONDS = 30.0
BEAT = b": beat\n"


class Client:
    """The receiver of a response: bodies pass while the gate is open, and fail from number `lost` on."""

    def __init__(self, lost: int | None = None) -> None:
        self.bodies: list[bytes] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.lost = lost

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            return
        if self.lost is not None and len(self.bodies) >= self.lost:
            raise OSError("The client is gone.")
        await self.gate.wait()
        self.bodies.append(message["body"] if message["more_body"] else b"end")


def start(chunks: AsyncGenerator[bytes, None], client: Client) -> "asyncio.Task[None]":
    response = HeartbeatResponse(chunks, BEAT, SECONDS, "text/event-stream")
    return asyncio.create_task(response.stream_response(client.send))


async def turns_of_the_loop(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def numbers(*pauses: float) -> AsyncGenerator[bytes, None]:
    """Yield a number after each pause, in which time passes at once."""
    for number, pause in enumerate(pauses):
        CLOCK.move(pause)
        await turns_of_the_loop()
        yield b"%d" % number


async def silent(gate: asyncio.Event) -> AsyncGenerator[bytes, None]:
    yield b"first"
    await gate.wait()
    yield b"last"


async def test_chunks_pass_in_order_and_silence_is_filled() -> None:
    gate, client = asyncio.Event(), Client()

    with CLOCK.stop():
        sending = start(silent(gate), client)
        for _ in range(2):
            await turns_of_the_loop()
            CLOCK.move(SECONDS)
        await turns_of_the_loop()
        gate.set()
        await sending

    assert client.bodies == [b"first", BEAT, BEAT, b"last", b"end"]


async def test_a_source_that_is_not_silent_for_so_long_gets_no_beat() -> None:
    client = Client()

    await start(numbers(*[SECONDS * 0.9] * 5), client)

    assert client.bodies == [b"0", b"1", b"2", b"3", b"4", b"end"]


async def test_a_chunk_that_is_being_sent_is_no_silence() -> None:
    client = Client()
    client.gate.clear()

    with CLOCK.stop():
        sending = start(numbers(0.0), client)
        await turns_of_the_loop()
        CLOCK.move(2 * SECONDS)
        await turns_of_the_loop()
        client.gate.set()
        await sending

    assert client.bodies == [b"0", b"end"]


async def test_a_chunk_waits_for_the_beat_that_is_being_sent() -> None:
    gate, client = asyncio.Event(), Client()

    with CLOCK.stop():
        sending = start(silent(gate), client)
        await turns_of_the_loop()
        client.gate.clear()
        CLOCK.move(SECONDS)
        await turns_of_the_loop()
        gate.set()
        await turns_of_the_loop()
        client.gate.set()
        await sending

    assert client.bodies == [b"first", BEAT, b"last", b"end"]


async def test_an_empty_source_ends_at_once() -> None:
    client = Client()

    await start(numbers(), client)

    assert client.bodies == [b"end"]


async def test_a_failure_of_the_source_is_raised_as_it_is() -> None:
    async def failing() -> AsyncGenerator[bytes, None]:
        yield b"1"
        raise ValueError("broken") from KeyError("cause")

    client = Client()

    with pytest.raises(ValueError, match="broken") as failure:
        await start(failing(), client)

    assert client.bodies == [b"1"]
    assert isinstance(failure.value.__cause__, KeyError)


@pytest.mark.parametrize("place", ["chunk", "beat"])
async def test_a_client_that_is_gone_ends_the_source(place: str) -> None:
    ended, client = asyncio.Event(), Client(lost=1)

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            if place == "chunk":
                yield b"second"
            await asyncio.Event().wait()
        finally:
            ended.set()

    sending = start(source(), client)
    await turns_of_the_loop()
    CLOCK.move(SECONDS)

    with pytest.raises(OSError, match="gone"):
        await sending
    assert ended.is_set()


async def test_a_response_that_is_cancelled_ends_the_source() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            yield b"1"
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    sending = start(endless(), Client())
    await begun.wait()
    sending.cancel()

    with pytest.raises(asyncio.CancelledError):
        await sending
    assert ended.is_set()


class CountingLoop(asyncio.SelectorEventLoop):
    """An event loop that counts its callbacks: the steps of tasks, and timers."""

    callbacks = 0

    def call_soon(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]  # passes on whatever it gets
        self.callbacks += 1
        return super().call_soon(*args, **kwargs)

    def call_at(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]  # passes on whatever it gets
        self.callbacks += 1
        return super().call_at(*args, **kwargs)


@pytest.mark.parametrize("chunks", [1, 1_000])
def test_chunks_that_are_ready_start_neither_tasks_nor_timers(chunks: int) -> None:
    async def ready() -> AsyncGenerator[bytes, None]:
        for _ in range(chunks):
            yield b"chunk"

    async def stream() -> None:
        await HeartbeatResponse(ready(), BEAT, SECONDS, "text/event-stream").stream_response(Client().send)

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        runner.run(stream())
        loop = runner.get_loop()
        assert isinstance(loop, CountingLoop)
        assert loop.callbacks < 20


async def test_a_response_to_a_client_that_reads_nothing_ends_at_its_limit_and_makes_no_more_chunks() -> None:
    client, made, closed = Client(), list[int](), asyncio.Event()
    client.gate.clear()

    async def chunks() -> AsyncGenerator[bytes, None]:
        try:
            for number in range(1_000):
                made.append(number)
                yield b"x" * 1_000
        finally:
            closed.set()

    ends_at = asyncio.get_running_loop().time() + 0.05
    response = stream_frames(chunks(), SECONDS, BEAT, ends_at=ends_at)
    async with asyncio.timeout(30):
        await response.stream_response(client.send)

    assert made == [0]
    assert closed.is_set()
    assert client.bodies == []  # no end, so that the client sees that the response is cut
