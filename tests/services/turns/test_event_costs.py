"""The work and memory of a streamed event: calls of functions, and bytes, which no other process disturbs."""

from starlette.types import Message
from tests.script_model import deadline
from tests.services.call_count import AllocatedBytes, CallCount
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture

from stint.http.routes.turns import TURN_FORMAT
from stint.http.streaming import HeartbeatResponse, answer_run
from stint.models.scripted.model import Scripted
from stint.observability import Observation
from stint.services.turns.turn_handles import StartedTurn

MOST_CALLS = 90
"""Of Python's functions, for each event. Each resumption of a coroutine is one, and Python 3.11 makes 84."""


MOST_BYTES = 100
"""That each event adds to what is allocated at a time: its text, which becomes a part of the answer. Now 59."""


async def drop(message: Message) -> None:
    """Take a part of a response."""


async def calls_of(fixture: TurnFixture, words: int) -> int:
    """Return how many functions are called while an answer of so many words is streamed."""
    response = await open_stream(fixture, words)
    with CallCount() as count:
        await response.stream_response(drop)
    return count.calls


async def bytes_of(fixture: TurnFixture, words: int) -> int:
    """Return how many bytes are allocated at a time, at most, while an answer of so many words is streamed."""
    response = await open_stream(fixture, words)
    with AllocatedBytes() as allocated:
        await response.stream_response(drop)
    return allocated.most


async def open_stream(fixture: TurnFixture, words: int) -> HeartbeatResponse:
    """Start a turn, and return its response, of which nothing was sent."""
    turn = await fixture.start(f"long: {words} words")
    handle = StartedTurn(fixture.turns, turn, Observation("request", "turns"))
    response = await answer_run(handle, TURN_FORMAT, stream=True, heartbeat_seconds=30, deadline=deadline(30))
    assert isinstance(response, HeartbeatResponse)
    return response


async def test_an_event_takes_few_calls(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(Scripted(word_delay=0, names=("m",))).open()
    await calls_of(fixture, 1)

    few, many = await calls_of(fixture, 100), await calls_of(fixture, 300)

    assert (many - few) / 200 <= MOST_CALLS


async def test_an_event_adds_few_bytes(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(Scripted(word_delay=0, names=("m",))).open()
    await bytes_of(fixture, 1)

    few, many = await bytes_of(fixture, 100), await bytes_of(fixture, 300)

    assert (many - few) / 200 <= MOST_BYTES
