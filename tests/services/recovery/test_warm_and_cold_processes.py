"""A session that warm processes serve, under random use and faults, against its twin that a cold process serves.

Whatever a process remembers, it sends the model the same messages, stores the same turns and raises the same errors.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.script_model import Part, called, said, script, shape
from tests.services.turn_fixture import TurnFixture, die
from tests.store.conftest import Cloud

from stint.domain.errors import InvalidRequest, StintError
from stint.domain.llama_stack.registrations import ShieldRegisterRequest
from stint.domain.messages import UserMessage
from stint.domain.receipts import Consumption
from stint.domain.tools import ToolResponseMessage
from stint.metering import Meter
from stint.services.turns.turn_run import TurnRun

HISTORY_BYTES = 4_000
"""A few turns, so that old ones are cut off."""

ANSWERS: dict[str, list[list[Part]]] = {
    "text": [said("fine")],
    "client's tool": [called("t")],
    "server's and client's tool": [called("nosuch", "t")],
    "server's tool": [called("nosuch"), said("then")],
    "empty": [said("")],
    "refused": [[InvalidRequest("no")]],
    "result refused": [called("nosuch"), [InvalidRequest("no")]],
}
FAULTS = {
    "none": [],
    "header": [("PutItem", "input_messages")],
    "step": [("PutItem", "step_type")],
    "end": [("PutItem", "ended_as")],
    "seal": [("PutItem", "ended_as"), ("PutItem", "sealed_at")],
    "release": [("UpdateItem", "last_records")],
}
"""The operations that fail, and what their requests contain."""

RANKS: dict[bytes, int] = {}
"""The ranks of turns where a history is cut. Both sessions have the same, although the ids of their turns differ."""

PLACES = st.integers(0, 2)
SOME_FAULT = st.sampled_from(["none"] * 4 + sorted(FAULTS))
AN_ANSWER = st.sampled_from(sorted(ANSWERS))
ENDS = ("failed", "turn_complete", "turn_awaiting")


@dataclass
class Twin:
    """A session, and the processes that serve it."""

    processes: list[TurnFixture]
    turns: list[str] = field(default_factory=list)

    def answering(self, place: int, answer: str) -> TurnFixture:
        """Return a process, whose model gives this answer next."""
        process = self.processes[place % len(self.processes)]
        model: Any = process.model
        model.answers = [[]] * len(model.requests) + ANSWERS[answer] + [said("more")] * 2
        return process

    async def run(self, process: TurnFixture, start: Coroutine[Any, Any, TurnRun], *, until: str = "") -> Any:
        """Run a turn up to its end, or to an event after which it dies. Return what the model and the caller got."""
        model: Any = process.model
        seen = len(model.requests)
        try:
            turn = await start
            if turn.turn_id not in self.turns:
                RANKS[turn.turn_id.encode()] = crc32(bytes([len(self.turns)]))
                self.turns.append(turn.turn_id)
            told = await play(process, turn, until)
        except StintError as error:
            told = [f"{type(error).__name__} {error.code}"]
        return [request.messages for request in model.requests[seen:]], told

    async def stored(self) -> list[tuple[str, list[str]]]:
        turns = await self.processes[0].stored()
        return [(turn.status.value, [step.step_type for step in turn.steps]) for turn in turns]


async def play(process: TurnFixture, turn: TurnRun, until: str) -> list[str]:
    """Read the events of a turn. It dies after the event `until`."""
    told: list[str] = []
    async with aclosing(process.turns.run(turn)) as events:
        async for event in events:
            told += shape([event])
            if told[-1] == until:
                break
    if not told[-1].startswith(ENDS):
        await die(turn)
    return told


class Sessions(RuleBasedStateMachine):
    """Both sessions get the same requests. The cold process remembers nothing."""

    cloud: Cloud
    tenant: str

    def __init__(self) -> None:
        super().__init__()
        self.wait_for = asyncio.Runner().run
        self.warm, self.cold = self.wait_for(self.make_twin(3, 1_000_000)), self.wait_for(self.make_twin(1, 0))

    async def make_twin(self, count: int, cache: int) -> Twin:
        store = self.cloud.store
        processes = [
            TurnFixture(store, self.tenant, script(), history=HISTORY_BYTES, transcript_cache_bytes=cache)
            for _ in range(count)
        ]
        first = await processes[0].open("t")
        for other in processes:
            other.agent_id, other.session_id = first.agent_id, first.session_id
        return Twin(processes)

    def both(self, act: Callable[[Twin], Coroutine[Any, Any, Any]]) -> None:
        """Do the same in both sessions, and compare what happened."""
        assert self.wait_for(act(self.warm)) == self.wait_for(act(self.cold))
        assert self.wait_for(self.warm.stored()) == self.wait_for(self.cold.stored())

    def failing(self, fault: str, *, lost: bool) -> AbstractContextManager[Any]:
        stack = ExitStack()
        for operation, marker in FAULTS[fault]:
            stack.enter_context(self.cloud.proxy.failing(operation, marker, lost=lost))
        return stack

    @rule(
        place=PLACES,
        length=st.sampled_from([1, 1, 1, 300, 1_200]),
        answer=AN_ANSWER,
        fault=SOME_FAULT,
        lost=st.booleans(),
        shield=st.sampled_from(["none", "none", "passes", "blocks"]),
        result=st.sampled_from([False, False, True]),
    )
    def create(self, place: int, length: int, answer: str, fault: str, lost: bool, shield: str, result: bool) -> None:
        messages: list[Any] = [UserMessage(content=("dynamite" if shield == "blocks" else "x") * length)]
        if result:
            messages.append(ToolResponseMessage(call_id="c0", content="3"))
        shields: dict[str, Any] = {} if shield == "none" else {"input_shields": ["words"]}

        async def act(twin: Twin) -> Any:
            process = twin.answering(place, answer)
            return await twin.run(process, process.start(messages=messages, **shields))

        with self.failing(fault, lost=lost):
            self.both(act)

    @rule(
        place=PLACES,
        call_id=st.sampled_from(["c0", "c1", "a", "b"]),
        answer=AN_ANSWER,
        fault=SOME_FAULT,
        lost=st.booleans(),
        back=st.sampled_from([1, 1, 1, 2]),
    )
    def resume(self, place: int, call_id: str, answer: str, fault: str, lost: bool, back: int) -> None:
        async def act(twin: Twin) -> Any:
            if len(twin.turns) < back:
                return None
            process = twin.answering(place, answer)
            return await twin.run(process, process.resume(twin.turns[-back], (call_id, "3")))

        with self.failing(fault, lost=lost):
            self.both(act)

    @rule(
        place=PLACES,
        answer=AN_ANSWER,
        after=st.sampled_from(["turn_start", "complete inference", "complete tool_execution"]),
        resumes=st.booleans(),
    )
    def die_in_a_turn(self, place: int, answer: str, after: str, resumes: bool) -> None:
        async def act(twin: Twin) -> Any:
            if resumes and not twin.turns:
                return None
            process = twin.answering(place, answer)
            begun = process.resume(twin.turns[-1], ("d", "3")) if resumes else process.start("dead")
            return await twin.run(process, begun, until=after)

        self.both(act)


def test_warm_processes_do_what_cold_ones_would(own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A stored turn has its receipt, whose digits, and so the bytes of the history, differ between the processes.
    monkeypatch.setattr(Meter, "read", lambda *_: Consumption(model_dollars=0.0))
    monkeypatch.setattr("stint.domain.history_cut.crc32", lambda turn_id: RANKS.get(turn_id, 0))

    class Session(Sessions):
        cloud = own_cloud

    Session.tenant = tenant
    shields = TurnFixture(own_cloud.store, tenant, script()).services.shields
    params = {"phrases": ["dynamite"], "user_message": "Not here."}
    asyncio.run(shields.register(ShieldRegisterRequest(shield_id="words", params=params)))
    few = settings(max_examples=6, stateful_step_count=15, deadline=None, derandomize=True, database=None)
    run_state_machine_as_test(Session, settings=few)
