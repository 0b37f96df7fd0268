"""Foreground responses that are cancelled when their client no longer sends heartbeats."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError
from tests.script_model import Part, called, said, script, until
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.signal_reads import counting_reads
from tests.services.worker_fixture import MCP_TOOL

from stint.domain.errors import NotFound
from stint.domain.inference import TextChunk
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.run_signals import HEARTBEAT_TIMEOUT_SECONDS, HeartbeatReceived
from stint.store import keys


def blocked() -> list[Part]:
    """Return an answer that never ends."""
    return [TextChunk("I am"), asyncio.Event()]


async def beat(responder: Responder, response_id: str) -> HeartbeatReceived:
    return await responder.worker_fixture.services.response_requests.cancellation.receive_heartbeat(response_id)


async def lease_record(responder: Responder, response_id: str) -> Any:
    fixture = responder.worker_fixture
    return await fixture.store._table.get(keys.response_lease(fixture.tenant, response_id))


async def test_three_missed_heartbeats_cancel_a_response_with_what_was_done(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(called("buy"), blocked(), said("Hi"))
    responder = Responder(make_worker_fixture(model))
    conversation = await responder.conversation()
    run = await responder.start(tools=[MCP_TOOL], conversation=conversation, on_disconnect="cancel", seconds=600)
    with counting_reads() as reads:
        playing = asyncio.create_task(responder.play(run))
        await until(lambda: len(model.requests) == 2)

        await reads.let_pass(HEARTBEAT_TIMEOUT_SECONDS + 2)
        for _ in range(2):
            assert await beat(responder, run.response_id) == HeartbeatReceived()
            await reads.let_pass(HEARTBEAT_TIMEOUT_SECONDS)
        assert not playing.done()
        await reads.let_pass(1)
        response = (await asyncio.wait_for(playing, 30)).response

    assert (response.status, response.error) == ("cancelled", None)
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert response == await responder.get(run.response_id)
    assert (await responder.respond(conversation=conversation)).response.status == "completed"


async def test_a_response_that_continues_ignores_heartbeats(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(blocked())))
    run = await responder.start(seconds=600)
    with counting_reads() as reads:
        playing = asyncio.create_task(responder.play(run))
        await beat(responder, run.response_id)
        await reads.let_pass(2 * HEARTBEAT_TIMEOUT_SECONDS)

        assert not playing.done()
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


async def test_a_heartbeat_changes_nothing_of_a_response_that_has_ended_or_waits_for_a_worker(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script(said("Hi"))))
    ended = (await responder.respond()).response
    fixture = responder.worker_fixture
    queued = await fixture.create()

    for response_id in (ended.id, queued):
        before = await lease_record(responder, response_id)
        assert await beat(responder, response_id) == HeartbeatReceived()
        assert await lease_record(responder, response_id) == before
    with pytest.raises(NotFound):
        await beat(responder, "resp_01990000000070008000000000000099")


async def test_a_deleted_response_takes_no_heartbeat(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(blocked())))
    run = await responder.start()
    await beat(responder, run.response_id)
    await responder.worker_fixture.services.stored_responses.delete(run.response_id)

    with pytest.raises(NotFound):
        await beat(responder, run.response_id)
    await run.run.close_inference()
    run.log.stop()


@pytest.mark.parametrize("other", [{"store": False}, {"background": True}])
def test_responses_that_take_no_heartbeats_refuse_to_be_cancelled_without_them(other: dict[str, Any]) -> None:
    body = {"input": "Hi"} | other

    assert CreateResponse.model_validate(body | {"on_disconnect": "continue"})
    with pytest.raises(ValidationError, match="on_disconnect"):
        CreateResponse.model_validate(body | {"on_disconnect": "cancel"})
