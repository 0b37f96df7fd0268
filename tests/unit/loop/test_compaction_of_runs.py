"""Compaction of a run's history: when, of what, and with which summary."""

from dataclasses import replace
from typing import Any

import pytest
from tests.script_model import ListLog, Script, called, run_of, said, script, words_of
from tests.unit.loop.test_screening import BLOCK, bind, says
from tests.window_model import WindowModel

from stint.domain.errors import ContextLengthExceeded, ModelError, QuotaExceeded
from stint.domain.inference import (
    AssistantAnswer,
    Finished,
    FinishReason,
    ModelMessage,
    Reasoning,
    SystemText,
    TextChunk,
    ToolResult,
    UserInput,
)
from stint.domain.run_events import CompactionComplete
from stint.domain.stored_messages import SUMMARY
from stint.domain.tools import ToolCall
from stint.loop.agent_loop import run_loop
from stint.loop.plan import CompactionRule
from stint.loop.run import Run
from stint.loop.summaries import Summarizer, cut, exchanges_of
from stint.loop.transcript import Transcript

LONG = "x" * 3_000


def run_with_history(model: Any, *, threshold: int | None = 1_000, log: ListLog | None = None, **plan: Any) -> Run:
    """Return a run whose history and input have 1,500 tokens."""
    run = run_of(model, log=log)
    run.plan = replace(run.plan, compaction=CompactionRule(threshold), **plan)
    for message in (SystemText("Be kind."), UserInput(LONG), AssistantAnswer("Fine")):
        run.transcript.append_message(message)
    run.transcript.begin_run()
    run.transcript.append_message(UserInput(LONG))
    return run


async def play(run: Run) -> list[Any]:
    return [event async for event in run_loop(run)]


def shown(model: Script) -> list[str]:
    return [words_of(message) for message in model.requests[-1].messages]


async def test_a_summary_replaces_what_was_answered_and_is_stored_before_it_is_announced() -> None:
    model, log = script(said("They spoke."), said()), ListLog()
    run = run_with_history(model, log=log)

    async for event in run_loop(run):
        if isinstance(event, CompactionComplete):
            [record] = log.records
            assert record.compaction == event.compaction

    assert shown(model) == ["Be kind.", f"{SUMMARY}\nThey spoke.", LONG]


async def test_an_output_shield_blocks_the_summary_and_the_history_stays() -> None:
    model, log = script(said("A secret."), said()), ListLog()

    await play(run_with_history(model, log=log, output_shields=tuple(bind(says(BLOCK)))))

    assert [record.compaction for record in log.records if record.compaction] == []
    assert shown(model) == ["Be kind.", LONG, "Fine", LONG]


@pytest.mark.parametrize(
    "answer",
    [
        [ModelError("Busy.")],
        called("f"),
        [TextChunk("They"), Finished(FinishReason.budget)],
        [TextChunk(" "), Finished(FinishReason.stop)],
    ],
    ids=["error", "call", "budget", "blank"],
)
async def test_a_summary_that_fails_is_tried_once_in_a_run(answer: list[Any]) -> None:
    model = script(answer, called("f", "g"), said())
    run = run_with_history(model)

    await play(run)

    assert [len(request.messages) for request in model.requests] == [4, 4, 7]


async def test_a_history_that_is_a_small_part_of_the_input_is_not_compacted() -> None:
    model = script(said())
    run = run_with_history(model, threshold=10_000)
    run.transcript.messages[-1] = UserInput(LONG * 20)

    await play(run)

    assert len(model.requests) == 1


async def test_the_count_of_the_provider_corrects_the_estimate() -> None:
    run = run_with_history(script(), threshold=2_000)
    assert not run.compacts_first
    run.input_length.correct(2_001)

    assert run.compacts_first


async def test_a_history_that_is_almost_too_long_to_be_read_is_compacted() -> None:
    run = run_with_history(script(), threshold=None)
    assert not run.compacts_first
    run.history_is_full = True

    assert run.compacts_first


async def test_newest_messages_that_are_too_large_are_not_copied() -> None:
    model, log = script(said()), ListLog()
    run = run_with_history(model, log=log)
    run.transcript.messages[-1] = UserInput("y" * 2_000_001)

    await play(run)

    assert [record.compaction for record in log.records if record.compaction] == []


def test_results_keep_their_call_and_the_request_that_led_to_it() -> None:
    call = ToolCall(call_id="c", tool_name="f", arguments={})
    transcript = Transcript()
    for message in (UserInput("Old"), AssistantAnswer("Fine"), UserInput("New"), AssistantAnswer("", (call,))):
        transcript.append_message(message)
    transcript.begin_run_after_answer()
    transcript.append_message(ToolResult("c", "f", "sunny"))

    assert [words_of(message) for message in transcript.older_messages] == ["Old", "Fine", "New"]


async def test_a_conversation_that_is_too_long_is_summarized_in_parts() -> None:
    model = WindowModel(800)
    messages = [UserInput(f"fact: word{number}\n{LONG[:1_000]}") for number in range(9)]
    summarizer = Summarizer(model, "m", "", "nothing", run_of(model).deadline)

    summary = await summarizer.summarize(messages)

    assert summary.splitlines() == [f"fact: word{number}" for number in range(9)]
    assert summarizer.usage is not None
    assert summarizer.usage.output_tokens == 5 * len(model.summaries) > 5


async def test_one_message_that_is_too_long_is_cut_in_its_middle() -> None:
    model = WindowModel(800)
    text = f"fact: first\n{LONG * 5}\nfact: last"

    summary = await Summarizer(model, "m", "", "nothing", run_of(model).deadline).summarize([UserInput(text)])

    assert summary.splitlines() == ["fact: first", "fact: last"]


async def test_a_model_that_refuses_every_length_gets_few_requests() -> None:
    model = WindowModel(0)

    with pytest.raises(ContextLengthExceeded):
        await Summarizer(model, "m", "", "nothing", run_of(model).deadline).summarize([UserInput(LONG * 100)])

    assert model.refused < 20


async def test_a_budget_that_ends_a_summary_is_an_error() -> None:
    model = script([TextChunk("They"), Finished(FinishReason.budget)])

    with pytest.raises(QuotaExceeded):
        await Summarizer(model, "m", "", "nothing", run_of(model).deadline).summarize([UserInput("Hi")])


def test_an_answer_that_is_cut_loses_its_reasoning() -> None:
    encrypted = Reasoning(signature="g" * 5_000)
    messages = [
        AssistantAnswer("short", reasoning=encrypted),
        AssistantAnswer("whole", reasoning=Reasoning(text="why")),
    ]

    assert cut(messages, 1_000) == [AssistantAnswer("short"), messages[1]]


def test_short_messages_stay_whole_when_long_ones_are_cut() -> None:
    messages: list[ModelMessage] = [UserInput("short"), ToolResult("c", "f", LONG), AssistantAnswer(LONG)]

    first, *others = cut(messages, 1_005)

    assert first == messages[0]
    assert all(480 < len(words_of(message)) < 560 for message in others)


def test_results_stay_with_their_calls() -> None:
    call = ToolCall(call_id="c", tool_name="f", arguments={})
    answer, result = AssistantAnswer("", (call,)), ToolResult("c", "f", "sunny")

    assert exchanges_of([UserInput("Hi"), answer, result]) == [[UserInput("Hi")], [answer, result]]
