"""Limits of a run besides its iterations: tokens, tool calls, the model's context."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.script_model import ListLog, Script, called, collect, run_of, said, script, shape, words_of

from stint.domain.errors import ContextLengthExceeded
from stint.domain.inference import (
    AssistantAnswer,
    Finished,
    FinishReason,
    SystemText,
    TextChunk,
    ToolResult,
    ToolSignature,
    Usage,
    UserInput,
)
from stint.domain.limits import MAX_RESULT_BYTES, MAX_TOOL_CALLS
from stint.domain.run_outcome import RunOutcome
from stint.domain.tools import ToolCall, ToolChoice, ToolConfig
from stint.loop.agent_loop import run_loop
from stint.loop.run import Run
from stint.loop.tool_round import CALLS_AT_ONCE
from stint.loop.toolbox import ServerTool, Toolbox
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

OVERLONG = ContextLengthExceeded("The messages are too long.")


class Echo:
    """A provider whose every tool answers with its name."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def check(self, toolgroup: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return []

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return []

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.calls.append(invocation.key)
        return ToolOutcome(invocation.tool_name)


class Crowd(Echo):
    """A provider that counts the calls that run side by side, and returns a long text."""

    running = most = 0
    text = "a"

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running -= 1
        await super().invoke(toolgroup, invocation)
        return ToolOutcome(self.text)


def with_tools(run: Run, echo: Echo, *names: str, **bounds: Any) -> Run:
    group = Toolgroup("g", "echo")
    server: Mapping[str, ServerTool] = {name: ServerTool(ToolSignature(name, "", {}), group, echo) for name in names}
    run.plan = replace(run.plan, toolbox=Toolbox(run.plan.toolbox.client, server), **bounds)
    return run


def ending_in(log: ListLog) -> RunOutcome:
    endings = [record.ending for record in log.records if record.ending]
    assert len(endings) == 1
    assert log.records[-1].ending is endings[0]
    return endings[0]


async def test_calls_beyond_the_bound_are_not_run_and_the_run_is_incomplete() -> None:
    log, echo = ListLog(), Echo()
    run = with_tools(run_of(script(called("a", "b", "a")), log=log), echo, "a", "b", max_tool_calls=2)

    events = await collect(run_loop(run))

    assert echo.calls == ["t:1:c0", "t:1:c1"]
    assert shape(events)[-1] == "ended completed"
    assert ending_in(log).incomplete_reason == "max_tool_calls"


async def test_a_bound_that_is_reached_by_an_earlier_answer_stops_the_next_calls() -> None:
    log, echo = ListLog(), Echo()
    run = with_tools(run_of(script(called("a"), called("a")), log=log), echo, "a", max_tool_calls=1)

    await collect(run_loop(run))

    assert len(echo.calls) == 1
    assert ending_in(log).incomplete_reason == "max_tool_calls"


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("names", [["ask"], ["a", "ask"], ["a"]])
async def test_the_last_model_call_leaves_calls_to_the_client_where_the_plan_says_so(
    pauses: bool, names: list[str]
) -> None:
    log, echo = ListLog(), Echo()
    run = with_tools(run_of(script(called(*names)), tools=("ask",), iters=1, log=log), echo, "a")
    run.plan = replace(run.plan, pauses_at_limit=pauses)

    await collect(run_loop(run))

    paused = pauses and "ask" in names
    ending = ending_in(log)
    assert ending.status == ("awaiting_input" if paused else "completed")
    assert ending.incomplete_reason == (None if paused else "max_infer_iters")
    assert len(echo.calls) == (1 if paused and "a" in names else 0)


async def test_an_answer_that_spends_the_last_token_may_still_call_the_client() -> None:
    log, spent = ListLog(), Finished(FinishReason.tool_calls, Usage(output_tokens=20))
    run = with_tools(run_of(script([*called("ask")[:-1], spent]), tools=("ask",), log=log), Echo())
    run.plan = replace(run.plan, pauses_at_limit=True, max_output_tokens=20)

    await collect(run_loop(run))

    assert (ending_in(log).status, ending_in(log).incomplete_reason) == ("awaiting_input", None)


async def test_the_tokens_of_a_run_are_shared_by_its_model_calls() -> None:
    echo, first = Echo(), Finished(FinishReason.tool_calls, Usage(output_tokens=30))
    model = script([*called("a")[:-1], first], said("done"))
    run = with_tools(run_of(model), echo, "a", max_output_tokens=100)

    await collect(run_loop(run))

    assert [request.decoding.max_tokens for request in model.requests] == [100, 70]


async def test_a_run_whose_tokens_are_spent_runs_no_more_tools() -> None:
    log, echo = ListLog(), Echo()
    spent = Finished(FinishReason.tool_calls, Usage(output_tokens=20))
    run = with_tools(run_of(script([*called("a")[:-1], spent]), log=log), echo, "a", max_output_tokens=20)

    await collect(run_loop(run))

    assert echo.calls == []
    assert ending_in(log).incomplete_reason == "max_output_tokens"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        (FinishReason.length, "max_output_tokens"),
        (FinishReason.content_filter, "content_filter"),
        (FinishReason.stop, None),
    ],
)
async def test_an_answer_that_was_broken_off_says_why(finish: FinishReason, reason: str | None) -> None:
    log = ListLog()

    await collect(run_loop(run_of(script([TextChunk("Once"), Finished(finish)]), log=log)))

    assert ending_in(log).incomplete_reason == reason


async def test_one_call_at_a_time_where_parallel_calls_are_not_wanted() -> None:
    echo, model = Echo(), script(called("a", "b"), said("done"))
    run = with_tools(run_of(model), echo, "a", "b", parallel_tool_calls=False)

    await collect(run_loop(run))

    assert echo.calls == ["t:1:c0"]
    assert model.requests[0].parallel_tool_calls is False


async def test_an_approved_call_is_run_before_the_model_is_called() -> None:
    echo, model = Echo(), script(said("done"))
    run = with_tools(run_of(model), echo, "a")
    call = ToolCall(call_id="mcpr_1", tool_name="a", arguments={})
    run.transcript.append_message(AssistantAnswer("", (call,)))
    run.approved.append(call)

    async with run.opened():
        assert run.inference is None
    events = await collect(run_loop(run))

    assert shape(events)[:3] == ["start tool_execution", "call in_progress", "complete tool_execution"]
    assert model.requests[0].messages == (AssistantAnswer("", (call,)), ToolResult("mcpr_1", "a", "a"))


def long_run(*answers: list[Any], shortens: bool) -> tuple[Run, Script]:
    model = script(*answers)
    run = run_of(model)
    run.plan = replace(run.plan, shortens=shortens)
    for message in (SystemText("Be brief."), UserInput("1"), AssistantAnswer("one"), UserInput("2"), UserInput("3")):
        run.transcript.append_message(message)
    return run, model


async def test_a_conversation_too_long_for_the_model_loses_its_older_half_when_that_is_allowed() -> None:
    run, model = long_run([OVERLONG], [OVERLONG], said("ok"), shortens=True)

    events = await collect(run_loop(run))

    assert shape(events)[-1] == "ended completed"
    assert [[words_of(message) for message in request.messages] for request in model.requests[1:]] == [
        ["Be brief.", "2", "3"],
        ["Be brief.", "3"],
    ]


@pytest.mark.parametrize("shortens", [False, True])
async def test_what_cannot_be_shortened_fails(shortens: bool) -> None:
    run, model = long_run([OVERLONG], [OVERLONG], [OVERLONG], shortens=shortens)

    with pytest.raises(ContextLengthExceeded):
        await collect(run_loop(run))

    assert len(model.requests) == (3 if shortens else 1)


async def test_a_choice_holds_for_the_first_call_whatever_the_input() -> None:
    """The call is the first one of the model in a run, and the input may have results."""
    model, echo = script(called("a"), said()), Echo()
    run = with_tools(run_of(model), echo, "a", tool_config=ToolConfig(tool_choice=ToolChoice.required))
    earlier = ToolCall(call_id="e", tool_name="a", arguments={})
    for message in (AssistantAnswer("", (earlier,)), ToolResult("e", "a", "1")):
        run.transcript.append_message(message)

    await collect(run_loop(run))

    assert [request.tool_choice for request in model.requests] == ["required", "auto"]


async def test_a_choice_is_satisfied_by_calls_that_the_client_has_approved() -> None:
    model, echo = script(said()), Echo()
    run = with_tools(run_of(model), echo, "a", tool_config=ToolConfig(tool_choice=ToolChoice.required))
    run.approved = [ToolCall(call_id="e", tool_name="a", arguments={})]
    run.transcript.append_message(AssistantAnswer("", tuple(run.approved)))

    await collect(run_loop(run))

    assert echo.calls == ["t:0:e"]
    assert [request.tool_choice for request in model.requests] == ["auto"]


async def test_a_run_without_a_bound_of_its_own_ends_after_so_many_calls() -> None:
    log, echo = ListLog(), Echo()
    run = with_tools(run_of(script(called(*["a"] * (MAX_TOOL_CALLS + 1))), log=log), echo, "a")

    await collect(run_loop(run))

    assert len(echo.calls) == MAX_TOOL_CALLS
    assert ending_in(log).incomplete_reason == "max_tool_calls"


async def test_only_some_calls_run_side_by_side() -> None:
    crowd = Crowd()
    run = with_tools(run_of(script(called(*["a"] * 20), said("done"))), crowd, "a")

    await collect(run_loop(run))

    assert (len(crowd.calls), crowd.most) == (20, CALLS_AT_ONCE)


async def test_calls_do_not_run_when_the_results_of_a_run_are_spent() -> None:
    crowd = Crowd()
    crowd.text = "x" * (MAX_RESULT_BYTES // 2)
    model = script(*[called("a")] * 3, said("done"))

    await collect(run_loop(with_tools(run_of(model), crowd, "a")))

    assert len(crowd.calls) == 2
    refused = model.requests[-1].messages[-1]
    assert isinstance(refused, ToolResult)
    assert "did not run" in str(refused.content)
