"""The last event of a response says what is stored, although the answers to a write were lost."""

from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import called, said, script, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL

from stint.domain.openai.stored_responses import ResponseStatus


@pytest.mark.parametrize("record", ["tool_responses", "ended_as"])
@pytest.mark.parametrize("conversation", [False, True])
async def test_a_record_whose_answers_were_lost_does_not_fail_a_response(
    make_worker_fixture: MakeWorkerFixture, record: str, conversation: bool
) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"), said("Bought"), said())))
    fields: dict[str, Any] = {"conversation": await responder.conversation()} if conversation else {}

    with responder.cloud.proxy.failing("PutItem", record, lost=True, times=1):
        told = (await responder.respond(tools=[MCP_TOOL], **fields)).response

    assert told.status is ResponseStatus.completed
    assert told == await responder.get(told.id)
    assert responder.worker_fixture.fake_mcp.calls == ["buy"]
    if conversation:
        assert (await responder.respond("and?", **fields)).response.status is ResponseStatus.completed


async def test_a_background_response_with_lost_answers_ends_once(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    """The answers to the writes of its end were lost."""
    worker_fixture = make_worker_fixture(script(called("buy"), said("Bought")))
    response_id = await worker_fixture.create(tools=[MCP_TOOL])

    with worker_fixture.cloud.proxy.failing("PutItem", "ended_as", lost=True, times=1):
        await worker_fixture.run(response_id)

    assert await worker_fixture.status(response_id) == "completed"
    assert (worker_fixture.fake_mcp.calls, len(worker_fixture.queue.ends)) == (["buy"], 1)


@pytest.mark.parametrize("conversation", [False, True])
async def test_an_ending_that_could_not_be_read_at_once_is_announced_as_it_is_stored(
    make_worker_fixture: MakeWorkerFixture, conversation: bool
) -> None:
    model = script(said("Bought"), said())
    responder = Responder(make_worker_fixture(model))
    fields: dict[str, Any] = {"conversation": await responder.conversation()} if conversation else {}
    run = await responder.start(**fields)

    with (
        responder.cloud.proxy.failing("PutItem", "ended_as", lost=True, times=1),
        responder.cloud.proxy.failing("GetItem", run.response_id, times=1),
    ):
        told = (await responder.play(run)).response

    assert (told.status, run.error) == (ResponseStatus.completed, None)
    assert told == await responder.get(told.id)
    if conversation:
        CLOCK.move(0.01)
        await responder.respond("and?", **fields)
        assert [words_of(each) for each in model.requests[1].messages] == ["Hello", "Bought", "and?"]
