"""Documents to store."""

from datetime import timedelta
from typing import Self

from stint.domain.ids import new_id
from stint.domain.llama_stack.agents import Agent, AgentConfig
from stint.domain.llama_stack.sessions import Session
from stint.domain.llama_stack.stored_turns import PendingCalls, StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import UserMessage
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, InferenceStep
from stint.domain.tools import ToolCall
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store

PROSE = (
    "The lamp above the harbour had been out since Tuesday, and nobody could say whose task it was to climb up and "
    "change it. Marta wrote a note, pinned it beside the tide table, and went home along the wall as she always did. "
)


def agent(instructions: str = "Be brief.", name: str | None = None) -> Agent:
    config = AgentConfig(model="scripted/demo", instructions=instructions, name=name)
    return Agent(agent_id=new_id(), agent_config=config, created_at=now())


def session(name: str = "talk") -> Session:
    return Session(session_id=new_id(), session_name=name, started_at=now())


def header(turn_id: str, session_id: str, text: str = "Hello") -> TurnHeader:
    return TurnHeader(
        turn_id=turn_id,
        session_id=session_id,
        input_messages=[UserMessage(content=text)],
        started_at=now(),
        overrides=TurnOverrides(),
    )


def step(turn_id: str, text: str = "Hi") -> InferenceStep:
    return InferenceStep(
        turn_id=turn_id,
        step_id=new_id(),
        started_at=now() - timedelta(seconds=1),
        completed_at=now(),
        model_response=CompletionMessage(content=text),
    )


def ending(status: RunStatus = RunStatus.completed) -> RunOutcome:
    return RunOutcome(status=status, completed_at=now())


def record(turn_id: str, text: str = "Hi", status: RunStatus | None = None) -> TurnRecord:
    return TurnRecord(step=step(turn_id, text), ending=ending(status) if status else None)


def pending(turn_id: str, arguments: str = "{}") -> PendingCalls:
    calls = [ToolCall(call_id="c1", tool_name="look", arguments=arguments)]
    return PendingCalls(turn_id=turn_id, step_id=new_id(), started_at=now(), tool_calls=calls)


class SessionFixture:
    """A session of a new agent, and writes of turns to it."""

    def __init__(self, store: Store, tenant: str, agent_id: str, session_id: str) -> None:
        self.store, self.tenant, self.agent_id, self.session_id = store, tenant, agent_id, session_id
        self.ids = (tenant, self.agent_id, self.session_id)

    @classmethod
    async def create(cls, store: Store, tenant: str, expires_at: int | None = None, name: str = "talk") -> Self:
        created, begun = agent(), session(name)
        await store.agents.create(tenant, created)
        await store.sessions.create(tenant, created.agent_id, begun, expires_at)
        return cls(store, tenant, created.agent_id, begun.session_id)

    async def acquire(self, turn_id: str | None = None, *, resume: bool = False, seconds: float = 30) -> SessionLease:
        return await self.store.session_leases.acquire(*self.ids, turn_id or new_id(), resume=resume, seconds=seconds)

    async def begin(self, text: str = "Hello", *, seconds: float = 30) -> SessionLease:
        lease = await self.acquire(seconds=seconds)
        await self.store.turns.put_header(lease, header(lease.turn_id, self.session_id, text))
        return lease

    async def turn(self, text: str = "Hello", answer: str = "Hi", status: RunStatus = RunStatus.completed) -> str:
        lease = await self.begin(text)
        await self.store.turns.append(lease, 0, record(lease.turn_id, answer, status))
        lease.last = LastTurn(lease.turn_id, 1)
        await lease.release()
        return lease.turn_id

    async def turns(self) -> list[StoredTurn]:
        return (await self.store.turns.history(*self.ids)).turns

    async def statuses(self) -> list[RunStatus]:
        return [turn.status for turn in await self.turns()]
