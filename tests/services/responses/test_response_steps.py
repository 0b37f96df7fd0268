"""The steps of a response, with their times."""

import asyncio

import pytest
from tests.script_model import CALLED, STOP, Part, called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.polling import poll_until
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL

from stint.domain.errors import ModelError, NotFound
from stint.domain.inference import Finished, FinishReason, TextChunk, ToolCallChunk, Usage
from stint.domain.openai.response_steps import ResponseStep
from stint.domain.steps import StepUsage

COMPACTING = [{"type": "compaction", "compact_threshold": 1000}]


async def steps(responder: Responder, response_id: str) -> list[ResponseStep]:
    return (await responder.worker_fixture.services.stored_responses.steps(response_id)).data


def shape(found: list[ResponseStep]) -> list[tuple[str, int]]:
    """Return the kind of each step, and the number of its items."""
    return [(step.type, len(step.item_ids)) for step in found]


async def test_steps_are_model_calls_and_tool_calls_with_times_and_items(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script(called("buy", text="One moment."), said())))

    answered = await responder.respond(tools=[MCP_TOOL])

    found = await steps(responder, answered.response.id)
    assert shape(found) == [("model_call", 1), ("tool_call", 1), ("model_call", 1)]
    assert [item for step in found for item in step.item_ids] == [item.id for item in answered.response.output][1:]
    assert [step.first_token_ms is None for step in found] == [False, True, False]
    assert (found[1].tool_name, found[1].call_id) == ("buy", "c0")
    times = [time for step in found for time in (step.started_at, step.completed_at)]
    assert None not in times
    assert times == sorted(times, key=lambda time: time.timestamp() if time else 0)


async def test_the_error_of_a_tool_is_in_words(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(called("nosuch"), said())))

    answered = await responder.respond(tools=[MCP_TOOL])

    [_, tool_call, _] = await steps(responder, answered.response.id)
    assert tool_call.error is not None
    assert tool_call.error.startswith("There is no tool named 'nosuch'.")


async def test_a_running_response_has_the_steps_so_far(make_worker_fixture: MakeWorkerFixture) -> None:
    waiting = asyncio.Event()
    responder = Responder(make_worker_fixture(script(called("buy"), [TextChunk("Hi"), waiting, STOP])))
    run = await responder.start(tools=[MCP_TOOL])
    playing = asyncio.create_task(responder.play(run))

    async def has_both() -> bool:
        return len(run.log.response.records) == 2

    await poll_until(has_both)

    found = await steps(responder, run.response_id)

    assert shape(found) == [("model_call", 0), ("tool_call", 1)]
    waiting.set()
    await playing


async def test_the_step_in_which_a_response_failed_has_its_error(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"), [TextChunk("Hi"), ModelError("Broken.")])))

    answered = await responder.respond(tools=[MCP_TOOL])

    last = (await steps(responder, answered.response.id))[-1]
    assert (last.type, last.completed_at, last.error) == ("model_call", None, "Broken.")


async def test_a_compaction_is_a_step_with_times(make_worker_fixture: MakeWorkerFixture) -> None:
    calls: list[Part] = [ToolCallChunk(0, "c0", "buy", "{}"), CALLED]
    responder = Responder(make_worker_fixture(script(said("x" * 8000), said("summary"), calls, said())))
    first = await responder.respond("y" * 8000)

    answered = await responder.respond(
        previous_response_id=first.response.id, tools=[MCP_TOOL], context_management=COMPACTING
    )

    found = await steps(responder, answered.response.id)
    [compaction] = [step for step in found if step.type == "compaction"]
    assert compaction.completed_at is not None
    assert compaction.started_at.timestamp() - 0.001 <= compaction.completed_at.timestamp()
    assert len(compaction.item_ids) == 1


async def test_an_unknown_response_has_no_steps(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said())))

    with pytest.raises(NotFound):
        await steps(responder, "resp_01990000000570008000000000000010")


async def test_model_calls_have_their_tokens(make_worker_fixture: MakeWorkerFixture) -> None:
    used = Usage(input_tokens=100, output_tokens=20, total_tokens=120, reasoning_tokens=5)
    model = script(called("buy"), [TextChunk("Hi"), Finished(FinishReason.stop, used)])
    responder = Responder(make_worker_fixture(model))

    answered = await responder.respond(tools=[MCP_TOOL])

    found = await steps(responder, answered.response.id)
    counted = StepUsage(input_tokens=100, output_tokens=20, reasoning_tokens=5)
    assert [step.usage for step in found] == [None, None, counted]


async def test_a_background_response_that_failed_has_the_steps_that_were_run_and_the_one_in_which_it_failed(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(called("buy"), [TextChunk("Hi"), ModelError("Broken.")])
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create(tools=[MCP_TOOL])

    await worker_fixture.run(response_id)

    found = await steps(Responder(worker_fixture), response_id)
    assert [(step.type, step.completed_at is None, step.error) for step in found] == [
        ("model_call", False, None),
        ("tool_call", False, None),
        ("model_call", True, "Broken."),
    ]


async def test_a_background_response_that_was_cancelled_has_the_steps_that_were_run(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    waiting = asyncio.Event()
    model = script(called("buy"), [TextChunk("Hi"), waiting, STOP])
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create(tools=[MCP_TOOL])
    working = asyncio.create_task(worker_fixture.run(response_id))

    async def has_both() -> bool:
        return len((await worker_fixture.stored(response_id)).records) == 2

    await poll_until(has_both)
    await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    waiting.set()
    await working

    found = await steps(Responder(worker_fixture), response_id)
    assert [(step.type, step.completed_at is None) for step in found] == [
        ("model_call", False),
        ("tool_call", False),
    ]
