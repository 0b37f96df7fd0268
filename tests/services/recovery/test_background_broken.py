"""Responses in the background that fail or are cancelled: they show what their streams have shown."""

import asyncio
import json
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import STOP, Part, called, said, script, until, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture, text_of, types_of

from stint.domain.errors import DeadlineExceeded, ModelError
from stint.domain.inference import (
    Finished,
    FinishReason,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    Usage,
)
from stint.domain.openai.item_events import OutputTextDelta
from stint.domain.openai.response_resource import Response
from stint.services.responses.recovery import Recovery

USAGE = Usage(input_tokens=5, output_tokens=3, total_tokens=8)
BOUGHT: list[Part] = [*called("buy")[:-1], Finished(FinishReason.tool_calls, USAGE)]


async def seen(worker_fixture: WorkerFixture, response_id: str) -> Response:
    """Read a response that has ended; its stream, held against the grammar, ends with the same."""
    response = await worker_fixture.get(response_id)
    events = await worker_fixture.follow(response_id)
    assert events[-1]["response"] == response.model_dump(mode="json")
    assert "error" not in types_of(events)[:-2]
    return response


def shown(response: Response) -> list[tuple[str, str | None]]:
    """The types of a response's items but the list of tools, each with its status."""
    items = [item for item in response.output if item.type != "mcp_list_tools"]
    return [(item.type, getattr(item, "status", None)) for item in items]


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ([TextChunk("Half an "), TextChunk("answer")], [("message", "incomplete")]),
        ([RefusalChunk("I will not")], [("message", "incomplete")]),
        ([ReasoningChunk("Hm "), ReasoningChunk("hm")], [("reasoning", "incomplete")]),
        ([ReasoningChunk("Hm"), TextChunk("Half")], [("reasoning", None), ("message", "incomplete")]),
        ([TextChunk("I look."), ToolCallChunk(0, "c9", "buy", '{"a')], [("message", "incomplete")]),
        ([ToolCallChunk(0, "c9", "ask_user", '{"a')], []),
        ([], []),
    ],
)
@pytest.mark.parametrize("error", [ModelError("Busy."), DeadlineExceeded("Over.")])
async def test_what_had_come_of_an_answer_that_failed_is_shown_as_incomplete(
    make_worker_fixture: MakeWorkerFixture, streamed: bool, broken: list[Part], expected: list[Any], error: Exception
) -> None:
    worker_fixture = make_worker_fixture(script(BOUGHT, [*broken, error]))
    response_id = await worker_fixture.create(stream=streamed, tools=[MCP_TOOL, FUNCTION])

    await worker_fixture.run(response_id)

    response = await seen(worker_fixture, response_id)
    assert response.status == "failed"
    assert shown(response) == [("mcp_call", "completed"), *expected]
    assert response.usage is not None
    assert response.usage.total_tokens == 8


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_response_that_is_cancelled_while_its_tools_run_shows_their_calls(
    make_worker_fixture: MakeWorkerFixture, streamed: bool
) -> None:
    worker_fixture = make_worker_fixture(script(called("ask_user", "buy", "ask_user", "sell")))
    worker_fixture.fake_mcp.gates["sell"] = asyncio.Event()
    response_id = await worker_fixture.create(stream=streamed, tools=[MCP_TOOL, FUNCTION])
    working = asyncio.create_task(worker_fixture.run(response_id))
    await worker_fixture.until_stored(response_id, 2)
    assert len((await worker_fixture.stored(response_id)).records) == 2

    cancelled = await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    await working

    assert cancelled == await seen(worker_fixture, response_id)
    assert shown(cancelled) == [
        ("function_call", "completed"),
        ("mcp_call", "completed"),
        ("function_call", "completed"),
        ("mcp_call", "incomplete"),
    ]


async def test_a_cancelled_answer_keeps_what_was_told_of_it_and_nothing_is_told_after(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    gate = asyncio.Event()
    worker_fixture = make_worker_fixture(script(BOUGHT, [TextChunk("Half "), gate, TextChunk("more"), STOP]))
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL])
    working = asyncio.create_task(worker_fixture.run(response_id))
    await worker_fixture.wait_for_stored_events(response_id, "Half ")

    cancelled = await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    gate.set()
    await working

    assert cancelled == await seen(worker_fixture, response_id)
    assert shown(cancelled) == [("mcp_call", "completed"), ("message", "incomplete")]
    assert text_of(await worker_fixture.follow(response_id)) == "Half "
    assert cancelled.usage is not None
    assert cancelled.usage.total_tokens == 8


async def test_words_that_a_worker_stores_while_its_response_is_cancelled_are_shown(
    make_worker_fixture: MakeWorkerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker_fixture = make_worker_fixture(script([TextChunk("Half "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True)
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "Half ")
    read, late = Recovery.read_stream, iter(("more ", "and more"))

    async def read_while_it_is_written(self: Recovery, *args: Any, **fields: Any) -> list[str]:
        texts = await read(self, *args, **fields)
        if (words := next(late, None)) is not None:
            [item] = [event["item"]["id"] for event in map(json.loads, texts) if "item" in event]
            delta = OutputTextDelta(output_index=0, item_id=item, content_index=0, delta=words)
            delta.sequence_number = len(texts)
            await worker_fixture.store.background.put_events(
                worker_fixture.tenant, response_id, len(texts), [delta.model_dump_json()]
            )
        return texts

    monkeypatch.setattr(Recovery, "read_stream", read_while_it_is_written)
    cancelled = await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    monkeypatch.undo()

    assert cancelled == await seen(worker_fixture, response_id)
    assert cancelled.output[0].model_dump()["content"][0]["text"] == "Half more and more"


async def test_a_response_that_fails_after_a_worker_died_shows_what_both_had_told(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(BOUGHT, [ReasoningChunk("Hm"), TextChunk("one "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL, FUNCTION])
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "one ")
    successor = worker_fixture.other_process(script(called("sell", "ask_user")))
    successor.fake_mcp.gates["sell"] = asyncio.Event()
    running = asyncio.create_task(successor.run(response_id, seconds=20))
    await until(lambda: successor.fake_mcp.calls)

    CLOCK.move(20)
    await running

    response = await seen(worker_fixture, response_id)
    assert shown(response) == [
        ("mcp_call", "completed"),
        ("reasoning", None),
        ("message", "incomplete"),
        ("mcp_call", "incomplete"),
        ("function_call", "completed"),
    ]


async def test_a_response_that_no_attempt_ended_shows_what_all_had_told(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script(BOUGHT, [TextChunk("one "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL])
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "one ")
    second = worker_fixture.other_process(script([TextChunk("two "), asyncio.Event()]))
    async with second.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "two ")
    third = worker_fixture.other_process(script(called("sell")))
    third.fake_mcp.gates["sell"] = asyncio.Event()
    async with third.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "mcp_call.in_progress", times=2)

    response = await seen(worker_fixture, response_id)

    assert response.error is not None
    assert (response.status, response.error.code) == ("failed", "attempts_exhausted")
    broken = [("message", "incomplete")] * 2
    assert shown(response) == [("mcp_call", "completed"), *broken, ("mcp_call", "incomplete")]


async def test_what_was_told_of_an_approved_call_is_shown_when_it_does_not_end(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    asking = {**MCP_TOOL, "require_approval": "always"}
    worker_fixture = make_worker_fixture(script(called("buy")))
    worker_fixture.fake_mcp.gates["buy"] = asyncio.Event()
    first = await worker_fixture.finished(tools=[asking])
    approval = {"type": "mcp_approval_response", "approval_request_id": first.output[-1].id, "approve": True}
    fields = {"previous_response_id": first.id, "tools": [asking], "stream": True}
    response_id = await worker_fixture.create([approval], **fields)  # type: ignore[arg-type]  # items in place of a text
    working = asyncio.create_task(worker_fixture.run(response_id))
    await worker_fixture.wait_for_stored_events(response_id, "mcp_call.in_progress")

    cancelled = await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    await working

    assert cancelled == await seen(worker_fixture, response_id)
    [call] = [item for item in cancelled.output if item.type == "mcp_call"]
    assert (call.status, call.arguments, call.approval_request_id) == ("incomplete", "{}", first.output[-1].id)


async def test_no_model_call_that_follows_knows_an_answer_that_broke_off(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    broken: list[Part] = [ReasoningChunk("Hm"), TextChunk("Half"), ModelError("Busy.")]
    model = script(called("buy", text="I look."), broken, said())
    worker_fixture = make_worker_fixture(model)
    failed = await worker_fixture.finished("Buy it", tools=[MCP_TOOL])

    second = await worker_fixture.finished("Go on", previous_response_id=failed.id)
    listed = await worker_fixture.services.stored_responses.input_items(second.id, None, None, 20, "asc")

    assert [words_of(message) for message in model.requests[2].messages] == [
        "Buy it",
        "I look.",
        "buy is done",
        "Go on",
    ]
    assert isinstance(model.requests[2].messages[2], ToolResult)
    kinds = [item.type for item in listed.data]
    assert kinds == ["message", "mcp_list_tools", "message", "mcp_call", "message"]
