"""Model calls of a session begin with the blocks of the call before, so that providers find them in their caches."""

import random
from dataclasses import replace

import pytest
from tests.script_model import Part, Script, called, said
from tests.services.prefixes import assert_growing, signed_thought
from tests.services.turn_fixture import TurnFixture, die
from tests.services.turns.test_turn_tools import KIND, FakeTools, Making
from tests.services.turns.test_waiting_turns import admission, message
from tests.store.conftest import Cloud

from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.domain.errors import ModelError
from stint.domain.inference import Finished, FinishReason, ReasoningChunk, TextChunk, ToolCallChunk
from stint.domain.llama_stack.events import TurnFailed
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.run_events import StepComplete
from stint.services.turns.session_recorder import SEGMENT_TURNS
from stint.tools.port import Invocation, ToolOutcome

TALKS = 12


class Talk:
    """A session of an agent with server tools and client tools, in which random things happen."""

    def __init__(self, cloud: Cloud, tenant: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Script([])
        self.merged = ""
        self.tools = FakeTools(self.act)
        self.making = Making(cloud, tenant, self.tools)
        self.calls = 0

    async def open(self) -> None:
        self.process = await self.making.turn_fixture(self.model, "get_weather", "get_time", instructions="Be kind.")

    async def act(self, invocation: Invocation) -> ToolOutcome:
        if self.merged:
            await admission(self.process).accept(message(self.merged, "merge"))
            self.merged = ""
        return ToolOutcome(f"{invocation.tool_name} is {self.random.random()}")

    def answer(self, *answers: list[Part]) -> None:
        """Add answers of the model, whose calls get new ids."""
        for parts in answers:
            self.model.answers.append([self.renamed(part) for part in parts])

    def renamed(self, part: Part) -> Part:
        if not isinstance(part, ToolCallChunk):
            return part
        self.calls += 1
        return replace(part, call_id=f"call_{self.calls}")

    async def say_something(self) -> None:
        self.answer(said("Fine"))
        await self.process.turn("How are you?")

    async def think(self) -> None:
        thought = ReasoningChunk("I wonder.", "c2lnbmF0dXJl")
        self.answer([thought, TextChunk("So"), Finished(FinishReason.stop)])
        await self.process.turn("Think.")

    async def think_of_tools(self) -> None:
        """Reason before calls, by Bedrock or the Responses API."""
        thought = self.random.choice((ReasoningChunk("I wonder.", "c2lnbmF0dXJl"), signed_thought()))
        self.answer([thought, *called("add", "sub")], [thought, *said("Done")])
        await self.process.turn("Compute.")

    async def run_tools(self) -> None:
        self.answer(called("add", "sub", text="Let me see."), called("mul"), said("Done"))
        await self.process.turn("Compute.")

    async def merge(self) -> None:
        self.merged = "And another thing."
        self.answer(called("add"), said("Both done"))
        await self.process.turn("Compute.")

    async def ask_client(self) -> None:
        self.answer(called("get_weather", "get_time"), said("Sunny"))
        turn = await self.process.turn("Weather?")
        assert turn.status is TurnStatus.awaiting_input
        self.change_process()
        ids = [call.call_id for call in turn.output_message.tool_calls]
        await self.process.resumed(turn.turn_id, *((call_id, "sunny") for call_id in reversed(ids)))

    async def ignore_client(self) -> None:
        self.answer(called("get_weather"), said("Never mind"))
        await self.process.turn("Weather?")
        self.change_process()
        await self.process.turn("Something else.")

    async def fail(self) -> None:
        self.answer(called("add"), [TextChunk("So"), ModelError("The line is dead.")])
        events = await self.process.play(await self.process.start("Compute."))
        assert isinstance(events[-1], TurnFailed)

    async def retry(self) -> None:
        """Fail before the first step, and run the turn again, as an unmodified client does."""
        self.answer([ModelError("The line is dead.")], said("Fine"))
        failed = await self.process.start("Are you there?")
        assert isinstance((await self.process.play(failed))[-1], TurnFailed)
        self.change_process()
        self.process.attempt = RequestAttempt(retry_of=failed.turn_id, retry_count=1)
        await self.process.turn("Are you there?")
        self.process.attempt = NO_ATTEMPT

    async def die(self) -> None:
        self.answer(called("add"), said("Done"))
        turn = await self.process.start("Compute.")
        async for event in self.process.turns.run(turn):
            if isinstance(event, StepComplete) and event.step_type == "tool_execution":
                break
        await die(turn)
        del self.model.answers[len(self.model.requests) :]
        self.process = self.another_process(0)

    def another_process(self, cache_bytes: int) -> TurnFixture:
        """Return a process that remembers nothing."""
        old = self.process
        process = TurnFixture(
            old.store,
            old.tenant,
            self.model,
            providers={KIND: self.tools},
            tool_result_bytes=1_000,
            transcript_cache_bytes=cache_bytes,
        )
        process.agent_id, process.session_id = old.agent_id, old.session_id
        return process

    def change_process(self) -> None:
        """Continue in this process, or in another one, with or without a cache of transcripts."""
        if self.random.random() < 0.6:
            self.process = self.another_process(self.random.choice((0, 1_000_000)))


@pytest.mark.parametrize(("seed", "steps"), [*((seed, 9) for seed in range(TALKS)), (TALKS, SEGMENT_TURNS + 5)])
async def test_a_call_of_a_session_begins_with_the_one_before(
    cloud: Cloud, tenant: str, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last talk is long enough for segments of its history."""
    monkeypatch.setattr(TurnFixture, "with_cache_keys", frozenset({"test"}))
    talk = Talk(cloud, tenant, seed)
    await talk.open()
    acts = [
        talk.say_something,
        talk.think,
        talk.think_of_tools,
        talk.run_tools,
        talk.merge,
        talk.ask_client,
        talk.ignore_client,
    ]
    for _ in range(steps):
        await talk.random.choice([*acts, talk.fail, talk.retry, talk.die])()
        talk.change_process()

    assert len(talk.model.requests) > steps
    assert_growing(talk.model.requests)
