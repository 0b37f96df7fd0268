import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import CLOCK
from tests.script_model import CALLED, ListLog, Part, Script, called, collect, run_of, said, script, shape, until

from stint.domain.errors import DeadlineExceeded, ModelError, StintError
from stint.domain.inference import (
    AssistantAnswer,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    Usage,
)
from stint.domain.run_events import RunEnded, StepComplete
from stint.domain.run_outcome import RunStatus
from stint.domain.steps import InferenceStep, Step, ToolExecutionStep
from stint.loop.agent_loop import run_loop


async def test_plain_text_is_one_inference() -> None:
    run = run_of(script([TextChunk("Hel"), TextChunk(""), TextChunk("lo"), Finished(FinishReason.stop)]), log=ListLog())

    events = await collect(run_loop(run))

    assert shape(events) == ["start inference", "text Hel", "text lo", "complete inference", "ended completed"]


async def test_an_empty_answer_completes_the_turn() -> None:
    log = ListLog()

    events = await collect(run_loop(run_of(script([Finished(FinishReason.stop)]), log=log)))

    assert shape(events) == ["start inference", "complete inference", "ended completed"]
    [record] = log.records
    assert isinstance(record.step, InferenceStep)
    assert record.step.model_response.content == ""
    assert record.ending is not None
    assert record.ending.status is RunStatus.completed


async def test_text_beside_client_calls_is_kept_and_the_calls_are_awaited() -> None:
    log = ListLog()
    model = script(called("add", "sub", text="Let me see."))

    events = await collect(run_loop(run_of(model, tools=("add", "sub"), log=log)))

    assert shape(events) == [
        "start inference",
        "text Let me see.",
        "call succeeded",
        "call succeeded",
        "complete inference",
        "ended awaiting_input",
    ]
    [record] = log.records
    assert isinstance(record.step, InferenceStep)
    assert record.step.model_response.content == "Let me see."
    assert [call.call_id for call in record.step.model_response.tool_calls] == ["c0", "c1"]


@pytest.mark.parametrize(
    "refused", [ToolCallChunk(1, "c1", "nosuch", "{}"), ToolCallChunk(1, "c1", "add", '{"a": ')], ids=["tool", "json"]
)
async def test_a_call_nobody_can_run_beside_a_client_call_is_answered_before_the_pause(refused: ToolCallChunk) -> None:
    log = ListLog()
    model = script([ToolCallChunk(0, "c0", "add", "{}"), refused, CALLED])

    events = await collect(run_loop(run_of(model, tools=("add",), log=log)))

    assert [word for word in shape(events) if not word.startswith("call")] == [
        "start inference",
        "complete inference",
        "start tool_execution",
        "complete tool_execution",
        "ended awaiting_input",
    ]
    first, last = log.records
    assert first.ending is None
    assert isinstance(last.step, ToolExecutionStep)
    assert [response.call_id for response in last.step.tool_responses] == ["c1"]
    assert last.ending is not None
    assert last.ending.status is RunStatus.awaiting_input


async def test_the_model_goes_on_when_only_the_server_has_answers() -> None:
    model = script(called("nosuch", "other"), said("I see."))

    events = await collect(run_loop(run_of(model, tools=("add",))))

    assert shape(events) == [
        "start inference",
        "call succeeded",
        "call succeeded",
        "complete inference",
        *["start tool_execution", "call in_progress", "complete tool_execution"] * 2,
        "start inference",
        "text I see.",
        "complete inference",
        "ended completed",
    ]
    answer, *results = model.requests[1].messages
    assert isinstance(answer, AssistantAnswer)
    assert [result.call_id for result in results if isinstance(result, ToolResult)] == ["c0", "c1"]


async def test_step_ids_are_unique() -> None:
    events = await collect(run_loop(run_of(script(called("x", "y"), called("x"), said()))))

    ids = [event.step_id for event in events if isinstance(event, StepComplete)]
    assert len(ids) == len(set(ids)) == 6


async def test_exhausted_iterations_complete_the_turn() -> None:
    log = ListLog()

    events = await collect(run_loop(run_of(script(called("x"), called("x")), iters=2, log=log)))

    assert shape(events)[-2:] == ["complete inference", "ended completed"]
    assert log.records[-1].ending is not None
    assert log.records[-1].ending.status is RunStatus.completed


@pytest.mark.parametrize("name", ["add", "nosuch"])
async def test_calls_of_an_answer_cut_by_length_are_neither_run_nor_awaited(name: str) -> None:
    log = ListLog()
    model = script([TextChunk("So"), ToolCallChunk(0, "c0", name, '{"a"'), Finished(FinishReason.length)])

    events = await collect(run_loop(run_of(model, tools=("add",), log=log)))

    assert shape(events)[-2:] == ["complete inference", "ended completed"]
    [record] = log.records
    assert isinstance(record.step, InferenceStep)
    assert record.step.model_response.stop_reason == "out_of_tokens"


async def test_usage_is_summed_over_the_calls_of_a_run() -> None:
    usage = Usage(input_tokens=2, output_tokens=3, total_tokens=5)
    log = ListLog()
    model = script(
        [ToolCallChunk(0, "c0", "x", "{}"), Finished(FinishReason.tool_calls, usage)],
        [Finished(FinishReason.stop, usage)],
    )

    await collect(run_loop(run_of(model, log=log)))

    assert log.records[-1].ending is not None
    assert log.records[-1].ending.usage == Usage(input_tokens=4, output_tokens=6, total_tokens=10)


@pytest.mark.parametrize("before", [[], [TextChunk("Hel")]], ids=["before the first chunk", "after it"])
async def test_a_failing_model_ends_the_run_and_is_closed(before: list[Part]) -> None:
    model = script([*before, ModelError("no")])
    seen: list[Any] = []

    with pytest.raises(ModelError):
        await collect(run_loop(run_of(model)), into=seen)

    assert shape(seen) == ["start inference", *(["text Hel"] if before else [])]
    assert model.closed == 1


async def test_an_answer_without_an_end_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="is incomplete"):
        await collect(run_loop(run_of(script([TextChunk("Hel")]))))


async def test_the_deadline_ends_an_inference_and_keeps_the_steps_before_it() -> None:
    model, log = script(called("nosuch"), [TextChunk("I"), asyncio.Event()]), ListLog()

    running = asyncio.create_task(collect(run_loop(run_of(model, seconds=60, log=log))))
    await until(lambda: len(model.requests) == 2)
    CLOCK.move(60)

    with pytest.raises(DeadlineExceeded):
        await running
    assert [record.step.step_type for record in log.records if record.step] == ["inference", "tool_execution"]
    assert model.closed == 2


async def test_the_deadline_ends_a_model_that_never_pauses() -> None:
    class Endless(Script):
        async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
            while True:
                yield TextChunk("on ")

    with pytest.raises(DeadlineExceeded):
        await collect(run_loop(run_of(Endless([]), seconds=0.05)))


async def test_a_run_that_is_given_up_closes_the_model() -> None:
    model = script([TextChunk("I"), asyncio.Event()])

    async with aclosing(run_loop(run_of(model))) as events:
        assert shape([await anext(events), await anext(events)]) == ["start inference", "text I"]

    assert model.closed == 1


chunks = st.one_of(
    st.builds(TextChunk, st.text(max_size=3)),
    st.builds(
        ToolCallChunk,
        st.integers(0, 2),
        st.sampled_from(["", "c0", "c1"]),
        st.sampled_from(["", "add", "nosuch"]),
        st.sampled_from(["", "{}", "[1]", '{"a": 1', '{"a": NaN}', "[" * 150]),
    ),
)
ends = st.one_of(
    st.builds(Finished, st.sampled_from(FinishReason), st.sampled_from([None, Usage(total_tokens=1)])),
    st.sampled_from([ModelError("no"), None]),
)
answers = st.builds(lambda body, end: [*body, *([end] if end else [])], st.lists(chunks, max_size=6), ends)


@given(st.lists(answers, min_size=3, max_size=3))
async def test_every_run_stores_before_it_announces_and_ends_once(played: list[list[Part]]) -> None:
    log = ListLog()
    run = run_of(script(*played), tools=("add",), iters=3, log=log)
    ends: list[RunStatus] = []
    announced: list[Step] = []

    try:
        async for event in run_loop(run):
            assert not ends
            if isinstance(event, StepComplete):
                announced.append(event.step_details)
                assert announced == [record.step for record in log.records]
            if isinstance(event, RunEnded):
                ends.append(event.status)
    except StintError:
        ends.append(RunStatus.failed)

    assert len(ends) == 1
    assert all(record.ending is None for record in log.records[:-1])
    stored = log.records[-1].ending if log.records else None
    assert (stored.status if stored else RunStatus.failed) == ends[0]
    assert len({step.step_id for step in announced}) == len(announced)
