import asyncio

import pytest
from tests.services.conftest import MakeWorkerFixture
from tests.services.turn_fixture import called, deadline, keep_running, said, script, until
from tests.services.worker_fixture import MCP_TOOL, WorkerFixture

from stint.domain.errors import InvalidRequest, NotFound, StoreUnavailable
from stint.domain.inference import ToolResult
from stint.domain.openai.response_requests import CreateResponse
from stint.services.background.response_lease import WATCH_SECONDS


async def test_a_response_waits_in_the_queue_until_a_worker_takes_it_up(make_office: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    model = script([gate, *said("Hi")])
    office = make_office(model)

    response_id = await office.create()
    waiting = await office.get(response_id)
    working = asyncio.create_task(office.run(response_id))
    await model.opened.wait()
    running = await office.get(response_id)
    gate.set()
    await working
    done = await office.get(response_id)

    assert [task.response_id for task in office.desk.tasks] == [response_id]
    assert [each.status for each in (waiting, running, done)] == ["queued", "in_progress", "completed"]
    assert waiting.background
    assert waiting.output == []
    assert done.usage is not None
    assert [item.type for item in done.output] == ["message"]


async def test_what_is_wrong_with_a_request_is_found_before_anything_is_stored(make_office: MakeWorkerFixture) -> None:
    office = make_office(script())
    keys = {"api_key": "secret"}
    request = CreateResponse.model_validate({"model": "test/m", "input": "Hi", "background": True})

    with pytest.raises(InvalidRequest, match="X-LlamaStack-Provider-Data"):
        await office.services.background.create(request, deadline(30), keys)
    with pytest.raises(InvalidRequest, match="nowhere"):
        await office.create(model="nowhere")
    with pytest.raises(InvalidRequest, match="Previous response"):
        await office.create(previous_response_id="resp_" + "0" * 32)

    assert office.cloud.items(office.tenant) == []
    assert office.desk.tasks == []


async def test_of_a_response_that_the_queue_does_not_take_nothing_is_left(make_office: MakeWorkerFixture) -> None:
    office = make_office(script())
    office.desk.refuses = True

    with pytest.raises(StoreUnavailable):
        await office.create(stream=True)

    left = office.cloud.items(office.tenant)
    assert all("expires_at" in item for item in left)
    assert (await office.services.stored_responses.list(None, 10, None, "desc")).data == []


async def test_a_model_that_fails_ends_the_response_and_nobody_tries_again(make_office: MakeWorkerFixture) -> None:
    office = make_office(script([ValueError("a fault")], said()))
    response_id = await office.create("fail: before", model="scripted/demo")

    stored = await office.run(response_id)

    assert stored is not None
    response = await office.get(response_id)
    assert response.error is not None
    assert (response.status, response.error.type) == ("failed", "model_error")
    assert office.desk.kinds == [("stint", "Stint Response Failed")]


async def test_the_end_is_announced_with_its_ids_and_status(make_office: MakeWorkerFixture) -> None:
    office = make_office(script(said()))
    conversation = await office.conversation()

    response_id = await office.create(conversation=conversation)
    await office.run(response_id)

    assert office.desk.kinds == [("stint", "Stint Response Completed")]
    assert [end.model_dump(exclude={"usage"}) for end in office.desk.ends] == [
        {"response_id": response_id, "conversation_id": conversation, "status": "completed"}
    ]


async def test_an_end_that_could_not_be_announced_is_announced_when_the_message_comes_again(
    make_office: MakeWorkerFixture,
) -> None:
    model = script(said())
    office = make_office(model)
    response_id = await office.create()
    office.desk.refuses = True
    with pytest.raises(StoreUnavailable):
        await office.run(response_id)
    office.desk.refuses = False

    await office.run(response_id)

    assert len(model.requests) == 1
    assert [end.status for end in office.desk.ends] == ["completed"]


async def test_a_response_that_waits_is_cancelled_and_its_message_does_nothing(make_office: MakeWorkerFixture) -> None:
    model = script(said())
    office = make_office(model)
    response_id = await office.create()

    cancelled = await office.services.background.cancel(response_id)
    again = await office.services.background.cancel(response_id)
    await office.run(response_id)

    assert cancelled.status == again.status == await office.status(response_id) == "cancelled"
    assert model.requests == []
    assert [end.status for end in office.desk.ends] == ["cancelled"]


async def test_a_response_that_runs_is_cancelled_at_the_next_look(make_office: MakeWorkerFixture) -> None:
    model = script([asyncio.Event()])
    office = make_office(model)
    conversation = await office.conversation()
    response_id = await office.create(conversation=conversation)
    working = asyncio.create_task(office.run(response_id))
    await model.opened.wait()

    cancelled = await office.services.background.cancel(response_id)
    stored = await working

    assert cancelled.status == "cancelled"
    assert stored is not None
    assert stored.status == "cancelled"
    assert WATCH_SECONDS <= 1
    assert model.closed == 1
    await office.create(conversation=conversation)


async def test_a_response_that_has_ended_stays_as_it_is_when_it_is_cancelled(make_office: MakeWorkerFixture) -> None:
    office = make_office(script(said("Hi")))
    done = await office.finished()

    cancelled = await office.services.background.cancel(done.id)

    assert cancelled == done


async def test_only_responses_in_the_background_are_cancelled(make_office: MakeWorkerFixture) -> None:
    office = make_office(script(said()))
    request = CreateResponse.model_validate({"model": "test/m", "input": "Hi"})
    response = await office.services.responses.start(request, deadline(30))
    async for _ in office.services.responses.run(response):
        pass

    with pytest.raises(InvalidRequest, match="background"):
        await office.services.background.cancel(response.response_id)
    with pytest.raises(InvalidRequest, match="background"):
        await office.services.tail.read_events(response.response_id, -1, deadline(1))
    with pytest.raises(NotFound):
        await office.services.background.cancel("resp_" + "0" * 32)


async def test_a_response_that_is_deleted_stops_and_leaves_nothing_but_seals(make_office: MakeWorkerFixture) -> None:
    model = script([asyncio.Event()])
    office = make_office(model)
    response_id = await office.create(stream=True)
    working = asyncio.create_task(office.run(response_id))
    await model.opened.wait()

    await office.services.stored_responses.delete(response_id)
    stored = await working

    assert stored is None
    assert model.closed == 1
    assert all("expires_at" in item for item in office.cloud.items(office.tenant))
    assert await office.run(response_id) is None
    assert office.desk.ends == []


async def test_tools_run_in_the_background_and_their_results_reach_the_model(make_office: MakeWorkerFixture) -> None:
    model = script(called("buy"), said("Bought"))
    office = make_office(model)

    response = await office.finished(tools=[MCP_TOOL])

    assert office.shop.calls == ["buy"]
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert isinstance(model.requests[1].messages[-1], ToolResult)


async def test_a_response_whose_worker_has_no_time_left_fails_and_says_why(make_office: MakeWorkerFixture) -> None:
    office = make_office(script([asyncio.Event()]))
    response_id = await office.create()

    await office.run(response_id, seconds=0.3)

    response = await office.get(response_id)
    assert response.error is not None
    assert (response.status, response.error.code) == ("failed", "deadline_exceeded")
    assert "WorkerTimeoutSeconds" in response.error.message


async def test_a_plain_response_in_the_background_costs_four_write_units(make_office: MakeWorkerFixture) -> None:
    office = make_office(script(said("Hi")))
    await office.create()
    office.cloud.forget()

    response_id = await office.create()
    created = written(office)
    await office.run(response_id)

    assert created == 2  # header and list entry
    assert written(office) - created == 2  # the lease, and the step with the ending


def written(office: WorkerFixture) -> float:
    return sum(office.cloud.units[name] for name in ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem"))


async def test_a_streamed_response_in_the_background_costs_a_write_for_each_batch_of_events(
    make_office: MakeWorkerFixture,
) -> None:
    office = make_office(script(said("Hi")))
    office.cloud.forget()

    response_id = await office.create(stream=True)
    await office.run(response_id)

    batches = [item for item in office.cloud.items(office.tenant) if item["sk"]["S"].startswith("stream:")]
    assert len(batches) in (2, 3, 4)
    assert written(office) <= 4 + 2 * len(batches)


async def test_messages_that_come_while_a_response_runs_are_consumed(make_office: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    model = script([gate, *said()])
    office = make_office(model)
    response_id = await office.create()
    working = asyncio.create_task(office.run(response_id, seconds=900))
    await until(lambda: model.requests)

    second = asyncio.create_task(office.beside(script()).run(response_id, seconds=900))
    await keep_running(
        second, lambda: office.store.response_leases.get_state(office.tenant, response_id).lease_until, office.lease
    )
    assert await second is None
    gate.set()
    await working

    assert await office.status(response_id) == "completed"
