"""A tenant's background responses with a real store, a fake queue and event bus, a worker, and scripted models."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.clock import CLOCK
from tests.openresponses.grammar import Stream
from tests.openresponses.schema import Json
from tests.script_model import deadline
from tests.services.polling import poll_until
from tests.store.conftest import Cloud

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose, delete_agent_objects
from stint.bootstrap.openai import (
    compose_event_requests,
    compose_responses,
    compose_worker,
    delete_response_objects,
    not_composed,
)
from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.domain.errors import DeadlineExceeded, StoreUnavailable
from stint.domain.inference import ToolSignature
from stint.domain.notifications.completion_events import CompletionEvent
from stint.domain.openai.conversations import CreateConversation
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response
from stint.domain.openai.stored_responses import StoredResponse
from stint.domain.tasks import (
    MARK_DELAY,
    AnyTask,
    AutomationTask,
    DeletionTask,
    IngestionTask,
    ResponseTask,
    ResumeTask,
    WaitingTask,
    WebhookTask,
)
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.models.scripted.model import Scripted
from stint.services.deletions import Deletions
from stint.services.responses.link_cache import LinkCache
from stint.services.runs.run_handle import RequestContext
from stint.settings import Settings
from stint.store.keys import KeyLayout
from stint.tools.knowledge.file_search import KnowledgeSearch
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

MCP_TOOL = {"type": "mcp", "server_label": "shop", "server_url": "http://127.0.0.1:9/mcp", "require_approval": "never"}
FUNCTION = {"type": "function", "name": "ask_user", "parameters": {"type": "object", "properties": {}}, "strict": False}


@dataclass
class FakeQueue:
    """A queue and an event bus that record what they receive. While `refuses` is true, they raise an error.

    `delayed` has the tasks of responses that are sent before these are stored, `early_ingestions` those of documents,
    and `early_deletions` those that are sent before objects are marked.
    """

    tasks: list[ResponseTask] = field(default_factory=list)
    delayed: list[ResponseTask] = field(default_factory=list)
    deletions: list[DeletionTask] = field(default_factory=list)
    early_deletions: list[DeletionTask] = field(default_factory=list)
    ingestions: list[IngestionTask] = field(default_factory=list)
    early_ingestions: list[IngestionTask] = field(default_factory=list)
    waiting: list[WaitingTask | ResumeTask] = field(default_factory=list)
    webhooks: list[WebhookTask] = field(default_factory=list)
    automations: list[AutomationTask] = field(default_factory=list)
    ends: list[CompletionEvent] = field(default_factory=list)
    kinds: list[tuple[str, str]] = field(default_factory=list)
    refuses: bool = False

    async def send(self, task: AnyTask) -> None:
        self.refuse()
        if isinstance(task, DeletionTask) and task.delay_seconds == MARK_DELAY:
            self.early_deletions.append(task)
        elif isinstance(task, ResponseTask) and task.delay_seconds:
            self.delayed.append(task)
        elif isinstance(task, ResponseTask):
            self.tasks.append(task)
        elif isinstance(task, IngestionTask):
            (self.early_ingestions if task.delay_seconds else self.ingestions).append(task)
        elif isinstance(task, WaitingTask | ResumeTask):
            self.waiting.append(task)
        elif isinstance(task, WebhookTask):
            self.webhooks.append(task)
        elif isinstance(task, AutomationTask):
            self.automations.append(task)
        else:
            self.deletions.append(task)

    async def put(self, source: str, detail_type: str, detail: Any) -> None:
        self.refuse()
        self.ends.append(detail)
        self.kinds.append((source, detail_type))

    def clear(self) -> None:
        """Forget everything that was sent."""
        responses, deletions = (self.tasks, self.delayed), (self.deletions, self.early_deletions)
        for sent in (
            *responses,
            *deletions,
            self.ingestions,
            self.early_ingestions,
            self.waiting,
            self.webhooks,
            self.automations,
            self.ends,
            self.kinds,
        ):
            sent.clear()

    def refuse(self) -> None:
        if self.refuses:
            raise StoreUnavailable("The queue is closed: try again.")


@dataclass
class FakeMcp:
    """An MCP provider with the tools `buy` and `sell`, and `look`, which is repeatable.

    A call of a tool in `gates` waits for its event. All return the `output`, if it is set.
    """

    calls: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    output: str = ""

    async def check(self, toolgroup: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        schema = {"type": "object", "properties": {}}
        tools = [ToolSignature(name, "", schema) for name in ("buy", "sell")]
        return [*tools, ToolSignature("look", "", schema, repeatable=True)]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.calls.append(invocation.tool_name)
        self.keys.append(invocation.key)
        if invocation.tool_name in self.gates:
            await self.gates[invocation.tool_name].wait()
        return ToolOutcome(self.output or f"{invocation.tool_name} is done")


class WorkerFixture:
    """A process of the system. Two fixtures with the same tenant and queue are two processes. `lease` is in seconds.

    `knowledge` searches the vector stores of responses. The servers of the providers `with_cache_keys` take cache keys.
    """

    with_cache_keys: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        cloud: Cloud,
        tenant: str,
        model: ChatModel,
        lease: float = 30,
        queue: FakeQueue | None = None,
        knowledge: KnowledgeSearch | None = None,
        history: int = 4_000_000,
        key_layout: KeyLayout = "spread",
        prices: str = "",
    ) -> None:
        self.cloud, self.tenant, self.queue, self.fake_mcp, self.lease = (
            cloud,
            tenant,
            queue or FakeQueue(),
            FakeMcp(),
            lease,
        )
        self.store = cloud.store if key_layout == "spread" else cloud.other_process(key_layout)
        self.knowledge, self.history, self.key_layout = knowledge, history, key_layout
        make_knowledge = not_composed if knowledge is None else lambda: knowledge
        self.links = LinkCache()
        settings = Settings(
            lease_seconds=lease,
            default_model="scripted/demo",
            scripted_models=True,
            history_bytes=history,
            prices=prices,
        )
        router = Router(
            {"test": lambda: model, "scripted": lambda: Scripted(0)}, "test/m", with_cache_keys=self.with_cache_keys
        )
        kinds = delete_agent_objects(self.store, self.queue.send) | delete_response_objects(self.store)
        self.deletions = Deletions(kinds, self.queue.send)
        providers = {"model-context-protocol": self.fake_mcp}
        adapters = Adapters(settings, router=router, tool_providers=providers)
        base = compose(tenant, adapters, self.store, self.deletions)
        self.turns = base
        self.services = compose_responses(tenant, adapters, self.store, base, self.queue, self.links, make_knowledge)
        self.worker = compose_worker(tenant, settings, self.store, self.services, self.queue)
        self.event_requests = compose_event_requests(tenant, settings, self.store, base, self.services, self.worker)

    def other_process(self, model: ChatModel) -> "WorkerFixture":
        """Return another process of the same system."""
        own = (self.lease, self.queue, self.knowledge, self.history)
        return WorkerFixture(self.cloud, self.tenant, model, *own, key_layout=self.key_layout)

    async def create(self, text: str = "Hello", attempt: RequestAttempt = NO_ATTEMPT, **fields: Any) -> str:
        """Create a background response, and return its id."""
        request = CreateResponse.model_validate({"model": "test/m", "input": text, "background": True} | fields)
        stored = await self.services.background.create(request, RequestContext(deadline(30), attempt))
        return stored.header.response_id

    async def run(self, response_id: str, seconds: float = 30, *, last: bool = False) -> StoredResponse | None:
        """Run a response like for a message of the queue."""
        return await self.worker.handle(response_id, deadline(seconds), last=last)

    async def finished(self, text: str = "Hello", **fields: Any) -> Response:
        """Create a response, run it, and return it as a client reads it."""
        response_id = await self.create(text, **fields)
        await self.run(response_id)
        return await self.get(response_id)

    async def get(self, response_id: str) -> Response:
        return await self.services.stored_responses.get(response_id)

    async def status(self, response_id: str) -> str:
        return (await self.get(response_id)).status.value

    async def conversation(self) -> str:
        return (await self.services.conversations.create(CreateConversation())).id

    async def follow(self, response_id: str, after: int = -1, seconds: float = 10) -> list[Json]:
        """Read a response's events until its end or the deadline, and check them against the grammar of streams."""
        stream, events = Stream(after), []
        try:
            async for text in await self.services.tail.read_events(response_id, after, deadline(seconds)):
                event = json.loads(text)
                stream.take(event)
                events.append(event)
        except DeadlineExceeded:
            return events
        if events or after < 0:
            stream.finish()
        return events

    async def told(self, response_id: str) -> list[str]:
        """Return the stored events of a response's stream."""
        batches = self.store.background.events(self.tenant, response_id)
        return [event async for batch in batches for event in batch]

    async def wait_for_stored_events(self, response_id: str, text: str, times: int = 1) -> None:
        """Wait until so many events of a stored stream have a text in them."""

        async def is_told() -> bool:
            return sum(text in event for event in await self.told(response_id)) >= times

        await poll_until(is_told)

    async def until_stored(self, response_id: str, records: int) -> None:
        """Wait until a response has so many records."""

        async def is_stored() -> bool:
            return len((await self.stored(response_id)).records) >= records

        await poll_until(is_stored)

    async def wait_until_leased(self, response_id: str) -> None:
        """Wait until a worker has a response."""

        async def is_held() -> bool:
            return (await self.store.response_leases.get_state(self.tenant, response_id)).held

        await poll_until(is_held)

    async def lease_end(self, response_id: str) -> int | None:
        return (await self.store.response_leases.get_state(self.tenant, response_id)).lease_until

    async def stored_events(self, response_id: str) -> list[Json]:
        texts = await self.services.background.recovery.read_stream(response_id)
        return [json.loads(text) for text in texts]

    @asynccontextmanager
    async def dying(self, response_id: str) -> AsyncIterator[None]:
        """Run a response in a worker that is killed at the end. It does not write any more, and its lease expires."""
        working = asyncio.create_task(self.run(response_id))
        yield
        self.stop_database()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        self.restart_database()
        CLOCK.move(self.lease)

    def stop_database(self) -> None:
        self.cloud.proxy.down = True

    def restart_database(self) -> None:
        self.cloud.proxy.restart()

    async def expire_lease(self, response_id: str) -> None:
        CLOCK.move_to(await self.lease_end(response_id))

    async def stored(self, response_id: str) -> StoredResponse:
        return await self.store.responses.get(self.tenant, response_id)


def types_of(events: list[Json]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def text_of(events: list[Json]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
