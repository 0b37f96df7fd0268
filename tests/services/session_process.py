"""Processes that post events to sessions of OpenAI's Agents API, hold their streams, and run the worker's tasks."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.script_model import deadline
from tests.services.worker_fixture import FakeQueue, WorkerFixture
from tests.store.conftest import Cloud

from stint.bootstrap.adapters import Adapters
from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.domain.content import text_of
from stint.domain.errors import StintError
from stint.domain.ids import new_id
from stint.domain.llama_stack.turns import Turn
from stint.models.port import ChatModel
from stint.openai_agents import session_stream
from stint.openai_agents.composition import compose_openai_agents, make_automations, make_vaults
from stint.openai_agents.schemas.sessions import AgentSessionObject, SessionCreateParams, SessionEventsParams
from stint.openai_agents.session_stream import SessionStream, StreamTimes, open_session_stream
from stint.openai_agents.stream_positions import StreamPosition, read_position
from stint.openai_agents.streamed_turns import PlacedEvent
from stint.services.background.waiting_runs import WaitingRuns
from stint.services.deletions import Deletions
from stint.services.runs.run_handle import RequestContext
from stint.settings import Settings

SHOP = {
    "type": "mcp",
    "server_label": "shop",
    "transport": {"type": "http", "server_url": "http://127.0.0.1:9/mcp"},
}
"""The tools `buy`, `sell` and `look` of `FakeMcp`."""


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": "", "parameters": {"type": "object", "properties": {}}}


def message(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "agent.session.input.message", "input": [{"role": "user", "content": content}]}


def result(turn_id: str, call_id: str, output: str = "done") -> dict[str, Any]:
    kind = "agent.session.input.tool_result"
    return {"type": kind, "turn_id": turn_id, "call_id": call_id, "success": True, "output": output}


CANCEL = {"type": "agent.session.input.cancel"}


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let streams poll without pauses worth mentioning."""
    monkeypatch.setattr(session_stream, "SHORT_PAUSE", 0.005)
    monkeypatch.setattr(session_stream, "LONG_PAUSE", 0.005)


class SessionProcess:
    """A process that serves one session. Two with the same tenant and queue are two processes of one system."""

    def __init__(
        self, cloud: Cloud, tenant: str, model: ChatModel, queue: FakeQueue | None = None, lease: float = 30
    ) -> None:
        self.fixture = WorkerFixture(cloud, tenant, model, lease, queue)
        settings = Settings(lease_seconds=lease)
        deletions = Deletions({}, self.fixture.queue.send)
        parts = tenant, Adapters(settings), cloud.store, deletions
        automations = partial(make_automations, *parts)
        self.services = compose_openai_agents(self.fixture.turns, settings, make_vaults(*parts), automations)
        self.runs = WaitingRuns(self.fixture.turns.turn_requests, self.fixture.services.response_requests)
        self.session_id = self.agent_id = ""

    @property
    def ids(self) -> tuple[str, str, str]:
        return self.fixture.tenant, self.agent_id, self.session_id

    @property
    def queue(self) -> FakeQueue:
        return self.fixture.queue

    async def open(self, *tools: dict[str, Any], **agent: Any) -> "SessionProcess":
        """Create a session without a message."""
        body = {"environment": {"type": "none"}, "agent": {"model": "test/m", "tools": [*tools]} | agent, "input": "-"}
        params = SessionCreateParams.model_validate(body)
        created = await self.services.agent_sessions.create_session(params, new_id())
        self.agent_id, self.session_id = created.split(":")
        return self

    def other_process(self, model: ChatModel) -> "SessionProcess":
        """Return another process that serves the same session."""
        other = SessionProcess(self.fixture.cloud, self.fixture.tenant, model, self.queue, self.fixture.lease)
        other.agent_id, other.session_id = self.agent_id, self.session_id
        return other

    async def post(self, *events: dict[str, Any], attempt: RequestAttempt = NO_ATTEMPT) -> None:
        params = SessionEventsParams.model_validate({"events": [*events]})
        context = RequestContext(deadline(30), attempt)
        await self.services.agent_sessions.post(self.session_id, params.events, context)

    async def work(self, *, last: bool = False) -> None:
        """Handle each of the worker's tasks once, also those that are delayed."""
        tasks, self.queue.waiting = self.queue.waiting, []
        for task in tasks:
            await self.runs.handle(task, deadline(30), last=last)

    async def open_stream(self, last_id: str = "", seconds: float = 30) -> SessionStream:
        """Open a stream, which must be read by `read`."""
        reader, now = self.services.reader, asyncio.get_running_loop().time()
        view = await reader.open(self.session_id)
        times = StreamTimes(now + 60, now + seconds, now + seconds)

        async def is_left() -> bool:
            return False

        position = read_position(last_id, self.session_id) if last_id else None
        return await open_session_stream(reader, view, times, position, is_left)

    async def show(self) -> AgentSessionObject:
        reader = self.services.reader
        return await reader.show(await reader.open(self.session_id))

    async def stored(self) -> list[Turn]:
        """Return the turns of the session, as a reader shows them."""
        page = await self.services.sessions.list_turns(
            self.agent_id, self.session_id, after=None, limit=100, newest_first=False
        )
        return page.data

    async def inputs(self) -> list[str]:
        """Return the texts of the messages that turns have."""
        turns = await self.stored()
        return [text_of(each.content) for turn in turns for each in turn.input_messages]


async def read(
    stream: SessionStream, until: Callable[[list[PlacedEvent]], bool] | str, seconds: float = 30
) -> list[PlacedEvent]:
    """Read a stream until a condition holds for its events, or until one of a type; close it then."""
    found: list[PlacedEvent] = []
    events = stream.events()
    try:
        async with asyncio.timeout(seconds):
            async for event in events:
                found.append(event)
                if event.event.type == until if isinstance(until, str) else until(found):
                    break
    finally:
        await events.aclose()
    return found


def types(events: list[PlacedEvent]) -> list[str]:
    return [each.event.type.removeprefix("agent.session.") for each in events]


def ids(events: list[PlacedEvent]) -> list[str]:
    return [each.event.event_id for each in events]


def positions(events: list[PlacedEvent]) -> list[StreamPosition]:
    return [each.position for each in events if each.position is not None]


async def refused(process: SessionProcess, *events: dict[str, Any]) -> StintError | None:
    """Post events, and return the error, if they are refused."""
    try:
        await process.post(*events)
    except StintError as error:
        return error
    return None
