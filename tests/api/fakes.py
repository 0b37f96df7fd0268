"""Fake models, and injected failures of DynamoDB."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.clock import CLOCK

from stint.domain.errors import DeadlineExceeded, ModelError, ModelOverloaded, NotFound
from stint.domain.inference import (
    Accepted,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    TextChunk,
    ToolCallChunk,
    ToolResult,
)
from stint.domain.retrieval import FoundChunk, SearchRequest
from stint.domain.schedules import SCHEDULED_TIME, Schedule
from stint.domain.tasks import AutomationTask
from stint.models.scripted.model import DEMO, Scripted
from stint.tools.code_interpreter.runs import RunResult

HEARTBEAT = 30.0


class Recorder:
    """The scripted model, for any model name, that records its requests."""

    def __init__(self) -> None:
        self.scripted = Scripted(word_delay=0)
        self.requests: list[InferenceRequest] = []

    def check(self, request: InferenceRequest) -> None:
        self.scripted.check(replace(request, model=DEMO))

    async def count_tokens(self, request: InferenceRequest) -> int:
        return await self.scripted.count_tokens(request)

    def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        self.requests.append(request)
        return self.scripted.stream(replace(request, model=DEMO))


class Silence(threading.Event):
    """The silence of a model, during which the clock advances until a test has received enough heartbeats."""

    async def pass_time(self) -> None:
        while not self.is_set():
            CLOCK.move(HEARTBEAT)
            await asyncio.to_thread(self.wait, 0.5)


@dataclass
class FakeSchedules:
    """Schedules that fire when a test says so. `active` has them by their names."""

    active: dict[str, Schedule] = field(default_factory=dict)

    async def create(self, schedule: Schedule) -> None:
        self.active.setdefault(schedule.name, schedule)

    async def delete(self, name: str) -> None:
        self.active.pop(name, None)

    def fire(self, at: str) -> list[AutomationTask]:
        """Return the tasks of all schedules for a time."""
        payloads = [each.payload.replace(SCHEDULED_TIME, at) for each in self.active.values()]
        return [AutomationTask.model_validate_json(payload) for payload in payloads]


@dataclass
class FakeKnowledge:
    """Vector stores whose `chunks` are found by any word of a query. A query for `outage` fails."""

    chunks: Sequence[FoundChunk] = ()
    requests: list[SearchRequest] = field(default_factory=list)

    async def open(self, request: SearchRequest) -> "FakeOpenStores":
        for store_id in request.store_ids:
            if not any(chunk.store_id == store_id for chunk in self.chunks):
                raise NotFound("Vector store", store_id)
        return FakeOpenStores(self, request)

    async def search(self, request: SearchRequest) -> list[FoundChunk]:
        await self.open(request)
        self.requests.append(request)
        words = {word for query in request.queries for word in query.lower().split()}
        if "outage" in words:
            raise ModelError("The embedding model is not available. Try again later.")
        found = [
            chunk
            for chunk in self.chunks
            if chunk.store_id in request.store_ids and words & set(chunk.text.lower().split())
        ]
        matching = [chunk for chunk in found if request.filter is None or request.filter.matches(chunk.attributes)]
        return matching[: request.max_results]


@dataclass
class FakeOpenStores:
    """Stores of a FakeKnowledge that were read."""

    knowledge: FakeKnowledge
    request: SearchRequest

    async def search(self, queries: Sequence[str]) -> list[FoundChunk]:
        return await self.knowledge.search(replace(self.request, queries=queries))


@dataclass
class Faulty:
    """A model whose name selects a failure or a delay after it has accepted the request."""

    silence: Silence = field(default_factory=Silence)

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return len(request.messages)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        yield Accepted()
        match request.model:
            case "crash":
                raise ZeroDivisionError("a fault of the adapter")
            case "late":
                raise DeadlineExceeded("The time was over.")
            case "slow-failure":
                await self.silence.pass_time()
                raise ModelError("the model gave up")
            case "slow-overload":
                await self.silence.pass_time()
                raise ModelOverloaded("the model gave up")
            case "broken-off":
                yield TextChunk("I am")
                raise ModelOverloaded("the model gave up")
            case "asking" if not any(isinstance(message, ToolResult) for message in request.messages):
                yield ToolCallChunk(0, "c0", "add", "{}")
                yield Finished(FinishReason.tool_calls)
                return
            case "gated" | "asking":
                await asyncio.to_thread(self.silence.wait)
                yield TextChunk("awake")
            case "slow":
                await self.silence.pass_time()
                yield TextChunk("awake")
            case "line-breaks":
                yield TextChunk("one\u2028two\u0085three\u2029four\nfive\rsix")
            case "quick-steps":
                for _ in range(12):
                    CLOCK.move(HEARTBEAT / 8)
                    await asyncio.sleep(0)
                    yield TextChunk("tick ")
        yield Finished(FinishReason.stop)


class NoRunner:
    """Runs no code."""

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        return RunResult(refused="No code runs in this test.")
