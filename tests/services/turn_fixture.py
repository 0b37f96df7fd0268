"""A tenant's services with a real store and scripted models."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ClassVar, cast

from tests.clock import CLOCK
from tests.script_model import deadline
from tests.services.polling import poll_until

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose, delete_agent_objects
from stint.caller import NO_ATTEMPT
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.events import Event, TurnAwaitingInput, TurnComplete, TurnFailed
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnResumeRequest
from stint.domain.messages import UserMessage
from stint.domain.tasks import (
    MARK_DELAY,
    AutomationTask,
    DeletionTask,
    IngestionTask,
    ResumeTask,
    SentTask,
    WaitingTask,
    WebhookTask,
)
from stint.domain.tools import ToolDef, ToolParameter, ToolResponse
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.models.scripted.model import Scripted
from stint.services.deletions import Deletions
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.turn_run import TurnRun
from stint.settings import Settings
from stint.store.store import Store
from stint.tools.port import ToolProvider

TERMINAL = (TurnComplete, TurnAwaitingInput, TurnFailed)


class IdleQueue:
    """A queue whose tasks are not processed. `delayed` and `early_ingestions` are sent before a write."""

    def __init__(self) -> None:
        self.delayed: list[DeletionTask] = []
        self.tasks: list[DeletionTask] = []
        self.ingestions: list[IngestionTask] = []
        self.early_ingestions: list[IngestionTask] = []
        self.waiting: list[WaitingTask | ResumeTask] = []
        self.webhooks: list[WebhookTask] = []
        self.automations: list[AutomationTask] = []
        self.on_ingestion: Callable[[], None] | None = None

    async def send(self, task: SentTask) -> None:
        if isinstance(task, WaitingTask | ResumeTask):
            self.waiting.append(task)
        elif isinstance(task, WebhookTask):
            self.webhooks.append(task)
        elif isinstance(task, AutomationTask):
            self.automations.append(task)
        elif isinstance(task, IngestionTask) and task.delay_seconds:
            self.early_ingestions.append(task)
        elif isinstance(task, IngestionTask):
            self.ingestions.append(task)
            if self.on_ingestion is not None:
                self.on_ingestion()
        else:
            (self.delayed if task.delay_seconds == MARK_DELAY else self.tasks).append(task)


def tool(name: str) -> ToolDef:
    parameters = [ToolParameter(name="city", parameter_type="str", description="", required=False)]
    return ToolDef(name=name, description="", parameters=parameters)


class TurnFixture:
    """A process that serves one session of one agent. Two fixtures with the same ids are two processes.

    The servers of the providers `with_cache_keys` take cache keys.
    """

    with_cache_keys: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        store: Store,
        tenant: str,
        model: ChatModel,
        lease: float = 30,
        history: int = 4_000_000,
        providers: Mapping[str, ToolProvider] | None = None,
        **settings: Any,
    ) -> None:
        self.store, self.tenant, self.model = store, tenant, model
        self.inbox = IdleQueue()
        self.deletions = Deletions(delete_agent_objects(store, self.inbox.send), self.inbox.send)
        settings = {"default_model": "scripted/demo", "scripted_models": True} | settings
        chosen = Settings(lease_seconds=lease, history_bytes=history, **settings)
        router = Router(
            {"test": lambda: model, "scripted": lambda: Scripted(0)}, "test/m", with_cache_keys=self.with_cache_keys
        )
        self.adapters = adapters = Adapters(chosen, router=router, tool_providers=providers)
        services = compose(tenant, adapters, store, self.deletions)
        self.services, self.agents, self.sessions, self.turns = (
            services,
            services.agents,
            services.sessions,
            services.turns,
        )
        self.agent_id = self.session_id = ""
        self.attempt = NO_ATTEMPT

    async def open(self, *tools: str, **config: Any) -> "TurnFixture":
        """Create the agent, with client tools of these names, and the session."""
        config = {"model": "test/m", "instructions": "", "client_tools": [tool(name) for name in tools]} | config
        self.agent_id = await self.agents.create(AgentConfig(**config))
        self.session_id = await self.sessions.create(self.agent_id, "talk")
        return self

    def other_process(self, model: ChatModel, lease: float = 30, history: int = 4_000_000) -> "TurnFixture":
        """Return another process that serves the same session."""
        other = TurnFixture(self.store, self.tenant, model, lease, history)
        other.agent_id, other.session_id = self.agent_id, self.session_id
        return other

    @property
    def ids(self) -> tuple[str, str, str]:
        return self.tenant, self.agent_id, self.session_id

    async def start(self, text: str = "Hello", seconds: float = 30, **request: Any) -> TurnRun:
        body = TurnCreateRequest(**({"messages": [UserMessage(content=text)]} | request))
        context = RequestContext(deadline(seconds), self.attempt)
        return await self.turns.start(self.agent_id, self.session_id, body, context)

    async def resume(self, turn_id: str, *answers: tuple[str, str], seconds: float = 30) -> TurnRun:
        responses = [ToolResponse(call_id=call_id, tool_name="t", content=text) for call_id, text in answers]
        body = TurnResumeRequest(tool_responses=responses)
        return await self.turns.resume(self.agent_id, self.session_id, turn_id, body, RequestContext(deadline(seconds)))

    async def play(self, turn: TurnRun) -> list[Event]:
        return [event async for event in self.turns.run(turn)]

    async def turn(self, text: str = "Hello", **request: Any) -> Turn:
        """Run a whole turn like its route, and return it."""
        run = await self.start(text, **request)
        turn = ended(await self.play(run))
        await self.turns.write_segments(run)
        return turn

    async def resumed(self, turn_id: str, *answers: tuple[str, str]) -> Turn:
        return ended(await self.play(await self.resume(turn_id, *answers)))

    async def get(self, turn_id: str) -> Turn:
        return await self.turns.get(self.agent_id, self.session_id, turn_id)

    async def stored(self) -> list[Turn]:
        history = await self.store.turns.history(*self.ids)
        return [turn.to_turn() for turn in history.turns]

    async def lease_turn(self) -> str | None:
        return (await self.store.sessions.get(*self.ids)).lease_turn

    async def expire_lease(self) -> None:
        """Move the clock to the end of the session's lease."""
        record = await self.store.sessions.get(*self.ids)
        CLOCK.move_to(record.lease_until)


def ended(events: list[Event]) -> Turn:
    """Return the turn of the terminal event, which must be the last event and the only terminal one."""
    assert [isinstance(event, TERMINAL) for event in events] == [False] * (len(events) - 1) + [True]
    return cast("TurnComplete", events[-1]).turn


async def keep_running(waiter: asyncio.Task[Any], lease_end: Callable[[], Awaitable[int | None]], lease: float) -> None:
    """Advance the clock from one renewal of a lease to the next, until the waiter has noticed a renewal."""

    async def is_renewed(before: int) -> bool:
        return waiter.done() or (await lease_end() or 0) > before

    while not waiter.done():
        before = await lease_end() or 0
        CLOCK.move(lease / 3)
        await poll_until(partial(is_renewed, before))
        await asyncio.sleep(0.02)


async def die(turn: TurnRun) -> None:
    """Simulate the death of a turn's process: the turn stops, and its lease expires at once."""
    await turn.run.close_inference()
    await expire_lease_of(turn)


async def expire_lease_of(turn: TurnRun) -> None:
    """Make a turn's lease expire at once, without renewals, while its holder still assumes to have it."""
    keeper = turn.log.keeper
    await keeper.wait_until_stopped()
    await keeper.lease.renew(0)
    CLOCK.move(0.002)
