"""Sessions whose history is compacted by the agent's `context_management`."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_stack_client.lib.agents.event_logger import EventLogger
from llama_stack_client.types import MemoryRetrievalStep as ClientMemoryRetrievalStep
from llama_stack_client.types.agents import AgentTurnResponseStreamChunk
from pydantic import ValidationError
from tests.script_model import deadline, words_of
from tests.services.prefixes import assert_growing
from tests.services.turn_fixture import TurnFixture, die
from tests.services.turns.test_turn_tools import KIND, FakeTools
from tests.store.conftest import Cloud
from tests.window_model import WindowModel

from stint.caller import RequestAttempt
from stint.domain.errors import ContextLengthExceeded, ModelError
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.registrations import ToolGroupRegisterRequest
from stint.domain.llama_stack.sessions import ForkFrom
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.run_events import StepComplete
from stint.domain.steps import MemoryRetrievalStep
from stint.domain.stored_messages import SUMMARY
from stint.http.routes.turns import encode_event
from stint.services.turns.session_recorder import SEGMENT_TURNS
from stint.tools.port import Invocation, ToolOutcome

LONG = "x" * 3_000
MANAGED = [{"type": "compaction", "compact_threshold": 1_000}]


class Office:
    """A system with one session of an agent, whose tools return a text."""

    def __init__(self, cloud: Cloud, tenant: str, model: WindowModel, **settings: Any) -> None:
        self.cloud, self.tenant, self.model, self.settings = cloud, tenant, model, settings
        self.result: Callable[[], str] = lambda: "Done"
        self.tools = FakeTools(self.act)
        self.process = self.make_process()

    async def act(self, _: Invocation) -> ToolOutcome:
        return ToolOutcome(self.result())

    def make_process(self) -> TurnFixture:
        settings = {"tool_result_bytes": 60_000} | self.settings
        return TurnFixture(self.cloud.store, self.tenant, self.model, providers={KIND: self.tools}, **settings)

    async def open(self, *client_tools: str, **config: Any) -> TurnFixture:
        request = ToolGroupRegisterRequest(toolgroup_id="math", provider_id=KIND, args={"tools": ["add"]})
        await self.process.services.toolgroups.register(request)
        config = {"context_management": MANAGED, "toolgroups": ["math"], "instructions": "Be kind."} | config
        return await self.process.open(*client_tools, **config)

    def change_process(self) -> TurnFixture:
        """Continue in a process that remembers nothing."""
        old, self.process = self.process, self.make_process()
        self.process.agent_id, self.process.session_id = old.agent_id, old.session_id
        return self.process


def compactions(turn: Turn) -> list[MemoryRetrievalStep]:
    return [step for step in turn.steps if isinstance(step, MemoryRetrievalStep)]


def seen(model: WindowModel) -> list[str]:
    """Return the messages of the last model call, without the instructions."""
    return [words_of(message) for message in model.answered[-1].messages[1:]]


async def test_a_history_above_the_threshold_is_compacted_once(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    first = await process.turn(f"fact: plums 7\n{LONG}")

    second = await process.turn(LONG)
    third = await process.turn("recall plums")

    assert [step.inserted_context for step in compactions(second)] == [f"{SUMMARY}\nfact: plums 7"]
    assert [compactions(turn) for turn in (first, third)] == [[], []]
    assert third.output_message.content == "fact: plums 7"
    assert seen(office.model) == [f"{SUMMARY}\nfact: plums 7", LONG, "Fine", "recall plums"]
    assert len(office.model.summaries) == 1
    assert [turn.turn_id for turn in await process.stored()] == [first.turn_id, second.turn_id, third.turn_id]


async def test_an_agent_without_the_setting_compacts_nothing(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open(context_management=None)

    for _ in range(3):
        await process.turn(LONG)

    assert office.model.summaries == []


async def test_the_summary_is_a_part_of_the_turns_usage_and_receipt(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    first = await process.turn(LONG)

    second = await process.turn(LONG)

    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.output_tokens == 2 * first.usage.output_tokens
    assert first.receipt is not None
    assert second.receipt is not None
    assert second.receipt.output_tokens == 2 * first.receipt.output_tokens


async def test_rounds_of_tools_are_compacted_within_a_turn(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    office.result = lambda: f"fact: sum 9\n{LONG}"
    await process.turn(f"fact: plums 7\n{LONG}")

    second = await process.turn("run add")

    assert [step.step_type for step in second.steps] == ["inference", "tool_execution", "memory_retrieval", "inference"]
    assert seen(office.model) == [f"{SUMMARY}\nfact: plums 7", "run add", "", f"fact: sum 9\n{LONG}"]
    for word, fact in (("plums", "fact: plums 7"), ("sum", "fact: sum 9")):
        assert (await process.turn(f"recall {word}")).output_message.content == fact


@pytest.mark.parametrize("cache_bytes", [0, 10_000_000])
async def test_calls_after_a_compaction_begin_with_the_one_before(
    cloud: Cloud, tenant: str, cache_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TurnFixture, "with_cache_keys", frozenset({"test"}))
    office = Office(cloud, tenant, WindowModel(100_000), transcript_cache_bytes=cache_bytes)
    rule = {"type": "compaction", "compact_threshold": 10_000}
    process = await office.open("get_weather", context_management=[rule])
    await process.turn(f"fact: plums 7\n{LONG * 10}")
    await process.turn(LONG * 4)

    for number in range(SEGMENT_TURNS + 3):
        await process.turn("run add" if number % 9 == 4 else "Hello")
        if number % 7 == 5:
            turn = await process.turn("run get_weather")
            process = office.change_process()
            await process.resumed(turn.turn_id, (turn.output_message.tool_calls[0].call_id, "sunny"))
        if number % 5 == 3:
            process = office.change_process()

    assert len(office.model.summaries) == 1
    assert_growing(office.model.answered[1:])
    assert (await process.turn("recall plums")).output_message.content == "fact: plums 7"


async def test_a_compaction_has_the_key_of_its_session(
    cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TurnFixture, "with_cache_keys", frozenset({"test"}))
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    for text in ("Hello", LONG, LONG):
        await process.turn(text)

    keys = {request.cache_key for request in [*office.model.summaries, *office.model.answered]}

    assert len(office.model.summaries) == len(keys) == 1
    assert keys != {""}


async def test_a_cold_process_reads_no_turns_before_the_compaction(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    for _ in range(SEGMENT_TURNS + 5):
        await process.turn("Hello")
    await process.turn(LONG)
    last = await process.turn(LONG)
    assert compactions(last)
    await process.turn("Hello")

    history = await process.store.turns.history(*process.ids, max_bytes=4_000_000)

    assert history.turns[0].header.turn_id == last.turn_id
    assert (history.complete, history.transcribed) == (True, [])


async def test_segments_begin_anew_with_the_compaction(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    for _ in range(SEGMENT_TURNS + 5):
        await process.turn("Hello")
    await process.turn(LONG)
    last = await process.turn(LONG)
    for _ in range(SEGMENT_TURNS + 5):
        await process.turn("Hello")

    history = await process.store.turns.history(*process.ids, max_bytes=4_000_000)

    assert (history.transcribed[0].turn_id, history.complete) == (last.turn_id, True)
    assert history.transcribed[0].compacted == 1


async def test_the_model_sees_the_compaction_in_a_fork(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    for text in (f"fact: plums 7\n{LONG}", LONG, "Hello"):
        last = await process.turn(text)
    source = ForkFrom(session_id=process.session_id, turn_id=last.turn_id)
    other = office.make_process()
    other.agent_id = process.agent_id

    other.session_id = await other.sessions.create(other.agent_id, "fork", fork_from=source)
    await other.turn("recall plums")
    in_fork = seen(office.model)
    await process.turn("recall plums")

    assert in_fork == seen(office.model)
    assert in_fork[0] == f"{SUMMARY}\nfact: plums 7"
    assert len(office.model.summaries) == 1


async def test_a_turn_that_dies_after_its_compaction_does_not_pay_for_it_again(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    await process.turn(f"fact: plums 7\n{LONG}")
    turn = await process.start(LONG)
    async for event in process.turns.run(turn):
        if isinstance(event, StepComplete):
            break
    await die(turn)
    process = office.change_process()
    await process.expire_lease()

    answer = await process.turn("recall plums")

    assert answer.output_message.content == "fact: plums 7"
    assert len(office.model.summaries) == 1


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_retried_turn_keeps_the_compaction_of_its_first_attempt(
    cloud: Cloud, tenant: str, same_process: bool
) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    await process.turn(f"fact: plums 7\n{LONG}")
    office.model.breaks = 1
    run = await process.start(LONG)
    await process.play(run)
    assert isinstance(run.error, ModelError)
    if not same_process:
        process = office.change_process()

    process.attempt = RequestAttempt(retry_of=run.turn_id)
    await process.turn(LONG)

    assert seen(office.model) == [f"{SUMMARY}\nfact: plums 7", LONG]
    process.attempt = RequestAttempt()
    await process.turn("Hello")
    assert seen(office.model) == [f"{SUMMARY}\nfact: plums 7", LONG, "Fine", "Hello"]
    assert len(office.model.summaries) == 1


async def test_a_summary_that_fails_changes_nothing_while_the_input_fits(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000, failures=[ModelError("Busy.")]))
    process = await office.open()
    await process.turn(f"fact: plums 7\n{LONG}")

    second = await process.turn(LONG)

    assert (second.status, compactions(second)) == (TurnStatus.completed, [])
    assert compactions(await process.turn("Hello"))


async def test_a_turn_that_does_not_fit_without_its_summary_fails_as_before(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(1_000, failures=[ModelError("Busy.")]))
    process = await office.open()
    await process.turn(LONG)

    run = await process.start(LONG)
    await process.play(run)

    assert isinstance(run.error, ContextLengthExceeded)


async def test_a_history_that_does_not_fit_into_one_call_is_summarized_in_parts(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(100_000))
    process = await office.open(context_management=[{"type": "compaction"}])
    for number in range(30):
        await process.turn(f"fact: plums{number} 7\n{LONG}")
    office.model.window = 2_000

    for number in (0, 13, 29):
        answer = await process.turn(f"recall plums{number}")
        assert answer.output_message.content == f"fact: plums{number} 7"


async def test_a_session_is_compacted_before_its_turns_are_too_long_to_be_read(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(1_000_000), history=40_000)
    process = await office.open(context_management=[{"type": "compaction", "compact_threshold": 900_000}])
    await process.turn("fact: plums 7")

    for number in range(30):
        await process.turn(LONG)
        if number % 7 == 3:
            process = office.change_process()

    assert (await process.turn("recall plums")).output_message.content == "fact: plums 7"
    assert len(office.model.summaries) < 10


async def test_a_tail_shows_the_same_events(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    await process.turn(LONG)
    events = await process.play(await process.start(LONG))

    turn = (await process.stored())[-1]
    ids = process.agent_id, process.session_id, turn.turn_id
    tailed = await process.services.turn_requests.tail.follow(*ids, -1, deadline(30))

    expected = [encode_event(event) for event in events]
    assert [encode_event(each.event) async for each in tailed] == expected
    assert "messages" not in json.loads(expected[2].split(b"data: ")[1])["event"]["payload"]


async def test_the_client_of_llama_stack_reads_and_prints_the_step(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(10_000))
    process = await office.open()
    await process.turn(f"fact: plums 7\n{LONG}")
    events = await process.play(await process.start(LONG))

    sent = [json.loads(encode_event(event).split(b"data: ")[1]) for event in events]
    chunks = [AgentTurnResponseStreamChunk.model_validate(each) for each in sent]
    printed = [str(line) for line in EventLogger().log(iter(chunks)) if line is not None]

    step = chunks[-1].event.payload.turn.steps[0]  # type: ignore[union-attr]
    assert isinstance(step, ClientMemoryRetrievalStep)
    assert step.inserted_context == f"{SUMMARY}\nfact: plums 7"
    assert "Fine" in "".join(printed)


async def test_large_results_of_many_turns_are_remembered_across_processes(cloud: Cloud, tenant: str) -> None:
    office = Office(cloud, tenant, WindowModel(40_000))
    rule = {"type": "compaction", "compact_threshold": 30_000}
    process = await office.open(context_management=[rule])
    count = 0

    def result() -> str:
        nonlocal count
        count += 1
        return f"fact: result{count} {count * 37}\n" + "y" * 50_000

    office.result = result
    for number in range(40):
        turn = await process.turn("run add")
        assert turn.status is TurnStatus.completed, turn.error
        if number % 7 == 3:
            process = office.change_process()

    for number in (1, 17, 40):
        answer = await process.turn(f"recall result{number}")
        assert answer.output_message.content == f"fact: result{number} {number * 37}"
    assert office.model.refused == 0


@pytest.mark.parametrize(
    "value", [[{"type": "trimming"}], [{"type": "compaction", "compact_threshold": 999}], [{}], "compaction"]
)
def test_unknown_or_small_settings_are_refused(value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        AgentConfig.model_validate({"model": "m", "instructions": "", "context_management": value})

    assert refused.value.errors()[0]["loc"][0] == "context_management"
