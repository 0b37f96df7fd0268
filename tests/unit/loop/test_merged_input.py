"""Messages that a run takes before its next model call."""

from dataclasses import replace

from tests.script_model import ListLog, Script, called, collect, run_of, said, script
from tests.unit.loop.test_tool_shields import Tools, Words, results_seen, shielded

from stint.domain.inference import UserInput
from stint.domain.run_events import RunEnded
from stint.domain.run_outcome import RunStatus
from stint.loop.agent_loop import run_loop
from stint.loop.run import Run
from stint.loop.screening import BoundShield
from stint.shields.port import Shield
from stint.tools.port import ToolOutcome


def running(model: Script, text: str) -> tuple[Run, Words]:
    """Return a run with an input shield, whose tool ends after a message has arrived."""
    words, log = Words(), ListLog()
    log.waiting.append(UserInput(text))
    run = shielded(run_of(model, log=log), Tools({"search": ToolOutcome("found")}), {})
    bound = (BoundShield(Shield("words", "words", "words"), words),)
    run.plan = replace(run.plan, input_shields=bound)
    run.transcript.append_message(UserInput("one"))
    return run, words


async def test_a_message_is_checked_by_the_input_shields_before_the_model_gets_it() -> None:
    model = script(called("search"), said())
    run, words = running(model, "and two")

    await collect(run_loop(run))

    assert results_seen(model)[-2:] == ["found", "and two"]
    assert [touchpoint for _, touchpoint in words.asked] == ["user-input", "user-input"]
    assert "and two" in words.asked[1][0]


async def test_a_message_that_is_blocked_ends_the_run_without_another_model_call() -> None:
    model = script(called("search"), said())
    run, _ = running(model, "launch it")

    events = await collect(run_loop(run))

    assert len(model.requests) == 1
    assert isinstance(events[-1], RunEnded)
    assert events[-1].status is RunStatus.completed
    assert "launch" not in str(run.transcript.messages)


async def test_the_first_model_call_takes_no_message() -> None:
    run, _ = running(model := script(said()), "and two")

    await collect(run_loop(run))

    assert results_seen(model) == ["one"]
