"""The shields of single tools in the loop: arguments before a call, results before anything of them is stored."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.script_model import ListLog, Script, called, collect, run_of, said, script, shape, until, words_of

from stint.domain.content import TextContentItem
from stint.domain.errors import ShieldFailed
from stint.domain.inference import ModelMessage, ToolSignature, UserInput
from stint.domain.run_events import StepStart
from stint.domain.run_outcome import RunStatus
from stint.domain.schema import now
from stint.domain.steps import MemoryRetrievalStep, SafetyViolation, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.tools import ToolCall
from stint.loop.agent_loop import run_loop
from stint.loop.retrieval import RetrievedContext
from stint.loop.run import Run
from stint.loop.screening import BoundShield, ToolShields
from stint.loop.toolbox import ServerTool, Toolbox
from stint.shields.port import Shield, Touchpoint
from stint.shields.texts import last_messages, message_texts
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

SECRET = "the launch code is 0000"


@dataclass
class Words:
    """A shield that blocks texts with the word `launch`. It fails if a text has the word `broken`."""

    asks_model = False
    asked: list[tuple[list[str], Touchpoint]] = field(default_factory=list)

    def validate(self, shield: Shield) -> None: ...

    async def check(
        self, shield: Shield, messages: Sequence[ModelMessage], touchpoint: Touchpoint
    ) -> SafetyViolation | None:
        texts = [text for message in last_messages(messages) for text in message_texts(message)]
        self.asked.append((texts, touchpoint))
        if any("broken" in text for text in texts):
            raise ShieldFailed("There is no verdict.")
        return SafetyViolation(violation_level="error", user_message="No.") if "launch" in " ".join(texts) else None


@dataclass
class Tools:
    """Runs tools: each returns its outcome, and notes that it was called."""

    outcomes: Mapping[str, ToolOutcome]
    called: list[str] = field(default_factory=list)
    slow: asyncio.Event | None = None

    async def invoke(self, group: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.called.append(invocation.tool_name)
        if self.slow is not None and invocation.tool_name == "slow":
            await self.slow.wait()
        return self.outcomes[invocation.tool_name]


def shielded(
    run: Run, tools: Tools, shields: Mapping[str, ToolShields], client: Sequence[str] = (), **bounds: Any
) -> Run:
    provider: Any = tools
    group = Toolgroup("g", "lambda-function")
    server = {name: ServerTool(ToolSignature(name, "", {}), group, provider) for name in tools.outcomes}
    own = {name: ToolSignature(name, "", {}) for name in client}
    run.plan = replace(run.plan, toolbox=Toolbox(own, server, shields=shields, **bounds))
    return run


def on(words: Words, side: str) -> ToolShields:
    bound = (BoundShield(Shield("words", "words", "words"), words),)
    return ToolShields(input=bound) if side == "input" else ToolShields(output=bound)


def steps_in(log: ListLog) -> list[Step]:
    return [record.step for record in log.records if record.step is not None]


def stored(log: ListLog) -> str:
    return json.dumps([record.model_dump(mode="json") for record in log.records]) + json.dumps(log.kept)


def results_seen(model: Script) -> list[str]:
    return [words_of(message) for message in model.requests[-1].messages]


ARGUMENTS = json.dumps({"query": SECRET})


async def test_a_call_with_blocked_arguments_does_not_run_and_the_model_gets_an_answer() -> None:
    words, log, tools = Words(), ListLog(), Tools({"search": ToolOutcome("found")})
    model = script(called("search", arguments=ARGUMENTS), said())
    run = shielded(run_of(model, log=log), tools, {"search": on(words, "input")})

    events = await collect(run_loop(run))

    assert tools.called == []
    assert shape(events)[3:7] == [
        "start shield_call",
        "complete shield_call",
        "start tool_execution",
        "call in_progress",
    ]
    [_, check, execution, _] = steps_in(log)
    assert isinstance(check, ShieldCallStep)
    assert isinstance(execution, ToolExecutionStep)
    assert check.violation is not None
    assert check.metadata == {"touchpoint": "tool-input", "tool_name": "search", "call_id": "c0"}
    [response] = execution.tool_responses
    assert response.content == "A shield blocked the arguments of this call, so the tool did not run. No."
    assert response.metadata == {"error": True}
    assert results_seen(model)[-1] == response.content
    assert words.asked == [(["", "search", "query", SECRET], "assistant-output")]


async def test_a_call_whose_arguments_pass_runs_after_a_step_without_a_violation() -> None:
    log, tools = ListLog(), Tools({"search": ToolOutcome("found")})
    run = shielded(run_of(script(called("search"), said()), log=log), tools, {"search": on(Words(), "input")})

    events = await collect(run_loop(run))

    assert tools.called == ["search"]
    [_, check, execution, _] = steps_in(log)
    assert isinstance(check, ShieldCallStep)
    assert check.violation is None
    assert isinstance(execution, ToolExecutionStep)
    assert execution.tool_responses[0].content == "found"
    starts = [event.step_type for event in events if isinstance(event, StepStart)]
    assert starts == ["inference", "shield_call", "tool_execution", "inference"]


@pytest.mark.parametrize(
    "outcome",
    [
        ToolOutcome(SECRET),
        ToolOutcome([TextContentItem(text="a"), TextContentItem(text=SECRET)]),
        ToolOutcome(SECRET, error=True),
        ToolOutcome("fine", {"structured_content": {"deep": [{SECRET: 1}]}}),
        ToolOutcome(SECRET, {"attachments": [{"content": {"uri": "data:,x"}, "mime_type": "text/plain"}]}),
        ToolOutcome("long " * 100 + SECRET),
    ],
    ids=["text", "items", "error", "structured", "attachments", "long"],
)
async def test_a_blocked_result_is_neither_stored_nor_streamed_nor_seen_by_the_model(outcome: ToolOutcome) -> None:
    words, log, tools = Words(), ListLog(), Tools({"search": outcome})
    model = script(called("search"), said())
    run = shielded(run_of(model, log=log), tools, {"search": on(words, "output")}, result_bytes=100)

    events = await collect(run_loop(run))

    assert tools.called == ["search"]
    assert "launch" not in stored(log) + repr(events) + repr(model.requests) + repr(run.transcript.messages)
    [_, execution, check, _] = steps_in(log)
    assert isinstance(execution, ToolExecutionStep)
    assert isinstance(check, ShieldCallStep)
    assert check.metadata == {"touchpoint": "tool-output", "tool_name": "search", "call_id": "c0"}
    [response] = execution.tool_responses
    assert (response.content, response.metadata) == ("A shield blocked the result of this call. No.", {"error": True})
    assert results_seen(model)[-1] == response.content
    [(_, touchpoint)] = words.asked
    assert touchpoint == "user-input"


async def test_a_result_that_passes_is_unchanged() -> None:
    outcome = ToolOutcome("fine", {"structured_content": {"a": 1}})
    log, tools = ListLog(), Tools({"search": outcome})
    run = shielded(run_of(script(called("search"), said()), log=log), tools, {"search": on(Words(), "output")})

    await collect(run_loop(run))

    [_, execution, check, _] = steps_in(log)
    assert isinstance(execution, ToolExecutionStep)
    assert isinstance(check, ShieldCallStep)
    assert check.violation is None
    assert (execution.tool_responses[0].content, execution.tool_responses[0].metadata) == (
        "fine",
        {"structured_content": {"a": 1}},
    )


@pytest.mark.parametrize("side", ["input", "output"])
async def test_a_shield_that_fails_blocks_and_the_run_goes_on(side: str) -> None:
    log, tools = ListLog(), Tools({"search": ToolOutcome("broken")})
    model = script(called("search", arguments='{"query": "broken"}'), said())
    run = shielded(run_of(model, log=log), tools, {"search": on(Words(), side)})

    events = await collect(run_loop(run))

    assert shape(events)[-1] == "ended completed"
    assert tools.called == ([] if side == "input" else ["search"])
    [check] = [step for step in steps_in(log) if isinstance(step, ShieldCallStep)]
    assert check.violation is not None
    assert check.violation.metadata == {"violation_type": "shield_failed", "message": "There is no verdict."}
    assert "broken" not in results_seen(model)[-1]


async def test_parallel_calls_are_checked_each_by_its_own_shields() -> None:
    words, log = Words(), ListLog()
    tools = Tools({"search": ToolOutcome(SECRET), "other": ToolOutcome(SECRET), "third": ToolOutcome("x")})
    model = script(called("search", "other", "third", arguments='{"query": "launch"}'), said())
    shields = {"search": on(words, "output"), "third": on(words, "input")}
    run = shielded(run_of(model, log=log), tools, shields)

    await collect(run_loop(run))

    kinds = [step.step_type for step in steps_in(log)]
    assert kinds == [
        "inference",
        "shield_call",
        "tool_execution",
        "shield_call",
        "tool_execution",
        "tool_execution",
        "inference",
    ]
    assert sorted(tools.called) == ["other", "search"]
    seen = results_seen(model)[-3:]
    assert [text.startswith("A shield blocked") for text in seen] == [True, False, True]
    assert seen[1] == SECRET
    ids = [step.step_id for step in steps_in(log)[2:5]]
    assert ids == sorted(ids)


async def test_an_early_result_is_stored_with_its_check_and_without_what_was_blocked() -> None:
    log, slow = ListLog(), asyncio.Event()
    tools = Tools({"slow": ToolOutcome("x"), "search": ToolOutcome(SECRET)}, slow=slow)
    run = shielded(run_of(script(called("slow", "search"), said()), log=log), tools, {"search": on(Words(), "output")})

    consuming = asyncio.create_task(collect(run_loop(run)))
    await until(lambda: any(record.early for record in log.records))
    [early] = [record.early for record in log.records if record.early]
    slow.set()
    events = await consuming

    assert [step.step_type for step in early] == ["tool_execution", "shield_call"]
    assert [step.step_type for step in steps_in(log)[1:4]] == ["tool_execution", "tool_execution", "shield_call"]
    assert steps_in(log)[2:4] == early
    assert "launch" not in stored(log) + repr(events)


async def test_a_blocked_call_for_the_client_is_answered_and_the_model_goes_on() -> None:
    log = ListLog()
    model = script(called("weather", arguments=ARGUMENTS), said())
    run = shielded(run_of(model, log=log), Tools({}), {"weather": on(Words(), "input")}, client=["weather"])

    events = await collect(run_loop(run))

    assert shape(events)[-1] == "ended completed"
    assert [step.step_type for step in steps_in(log)] == ["inference", "shield_call", "tool_execution", "inference"]
    assert results_seen(model)[-1].startswith("A shield blocked the arguments of this call")
    assert [record.ending and record.ending.status for record in log.records] == [None] * 3 + [RunStatus.completed]


async def test_a_call_for_the_client_that_passes_is_handed_over_after_its_check() -> None:
    log = ListLog()
    run = shielded(
        run_of(script(called("weather")), log=log), Tools({}), {"weather": on(Words(), "input")}, client=["weather"]
    )

    events = await collect(run_loop(run))

    assert shape(events)[-3:] == ["start shield_call", "complete shield_call", "ended awaiting_input"]
    assert [record.ending and record.ending.status for record in log.records] == [None, RunStatus.awaiting_input]
    assert list(run.transcript.open) == ["c0"]


@pytest.mark.parametrize("second", ["clock", "weather"])
async def test_beside_a_blocked_call_the_client_gets_only_the_others(second: str) -> None:
    log = ListLog()
    calls = called("weather", second, arguments=ARGUMENTS)
    model = script(calls, said())
    run = shielded(run_of(model, log=log), Tools({}), {"weather": on(Words(), "input")}, client=["weather", "clock"])

    events = await collect(run_loop(run))

    waits = second == "clock"
    assert shape(events)[-1] == ("ended awaiting_input" if waits else "ended completed")
    assert list(run.transcript.open) == (["c1"] if waits else [])
    checks = [step for step in steps_in(log) if isinstance(step, ShieldCallStep)]
    assert len(checks) == (1 if waits else 2)


async def test_at_the_limit_of_iterations_a_blocked_call_is_not_even_checked() -> None:
    words, log = Words(), ListLog()
    run = run_of(script(called("weather", arguments=ARGUMENTS)), log=log, iters=1)

    events = await collect(run_loop(shielded(run, Tools({}), {"weather": on(words, "input")}, client=["weather"])))

    assert shape(events)[-1] == "ended completed"
    assert words.asked == []


async def test_the_last_step_of_a_run_with_a_limit_of_calls_has_its_ending() -> None:
    log, tools = ListLog(), Tools({"search": ToolOutcome("fine")})
    run = shielded(run_of(script(called("search", "search")), log=log), tools, {"search": on(Words(), "output")})
    run.plan = replace(run.plan, max_tool_calls=1)

    events = await collect(run_loop(run))

    assert shape(events)[-2:] == ["complete shield_call", "ended completed"]
    assert [record.ending and record.ending.status for record in log.records] == [None, None, RunStatus.completed]


async def test_checks_of_the_clients_results_are_the_first_steps_of_a_run() -> None:
    log, model = ListLog(), script(said())
    run = run_of(model, log=log)
    check = ShieldCallStep(
        turn_id="t",
        step_id="1",
        started_at=now(),
        violation=SafetyViolation(violation_level="error"),
        metadata={"touchpoint": "tool-output"},
    )
    run.checks.append(check)

    events = await collect(run_loop(run))

    assert shape(events)[:3] == ["start shield_call", "complete shield_call", "start inference"]
    assert steps_in(log)[0] == check
    assert list(model.requests[0].messages) == []


@dataclass
class Bank:
    """A retriever with shields."""

    shields: ToolShields
    tool_name: str = "knowledge_search"
    asked: int = 0

    async def retrieve(self, messages: Sequence[ModelMessage], key: str, /) -> RetrievedContext:
        self.asked += 1
        return RetrievedContext(["a"], SECRET)


@pytest.mark.parametrize("side", ["input", "output"])
async def test_a_retrieval_is_checked_like_a_call(side: str) -> None:
    words, log, model = Words(), ListLog(), script(said())
    run, bank = run_of(model, log=log), Bank(on(words, side))
    run.plan = replace(run.plan, retriever=bank)
    run.transcript.append_message(UserInput("launch" if side == "input" else "Hi"))

    events = await collect(run_loop(run))

    order = ["shield_call", "memory_retrieval"] if side == "input" else ["memory_retrieval", "shield_call"]
    assert [step.step_type for step in steps_in(log)] == [*order, "inference"]
    [step] = [step for step in steps_in(log) if isinstance(step, MemoryRetrievalStep)]
    assert str(step.inserted_context).startswith("A shield blocked")
    assert SECRET not in stored(log) + repr(events) + repr(model.requests)
    assert bank.asked == (1 if side == "output" else 0)
    assert step.vector_db_ids == ("a" if side == "output" else "")


def test_the_shields_of_all_tools_check_the_result_of_an_unknown_one() -> None:
    words = Words()
    shields = {"weather": on(words, "output"), "clock": on(words, "input")}
    toolbox = Toolbox({name: ToolSignature(name, "", {}) for name in ("weather", "clock", "free")}, shields=shields)

    assert [len(toolbox.shields_of_result(name)) for name in ("weather", "clock", "free", "nope", "")] == [
        1,
        0,
        0,
        1,
        1,
    ]


def test_a_call_without_an_object_has_no_shields_because_no_tool_runs() -> None:
    toolbox = Toolbox({}, {}, shields={"search": on(Words(), "input")})

    assert toolbox.shields_of(ToolCall(call_id="c", tool_name="search", arguments="{")) == ToolShields()
    assert toolbox.shields_of(ToolCall(call_id="c", tool_name="search", arguments={})).input
