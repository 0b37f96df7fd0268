"""Responses whose worker died: nothing that was finished is done again, and nothing is told twice."""

import asyncio
import time
from typing import Any

import pytest
from tests.script_model import STOP, Part, called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.polling import poll_until
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture, text_of, types_of

from stint.caller import set_principal
from stint.domain.errors import StoreUnavailable
from stint.domain.inference import AssistantAnswer, Finished, FinishReason, TextChunk, ToolResult, Usage
from stint.domain.openai.mcp_items import McpCall
from stint.domain.principals import Principal
from stint.loop.transcript import SENT
from stint.services.background import response_lease, worker
from stint.services.background.response_lease import ResponseKeeper
from stint.services.background.worker import AttemptsExhausted
from stint.services.responses.recovery import exhausted


async def test_steps_that_are_stored_are_not_run_again(make_worker_fixture: MakeWorkerFixture) -> None:
    usage = Usage(input_tokens=5, output_tokens=3, total_tokens=8)
    asked = [*called("buy")[:-1], Finished(FinishReason.tool_calls, usage)]
    worker_fixture = make_worker_fixture(script(asked, [TextChunk("half "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL])
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "half ")
    successor = worker_fixture.other_process(script([TextChunk("whole"), Finished(FinishReason.stop, usage)]))

    await successor.run(response_id)

    response = await successor.get(response_id)
    assert (worker_fixture.fake_mcp.calls, successor.fake_mcp.calls) == (["buy"], [])
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert response.usage is not None
    assert response.usage.total_tokens == 16
    events = await successor.follow(response_id)
    assert text_of(events) == "half whole"
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [(item["type"], item.get("status")) for item in done] == [
        ("mcp_list_tools", None),
        ("mcp_call", "completed"),
        ("message", "incomplete"),
        ("message", "completed"),
    ]
    assert [item["id"] for item in done if item["id"] != done[2]["id"]] == [item.id for item in response.output]


async def test_calls_of_every_process_have_the_same_tier_and_labels(make_worker_fixture: MakeWorkerFixture) -> None:
    first, continuation = script(called("buy"), [TextChunk("half "), asyncio.Event()]), script(said("whole"))
    worker_fixture = make_worker_fixture(first)
    set_principal(Principal(worker_fixture.tenant, "ann", frozenset({"use"}), "k1"))
    fields: dict[str, Any] = {"safety_identifier": "bob", "background_options": {"completion_window": "8h"}}
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL], **fields)
    set_principal(None)
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "half ")
    successor = worker_fixture.other_process(continuation)

    await successor.run(response_id)

    calls = [*first.requests, *continuation.requests]
    assert len(calls) == 3
    assert {call.service_tier for call in calls} == {"flex"}
    [labels] = {call.labels for call in calls}
    assert [name for name, _ in labels] == ["tenant", "key_id", "user_hash"]
    assert dict(labels)["key_id"] == "k1"


async def test_an_answer_before_an_interruption_is_shown_with_the_tier_that_served_it(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    asked = [*called("buy")[:-1], Finished(FinishReason.tool_calls, service_tier="flex")]
    worker_fixture = make_worker_fixture(script(asked, [TextChunk("half "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL], service_tier="flex")
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "half ")
    shown = (await worker_fixture.get(response_id)).service_tier
    end = Finished(FinishReason.stop, service_tier="default")
    successor = worker_fixture.other_process(script([TextChunk("whole"), end]))

    await successor.run(response_id)

    assert (shown, (await successor.get(response_id)).service_tier) == ("flex", "default")


async def test_calls_of_the_last_answer_that_may_have_taken_effect_are_not_sent_again(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(called("buy", "sell")))
    worker_fixture.fake_mcp.gates["sell"] = asyncio.Event()
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL])
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 2)
    continuation = script(said("Both"))
    successor = worker_fixture.other_process(continuation)

    await successor.run(response_id)

    assert (worker_fixture.fake_mcp.calls, successor.fake_mcp.calls) == (["buy", "sell"], [])
    results = [each for each in continuation.requests[0].messages if isinstance(each, ToolResult)]
    assert [each.content for each in results] == ["buy is done", SENT]
    assert types_of(await successor.follow(response_id))[-1] == "completed"
    calls = [item for item in (await successor.get(response_id)).output if isinstance(item, McpCall)]
    assert [call.status for call in calls] == ["completed", "failed"]


async def test_repeatable_calls_without_a_result_run_first_with_their_keys(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    """They are those of the last answer."""
    model = script(called("buy", "look"))
    worker_fixture = make_worker_fixture(model)
    worker_fixture.fake_mcp.gates["look"] = asyncio.Event()
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL])
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 2)
    continuation = script(said("Both"))
    successor = worker_fixture.other_process(continuation)

    await successor.run(response_id)

    assert (worker_fixture.fake_mcp.calls, successor.fake_mcp.calls) == (["buy", "look"], ["look"])
    assert successor.fake_mcp.keys == worker_fixture.fake_mcp.keys[1:]
    results = [each for each in continuation.requests[0].messages if isinstance(each, ToolResult)]
    assert [each.content for each in results] == ["buy is done", "look is done"]
    events = await successor.follow(response_id)
    assert types_of(events)[-1] == "completed"
    assert (await successor.get(response_id)).output[-1].type == "message"


async def test_calls_that_the_tool_choice_forbids_are_not_run_by_a_successor(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(called("look", "sell")))
    choice = {"type": "mcp", "server_label": MCP_TOOL["server_label"], "name": "sell"}
    worker_fixture.fake_mcp.gates["sell"] = asyncio.Event()
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL], tool_choice=choice)
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 1)
    continuation = script(called("look"), said("Both"))
    successor = worker_fixture.other_process(continuation)

    await successor.run(response_id)

    assert (worker_fixture.fake_mcp.calls, successor.fake_mcp.calls) == (["sell"], ["look"])
    results = [each for each in continuation.requests[0].messages if isinstance(each, ToolResult)]
    assert "'look' did not run" in str(results[0].content)
    assert results[1].content == SENT
    assert continuation.requests[0].tool_choice == "auto"
    calls = [item.name for item in (await successor.get(response_id)).output if isinstance(item, McpCall)]
    assert calls == ["sell", "look"]


@pytest.mark.parametrize("slow", ["buy", "look"])
async def test_a_result_that_arrived_before_that_of_an_earlier_call_is_not_lost(
    make_worker_fixture: MakeWorkerFixture, slow: str
) -> None:
    worker_fixture = make_worker_fixture(script(called(slow, "sell")))
    worker_fixture.fake_mcp.gates[slow] = asyncio.Event()
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL])
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 2)
    continuation = script(said("Both"))
    successor = worker_fixture.other_process(continuation)

    await successor.run(response_id)

    again = ["look"] if slow == "look" else []
    assert (worker_fixture.fake_mcp.calls, successor.fake_mcp.calls) == ([slow, "sell"], again)
    results = [each for each in continuation.requests[0].messages if isinstance(each, ToolResult)]
    assert [each.content for each in results] == ["look is done" if again else SENT, "sell is done"]
    events = await successor.follow(response_id)
    done = [event["item"]["id"] for event in events if event["type"] == "response.output_item.done"]
    assert done == [item.id for item in (await successor.get(response_id)).output]
    calls = [item for item in (await successor.get(response_id)).output if isinstance(item, McpCall)]
    assert [call.name for call in calls] == [slow, "sell"]


@pytest.mark.parametrize("tool", ["buy", "look"])
async def test_approved_calls_that_may_have_taken_effect_are_not_sent_again(
    make_worker_fixture: MakeWorkerFixture, tool: str
) -> None:
    asking = {**MCP_TOOL, "require_approval": "always"}
    worker_fixture = make_worker_fixture(script(called(tool), [asyncio.Event()]))
    first = await worker_fixture.finished(tools=[asking])
    approval = {"type": "mcp_approval_response", "approval_request_id": first.output[-1].id, "approve": True}
    response_id = await worker_fixture.create([approval], previous_response_id=first.id, tools=[asking])  # type: ignore[arg-type]  # items in place of a text
    worker_fixture.fake_mcp.gates[tool] = asyncio.Event()
    async with worker_fixture.dying(response_id):
        await poll_until(lambda: has_called(worker_fixture))
    continuation = script(said("Bought"))
    successor = worker_fixture.other_process(continuation)

    await successor.run(response_id)

    assert successor.fake_mcp.calls == (["look"] if tool == "look" else [])
    [result] = [each for each in continuation.requests[0].messages if isinstance(each, ToolResult)]
    assert result.content == ("look is done" if tool == "look" else SENT)


async def test_approved_calls_that_were_not_sent_are_sent_by_the_next_attempt(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    asking = {**MCP_TOOL, "require_approval": "always"}
    worker_fixture = make_worker_fixture(script(called("buy"), [asyncio.Event()]))
    first = await worker_fixture.finished(tools=[asking])
    approval = {"type": "mcp_approval_response", "approval_request_id": first.output[-1].id, "approve": True}
    response_id = await worker_fixture.create([approval], previous_response_id=first.id, tools=[asking])  # type: ignore[arg-type]  # items in place of a text
    with worker_fixture.cloud.proxy.failing("PutItem", '"sent'), pytest.raises(StoreUnavailable):
        await worker_fixture.run(response_id)
    successor = worker_fixture.other_process(script(said("Bought")))

    await successor.run(response_id)

    assert (worker_fixture.fake_mcp.calls, successor.fake_mcp.calls) == ([], ["buy"])


async def has_called(worker_fixture: WorkerFixture) -> bool:
    return bool(worker_fixture.fake_mcp.calls)


async def test_a_pause_for_the_client_in_the_same_answer_still_comes(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script(called("buy", "ask_user")))
    worker_fixture.fake_mcp.gates["buy"] = asyncio.Event()
    response_id = await worker_fixture.create(tools=[MCP_TOOL, FUNCTION])
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 1)
    model = script()
    successor = worker_fixture.other_process(model)

    await successor.run(response_id)

    response = await successor.get(response_id)
    assert response.status == "completed"
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "function_call"]
    assert model.requests == []


async def test_calls_that_the_client_approved_are_run_once(make_worker_fixture: MakeWorkerFixture) -> None:
    asking = {**MCP_TOOL, "require_approval": "always"}
    worker_fixture = make_worker_fixture(script(called("buy"), [asyncio.Event()]))
    first = await worker_fixture.finished(tools=[asking])
    approval = {"type": "mcp_approval_response", "approval_request_id": first.output[-1].id, "approve": True}
    response_id = await worker_fixture.create([approval], previous_response_id=first.id, tools=[asking])  # type: ignore[arg-type]  # items in place of a text
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 1)
    successor = worker_fixture.other_process(script(said("Bought")))

    await successor.run(response_id)

    assert (worker_fixture.fake_mcp.calls, successor.fake_mcp.calls) == (["buy"], [])
    assert [item.type for item in (await successor.get(response_id)).output] == [
        "mcp_list_tools",
        "mcp_call",
        "message",
    ]


async def test_the_bounds_of_a_response_count_what_was_done_before(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script(called("buy"), [asyncio.Event()]))
    response_id = await worker_fixture.create(tools=[MCP_TOOL], max_tool_calls=1)
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 2)
    successor = worker_fixture.other_process(script(called("buy")))

    await successor.run(response_id)

    response = await successor.get(response_id)
    assert response.incomplete_details is not None
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_tool_calls")
    assert successor.fake_mcp.calls == []


async def test_what_was_stored_and_not_told_is_told_by_the_next_worker(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(called("buy", text="Let me see."), [asyncio.Event()])
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL])
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 2)
    successor = worker_fixture.other_process(script(said("Done")))

    await successor.run(response_id)

    events = await successor.follow(response_id)
    assert [item.type for item in (await successor.get(response_id)).output] == [
        "mcp_list_tools",
        "message",
        "mcp_call",
        "message",
    ]
    assert text_of(events) == "Let me see.Done"


async def test_a_response_survives_two_deaths(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script([TextChunk("one "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True)
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "one ")
    second = worker_fixture.other_process(script([TextChunk("two "), asyncio.Event()]))
    async with second.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "two ")
    successor = worker_fixture.other_process(script(said("three")))

    await successor.run(response_id)

    events = await successor.follow(response_id)
    assert text_of(events) == "one two three"
    message = (await successor.get(response_id)).output[0]
    assert message.id == [event["item"]["id"] for event in events if event["type"] == "response.output_item.done"][2]


async def test_whoever_reads_a_response_without_worker_queues_it_again_once(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([asyncio.Event()]))
    response_id = await worker_fixture.create()
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_until_leased(response_id)
    await worker_fixture.expire_lease(response_id)

    statuses = [await worker_fixture.status(response_id) for _ in range(3)]

    assert statuses == ["in_progress"] * 3
    assert [task.response_id for task in worker_fixture.queue.tasks] == [response_id] * 2


async def test_a_message_waits_for_the_lease_of_a_worker_that_died(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script([asyncio.Event()]))
    response_id = await worker_fixture.create()
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_until_leased(response_id)

    stored = await worker_fixture.other_process(script(said())).run(response_id)

    assert stored is not None
    assert stored.status == "completed"


async def test_after_three_attempts_a_response_has_failed_and_its_message_is_not_done(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    fault: list[Part] = [ValueError("a fault")]
    worker_fixture = make_worker_fixture(script(fault, fault, fault))
    response_id = await worker_fixture.create(stream=True)

    for _ in range(2):
        with pytest.raises(ValueError, match="a fault"):
            await worker_fixture.run(response_id)
    between = await worker_fixture.status(response_id)
    with pytest.raises(ValueError, match="a fault"):
        await worker_fixture.run(response_id)

    response = await worker_fixture.get(response_id)
    assert between == "in_progress"
    assert response.error is not None
    assert (response.status, response.error.code) == ("failed", "attempts_exhausted")
    assert types_of(await worker_fixture.follow(response_id))[-2:] == ["error", "failed"]
    with pytest.raises(AttemptsExhausted):
        await worker_fixture.run(response_id)
    assert {end.status for end in worker_fixture.queue.ends} == {"failed"}


async def test_workers_that_die_three_times_are_noticed_by_whoever_reads(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True)
    for _ in range(3):
        worker = worker_fixture.other_process(script([asyncio.Event()]))
        async with worker.dying(response_id):
            await worker_fixture.wait_until_leased(response_id)
        await worker_fixture.expire_lease(response_id)

    response = await worker_fixture.get(response_id)

    assert response.error is not None
    assert (response.status, response.error.code) == ("failed", "attempts_exhausted")
    with pytest.raises(AttemptsExhausted):
        await worker_fixture.run(response_id)


async def test_the_last_delivery_of_a_message_ends_the_response(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script([ValueError("a fault")]))
    response_id = await worker_fixture.create()

    with pytest.raises(ValueError, match="a fault"):
        await worker_fixture.run(response_id, last=True)

    assert await worker_fixture.status(response_id) == "failed"


async def test_a_worker_whose_response_another_one_has_exhausted_meanwhile_keeps_its_message(
    make_worker_fixture: MakeWorkerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker_fixture = make_worker_fixture(script([asyncio.Event()]))
    response_id = await worker_fixture.create()
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_until_leased(response_id)
    successor = worker_fixture.other_process(script())

    async def keep_response(*arguments: Any) -> ResponseKeeper | None:
        keeper = await response_lease.keep_response(*arguments)
        await worker_fixture.worker.end_response(response_id, exhausted)
        return keeper

    monkeypatch.setattr(worker, "keep_response", keep_response)

    with pytest.raises(AttemptsExhausted):
        await successor.run(response_id)

    assert [end.status for end in worker_fixture.queue.ends] == ["failed"]


async def test_the_last_delivery_ends_a_response_that_nobody_could_even_take_up(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script())
    response_id = await worker_fixture.create()

    with worker_fixture.cloud.proxy.failing("UpdateItem"), pytest.raises(StoreUnavailable):
        await worker_fixture.run(response_id, last=True)

    assert await worker_fixture.status(response_id) == "failed"


async def test_an_attempt_that_the_store_fails_may_follow_at_once(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    model = script([gate, *said("lost")])
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create()
    working = asyncio.create_task(worker_fixture.run(response_id))
    await model.opened.wait()

    gate.set()
    with worker_fixture.cloud.proxy.failing("PutItem"), pytest.raises(StoreUnavailable):
        await working

    assert await worker_fixture.status(response_id) == "in_progress"
    assert len(worker_fixture.queue.tasks) == 2
    stored = await worker_fixture.other_process(script(said("kept"))).run(response_id)
    assert stored is not None
    assert stored.status == "completed"


async def test_what_a_worker_writes_after_it_was_overtaken_is_refused(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    slow = script([TextChunk("slow"), gate, STOP])
    worker_fixture = make_worker_fixture(slow)
    response_id = await worker_fixture.create(stream=True)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await slow.opened.wait()
    lease = (await worker_fixture.store.response_leases.get_state(worker_fixture.tenant, response_id)).lease_id
    overtaken = worker_fixture.other_process(script(said("fast")))
    await asyncio.to_thread(expire, worker_fixture, response_id)

    winner = await overtaken.run(response_id)
    gate.set()
    loser = await working

    assert lease is not None
    assert winner is not None
    assert loser is None or loser.status == "completed"
    response = await worker_fixture.get(response_id)
    assert "fast" in response.model_dump_json()
    await worker_fixture.follow(response_id)


async def test_an_overtaken_worker_adds_no_event_after_its_successor_read_the_stream(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    late, early = asyncio.Event(), asyncio.Event()
    slow, fast = script([late, TextChunk("slow"), asyncio.Event()]), script([early, *said("fast")])
    worker_fixture = make_worker_fixture(slow)
    response_id = await worker_fixture.create(stream=True)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await slow.opened.wait()
    successor = worker_fixture.other_process(fast)
    await asyncio.to_thread(expire, worker_fixture, response_id)

    winning = asyncio.create_task(successor.run(response_id))
    await fast.opened.wait()
    late.set()
    await asyncio.wait({working})
    early.set()
    winner = await winning

    assert winner is not None
    assert winner.status == "completed"
    assert text_of(await worker_fixture.follow(response_id)) == "fast"


def expire(worker_fixture: WorkerFixture, response_id: str) -> None:
    """Let the lease of a worker that lives run out, as one does whose process is stopped for a while."""
    from stint.store import keys

    key = keys.response_lease(worker_fixture.tenant, response_id)
    worker_fixture.cloud.dynamodb.update_item(
        TableName=worker_fixture.cloud.table_name,
        Key={name: {"S": value} for name, value in key._asdict().items()},
        UpdateExpression="SET lease_until = :past, lease_id = :other",
        ExpressionAttributeValues={":past": {"N": str(round(time.time() * 1000) - 1)}, ":other": {"S": "other"}},
    )


async def test_an_answer_in_the_log_reaches_the_model_as_it_was_said(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script(called("buy", text="Let me see."), [asyncio.Event()]))
    response_id = await worker_fixture.create("Please", tools=[MCP_TOOL])
    async with worker_fixture.dying(response_id):
        await worker_fixture.until_stored(response_id, 2)
    model = script(said("Done"))

    await worker_fixture.other_process(model).run(response_id)

    said_before = [each for each in model.requests[0].messages if isinstance(each, AssistantAnswer)]
    assert [(each.text, len(each.tool_calls)) for each in said_before] == [("Let me see.", 1)]
