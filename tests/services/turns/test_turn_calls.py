"""The work and memory of a turn, from the request to the last byte and the log line: calls of functions, and bytes."""

import asyncio
import json

from starlette.types import Message, Receive, Scope
from tests.services.call_count import AllocatedBytes, CallCount
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture

from stint.http.app import create_app
from stint.http.routes import turns
from stint.models.scripted.model import Scripted
from stint.settings import Settings

MOST_CALLS = 3_170
"""Of Python's functions. Python 3.11 makes 3,100 to 3,160: some depend on how the answers of DynamoDB arrive."""
MOST_BYTES = 400_000
"""Allocated at a time. Python 3.11 allocates 375,000 to 380,000: asyncio reads into 262,000 of them."""
MOST_KEPT = 50_000
"""Bytes that a turn leaves: the history of its session in place of the older one, and what caches have. Now 41,000."""
SESSIONS, TURNS = 5, 5


class StreamedTurns:
    """The function `turns` with one session, which gets its requests from this event loop."""

    def __init__(self, fixture: TurnFixture) -> None:
        settings = Settings(auth="none")
        self.app = create_app(
            "turns",
            turns.router,
            make_services=lambda _: fixture.services,
            read_settings=lambda: settings,
            buffered=False,
        )
        path = f"/v1/agents/{fixture.agent_id}/session/{fixture.session_id}/turn"
        headers = [(b"content-type", b"application/json"), (b"user-agent", b"tests")]
        self.scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "method": "POST",
            "path": path,
            "root_path": "",
            "query_string": b"",
            "headers": headers,
        }
        self.body = json.dumps({"messages": [{"role": "user", "content": "say: done"}], "stream": True}).encode()

    def request(self) -> Receive:
        """Return what receives a request, and then nothing more."""
        messages: list[Message] = [{"type": "http.request", "body": self.body, "more_body": False}]

        async def receive() -> Message:
            return messages.pop() if messages else await asyncio.get_running_loop().create_future()

        return receive

    async def run(self) -> None:
        """Run a turn to the end of its stream."""
        written: list[bytes] = []

        async def send(message: Message) -> None:
            written.append(message.get("body", b""))

        await self.app({**self.scope}, self.request(), send)
        assert b'"turn_complete"' in b"".join(written)


async def test_a_streamed_turn_takes_few_calls(make_turn_fixture: MakeTurnFixture) -> None:
    counts: list[int] = []

    for _ in range(SESSIONS):  # a turn of its own each: later turns of a session read a longer history
        session = StreamedTurns(await make_turn_fixture(Scripted(word_delay=0, names=("m",))).open())
        await session.run()
        with CallCount() as count:
            await session.run()
        counts.append(count.calls)

    assert min(counts) <= MOST_CALLS, counts


async def test_a_streamed_turn_allocates_few_bytes(make_turn_fixture: MakeTurnFixture) -> None:
    session = StreamedTurns(await make_turn_fixture(Scripted(word_delay=0, names=("m",))).open())
    await session.run()
    most: list[int] = []
    kept: list[int] = []

    for _ in range(TURNS):
        with AllocatedBytes() as allocated:
            await session.run()
        most.append(allocated.most)
        kept.append(allocated.kept)

    assert min(most) <= MOST_BYTES
    assert min(kept) <= MOST_KEPT
