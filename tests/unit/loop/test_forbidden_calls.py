"""Calls that a tool choice forbids, of models that make them in spite of it."""

from typing import Any

import pytest
from tests.script_model import ListLog, Script, called, collect, run_of, said, script, shape, words_of
from tests.unit.loop.test_loop_bounds import Echo, with_tools

from stint.domain.inference import AssistantAnswer
from stint.domain.steps import ToolExecutionStep
from stint.domain.tools import ToolCall, ToolChoice, ToolConfig
from stint.loop.agent_loop import run_loop
from stint.loop.run import Run
from stint.loop.screening import ToolShields


def run_with(model: Script, echo: Echo, choice: ToolChoice | str, *, client: tuple[str, ...] = (), **parts: Any) -> Run:
    return with_tools(run_of(model, tools=client, **parts), echo, "a", "b", tool_config=ToolConfig(tool_choice=choice))


def results(log: ListLog) -> dict[str, str]:
    steps = [record.step for record in log.records if isinstance(record.step, ToolExecutionStep)]
    return {step.tool_responses[0].call_id: str(step.tool_responses[0].content) for step in steps}


async def test_none_lets_no_call_run_whoever_runs_it() -> None:
    model, echo, log = script(called("a", "f"), said("done")), Echo(), ListLog()
    run = run_with(model, echo, ToolChoice.none, client=("f",), log=log)

    events = await collect(run_loop(run))

    assert echo.calls == []
    assert shape(events)[-1] == "ended completed"
    assert all("tool_choice is none" in text for text in results(log).values())
    assert [*results(log)] == ["c0", "c1"]
    assert [request.tool_choice for request in model.requests] == ["none", "none"]


async def test_no_other_tool_runs_until_the_named_one_was_called() -> None:
    answers = called("b"), called("b", "a"), called("b"), said("done")
    model, echo, log = script(*answers), Echo(), ListLog()
    run = run_with(model, echo, "a", log=log)

    await collect(run_loop(run))

    assert echo.calls == ["t:2:c1", "t:3:c0"]
    assert [request.tool_choice for request in model.requests] == ["a", "a", "auto", "auto"]
    assert "'b' did not run, because tool_choice requires a call of 'a'" in words_of(model.requests[1].messages[-1])


async def test_a_clients_tool_is_not_handed_to_it_in_place_of_the_named_one() -> None:
    model, echo, log = script(called("f"), called("f", "g"), said()), Echo(), ListLog()
    run = run_with(model, echo, "g", client=("f", "g"), log=log)

    events = await collect(run_loop(run))

    assert shape(events)[-1] == "ended awaiting_input"
    assert [*run.transcript.open] == ["c1"]
    assert "'f' did not run" in results(log)["c0"]


@pytest.mark.parametrize("iters", [1, 3])
async def test_a_model_that_does_not_give_in_ends_at_the_limit(iters: int) -> None:
    model, echo = script(*[called("b")] * iters), Echo()

    await collect(run_loop(run_with(model, echo, "a", iters=iters)))

    assert echo.calls == []
    assert len(model.requests) == iters


async def test_a_tool_named_like_a_choice_is_a_tool() -> None:
    model, echo = script(called("none"), said()), Echo()
    run = with_tools(run_of(model), echo, "none", tool_config=ToolConfig.model_construct(tool_choice="none"))

    await collect(run_loop(run))

    assert echo.calls == ["t:1:c0"]


async def test_an_approved_call_runs_whatever_the_choice_and_satisfies_it() -> None:
    for choice, told in ((ToolChoice.none, "none"), ("a", "auto"), ("b", "b")):
        model, echo = script(said()), Echo()
        run = run_with(model, echo, choice)
        run.approved = [ToolCall(call_id="e", tool_name="a", arguments={})]
        run.transcript.append_message(AssistantAnswer("", tuple(run.approved)))

        await collect(run_loop(run))

        assert echo.calls == ["t:0:e"]
        assert [request.tool_choice for request in model.requests] == [told]


async def test_forbidden_calls_are_answered_beside_checks_of_arguments() -> None:
    model, echo, log = script(called("f", "g", "b")), Echo(), ListLog()
    run = run_with(model, echo, "g", client=("f", "g"), log=log)
    object.__setattr__(run.plan.toolbox, "shields", {"b": ToolShields()})

    events = await collect(run_loop(run))

    assert [*results(log)] == ["c0", "c2"]
    assert [*run.transcript.open] == ["c1"]
    assert shape(events)[-1] == "ended awaiting_input"
