import asyncio

import pytest
from tests.script_model import called, deadline, said, script, until
from tests.services.conftest import MakeWorkerFixture
from tests.services.turn_fixture import keep_running
from tests.services.worker_fixture import MCP_TOOL, WorkerFixture

from stint.domain.errors import InvalidRequest, NotFound, StoreUnavailable
from stint.domain.inference import ToolResult
from stint.domain.openai.response_requests import CreateResponse
from stint.services.background.response_lease import WATCH_SECONDS
from stint.services.runs.run_handle import RequestContext


async def test_a_response_waits_in_the_queue_until_a_worker_takes_it_up(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    model = script([gate, *said("Hi")])
    worker_fixture = make_worker_fixture(model)

    response_id = await worker_fixture.create()
    waiting = await worker_fixture.get(response_id)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await model.opened.wait()
    running = await worker_fixture.get(response_id)
    gate.set()
    await working
    done = await worker_fixture.get(response_id)

    assert [task.response_id for task in worker_fixture.queue.tasks] == [response_id]
    assert [each.status for each in (waiting, running, done)] == ["queued", "in_progress", "completed"]
    assert waiting.background
    assert waiting.output == []
    assert done.usage is not None
    assert [item.type for item in done.output] == ["message"]


async def test_what_is_wrong_with_a_request_is_found_before_anything_is_stored(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script())
    keys = {"api_key": "secret"}
    request = CreateResponse.model_validate({"model": "test/m", "input": "Hi", "background": True})

    with pytest.raises(InvalidRequest, match="X-LlamaStack-Provider-Data"):
        await worker_fixture.services.background.create(request, RequestContext(deadline(30), provider_data=keys))
    with pytest.raises(InvalidRequest, match="nowhere"):
        await worker_fixture.create(model="nowhere")
    with pytest.raises(InvalidRequest, match="Previous response"):
        await worker_fixture.create(previous_response_id="resp_" + "0" * 32)

    assert worker_fixture.cloud.items(worker_fixture.tenant) == []
    assert worker_fixture.queue.tasks == worker_fixture.queue.delayed == []


async def test_of_a_response_that_the_queue_does_not_take_nothing_is_left(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script())
    worker_fixture.queue.refuses = True

    with pytest.raises(StoreUnavailable):
        await worker_fixture.create(stream=True)

    left = worker_fixture.cloud.items(worker_fixture.tenant)
    assert all("expires_at" in item for item in left)
    assert (await worker_fixture.services.stored_responses.list(None, 10, None, "desc")).data == []


async def test_a_model_that_fails_ends_the_response_and_nobody_tries_again(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([ValueError("a fault")], said()))
    response_id = await worker_fixture.create("fail: before", model="scripted/demo")

    stored = await worker_fixture.run(response_id)

    assert stored is not None
    response = await worker_fixture.get(response_id)
    assert response.error is not None
    assert (response.status, response.error.type) == ("failed", "model_error")
    assert worker_fixture.queue.kinds == [("stint", "Stint Response Failed")]


async def test_the_end_is_announced_with_its_ids_and_status(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script(said()))
    conversation = await worker_fixture.conversation()

    response_id = await worker_fixture.create(conversation=conversation)
    await worker_fixture.run(response_id)

    assert worker_fixture.queue.kinds == [("stint", "Stint Response Completed")]
    assert [end.model_dump(exclude={"usage"}) for end in worker_fixture.queue.ends] == [
        {"response_id": response_id, "conversation_id": conversation, "status": "completed"}
    ]


async def test_an_end_that_could_not_be_announced_is_announced_when_the_message_comes_again(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(said())
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create()
    worker_fixture.queue.refuses = True
    with pytest.raises(StoreUnavailable):
        await worker_fixture.run(response_id)
    worker_fixture.queue.refuses = False

    await worker_fixture.run(response_id)

    assert len(model.requests) == 1
    assert [end.status for end in worker_fixture.queue.ends] == ["completed"]


async def test_a_response_that_waits_is_cancelled_and_its_message_does_nothing(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(said())
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create()

    cancelled = await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    again = await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    await worker_fixture.run(response_id)

    assert cancelled.status == again.status == await worker_fixture.status(response_id) == "cancelled"
    assert model.requests == []
    assert [end.status for end in worker_fixture.queue.ends] == ["cancelled"]


async def test_a_response_that_runs_is_cancelled_at_the_next_look(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script([asyncio.Event()])
    worker_fixture = make_worker_fixture(model)
    conversation = await worker_fixture.conversation()
    response_id = await worker_fixture.create(conversation=conversation)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await model.opened.wait()

    cancelled = await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    stored = await working

    assert cancelled.status == "cancelled"
    assert stored is not None
    assert stored.status == "cancelled"
    assert WATCH_SECONDS <= 1
    assert model.closed == 1
    await worker_fixture.create(conversation=conversation)


async def test_a_response_that_has_ended_stays_as_it_is_when_it_is_cancelled(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(said("Hi")))
    done = await worker_fixture.finished()

    cancelled = await worker_fixture.services.response_requests.cancellation.cancel(done.id)

    assert cancelled == done


async def test_an_unknown_response_is_not_cancelled(make_worker_fixture: MakeWorkerFixture) -> None:
    with pytest.raises(NotFound):
        await make_worker_fixture(script()).services.response_requests.cancellation.cancel("resp_" + "0" * 32)


async def test_a_response_that_is_deleted_stops_and_leaves_nothing_but_seals(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script([asyncio.Event()])
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create(stream=True)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await model.opened.wait()

    await worker_fixture.services.stored_responses.delete(response_id)
    stored = await working

    assert stored is None
    assert model.closed == 1
    assert all("expires_at" in item for item in worker_fixture.cloud.items(worker_fixture.tenant))
    assert await worker_fixture.run(response_id) is None
    assert worker_fixture.queue.ends == []


async def test_tools_run_in_the_background_and_their_results_reach_the_model(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(called("buy"), said("Bought"))
    worker_fixture = make_worker_fixture(model)

    response = await worker_fixture.finished(tools=[MCP_TOOL])

    assert worker_fixture.fake_mcp.calls == ["buy"]
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert isinstance(model.requests[1].messages[-1], ToolResult)


async def test_a_response_whose_worker_has_no_time_left_fails_and_says_why(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([asyncio.Event()]))
    response_id = await worker_fixture.create()

    await worker_fixture.run(response_id, seconds=0.3)

    response = await worker_fixture.get(response_id)
    assert response.error is not None
    assert (response.status, response.error.code) == ("failed", "deadline_exceeded")
    assert "WorkerTimeoutSeconds" in response.error.message


async def test_a_plain_response_in_the_background_costs_four_write_units(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(said("Hi")))
    await worker_fixture.create()
    worker_fixture.cloud.forget()

    response_id = await worker_fixture.create()
    created = written(worker_fixture)
    await worker_fixture.run(response_id)

    assert created == 2  # header and list entry
    assert written(worker_fixture) - created == 2  # the lease, and the step with the ending


def written(worker_fixture: WorkerFixture) -> float:
    return sum(worker_fixture.cloud.units[name] for name in ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem"))


async def test_a_streamed_response_in_the_background_costs_a_write_for_each_batch_of_events(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(said("Hi")))
    worker_fixture.cloud.forget()

    response_id = await worker_fixture.create(stream=True)
    await worker_fixture.run(response_id)

    batches = [
        item for item in worker_fixture.cloud.items(worker_fixture.tenant) if item["sk"]["S"].startswith("stream:")
    ]
    assert len(batches) in (2, 3, 4)
    assert written(worker_fixture) <= 4 + 2 * len(batches)


async def test_messages_that_come_while_a_response_runs_are_consumed(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    model = script([gate, *said()])
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create()
    working = asyncio.create_task(worker_fixture.run(response_id, seconds=900))
    await until(lambda: model.requests)

    second = asyncio.create_task(worker_fixture.other_process(script()).run(response_id, seconds=900))
    await keep_running(
        second,
        lambda: worker_fixture.lease_end(response_id),
        worker_fixture.lease,
    )
    assert await second is None
    gate.set()
    await working

    assert await worker_fixture.status(response_id) == "completed"
