"""The work of a streamed event, counted in calls of functions, which no other process disturbs."""

from starlette.types import Message
from tests.script_model import deadline
from tests.services.call_count import CallCount
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture

from stint.http.routes.turns import TURN_FORMAT
from stint.http.streaming import HeartbeatResponse, answer_run
from stint.models.scripted.model import Scripted
from stint.observability import Observation
from stint.services.turns.turn_handles import StartedTurn

MOST_CALLS = 95
"""Of Python's functions, for each event. Each resumption of a coroutine is one, and Python 3.11 makes 84."""


async def drop(message: Message) -> None:
    """Take a part of a response."""


async def calls_of(fixture: TurnFixture, words: int) -> int:
    """Return how many functions are called while an answer of so many words is streamed."""
    turn = await fixture.start(f"long: {words} words")
    handle = StartedTurn(fixture.turns, turn, Observation("request", "turns"))
    response = await answer_run(handle, TURN_FORMAT, stream=True, heartbeat_seconds=30, deadline=deadline(30))
    assert isinstance(response, HeartbeatResponse)
    with CallCount() as count:
        await response.stream_response(drop)
    return count.calls


async def test_an_event_takes_few_calls(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(Scripted(word_delay=0, names=("m",))).open()
    await calls_of(fixture, 1)

    few, many = await calls_of(fixture, 100), await calls_of(fixture, 300)

    assert (many - few) / 200 <= MOST_CALLS
