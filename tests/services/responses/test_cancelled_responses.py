"""Foreground responses that their client cancels from another connection."""

import asyncio

from tests.clock import CLOCK
from tests.script_model import Part, called, said, script, until
from tests.services.conftest import MakeWorkerFixture
from tests.services.polling import poll_until
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL

from stint.domain.inference import TextChunk
from stint.domain.openai.response_resource import Response
from stint.services.background.cancellation import ENDING_SECONDS
from stint.spending.stop_monitor import WATCH_SECONDS


def blocked() -> list[Part]:
    """Return an answer that never ends."""
    return [TextChunk("I am"), asyncio.Event()]


async def cancel(responder: Responder, response_id: str) -> Response:
    return await responder.worker_fixture.services.response_requests.cancellation.cancel(response_id)


async def signalled(responder: Responder, response_id: str) -> None:
    """Wait until the signal to cancel a response is stored."""
    fixture = responder.worker_fixture

    async def is_stored() -> bool:
        return (await fixture.store.response_leases.get_state(fixture.tenant, response_id)).cancelled_at is not None

    await poll_until(is_stored)


async def test_a_running_response_ends_at_the_next_read_with_what_was_done(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(called("buy"), blocked(), said("Hi"))
    responder = Responder(make_worker_fixture(model))
    conversation = await responder.conversation()
    run = await responder.start(tools=[MCP_TOOL], conversation=conversation)
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: len(model.requests) == 2)

    cancelling = asyncio.create_task(cancel(responder, run.response_id))
    await signalled(responder, run.response_id)
    CLOCK.move(WATCH_SECONDS)
    answered = await asyncio.wait_for(playing, 30)

    response = answered.response
    assert (answered.kinds[-1], response.status, response.error) == ("failed", "cancelled", None)
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert response.receipt is not None
    assert await cancelling == response == await responder.get(run.response_id)
    assert run.error is None
    assert (await responder.respond(conversation=conversation)).response.status == "completed"


async def test_a_cancellation_that_is_not_stored_is_not_announced(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(blocked())
    responder = Responder(make_worker_fixture(model))
    fixture = responder.worker_fixture
    run = await responder.start()
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: len(model.requests) == 1)
    await fixture.store.run_signals.cancel_response(fixture.tenant, run.response_id)

    with responder.cloud.proxy.failing("PutItem", "ended_as"):
        CLOCK.move(WATCH_SECONDS)
        response = (await asyncio.wait_for(playing, 30)).response

    assert response.error is not None
    assert (response.status, response.error.code) == ("failed", "store_unavailable")
    assert run.error is not None
    CLOCK.move(31)  # the lease time
    assert (await responder.get(run.response_id)).status == "failed"


async def test_a_response_that_has_ended_is_unchanged(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said("Hi"))))
    response = (await responder.respond()).response

    assert await cancel(responder, response.id) == response


async def test_a_response_whose_process_does_not_react_is_ended_without_it(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script(blocked(), said("Hi"))))
    conversation = await responder.conversation()
    run = await responder.start(conversation=conversation)
    assert run.log.keepers
    responder.responses.meters.stops.end()  # the process no longer reads signals

    cancelling = asyncio.create_task(cancel(responder, run.response_id))
    while not cancelling.done():
        CLOCK.move(ENDING_SECONDS / 10)
        await asyncio.sleep(0.02)

    assert (await cancelling).status == "cancelled"
    assert (await responder.get(run.response_id)).status == "cancelled"
    await run.run.close_inference()
    run.log.stop()
    assert (await responder.respond(conversation=conversation)).response.status == "completed"


async def test_the_next_response_goes_on_from_a_cancelled_one(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(blocked(), said("Hi"))
    responder = Responder(make_worker_fixture(model))
    run = await responder.start("My name is Ada.")
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: len(model.requests) == 1)
    cancelling = asyncio.create_task(cancel(responder, run.response_id))
    await signalled(responder, run.response_id)
    CLOCK.move(WATCH_SECONDS)
    await asyncio.gather(playing, cancelling)

    assert (await responder.respond("Who am I?", previous_response_id=run.response_id)).response.status == "completed"
    assert any("Ada" in str(message) for message in model.requests[1].messages)
