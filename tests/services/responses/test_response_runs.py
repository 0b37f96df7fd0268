import asyncio
import threading
from contextlib import aclosing
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import STOP, Part, called, said, script, until, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import FUNCTION, MCP_TOOL
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, DeadlineExceeded, InvalidRequest, ModelError, NotFound, StoreUnavailable
from stint.domain.inference import Finished, FinishReason, ReasoningChunk, TextChunk, Usage
from stint.domain.limits import MAX_ANSWER_CHARACTERS
from stint.domain.openai.response_events import ResponseCompleted
from stint.domain.openai.response_resource import Response
from stint.domain.openai.stored_responses import ResponseStatus
from stint.loop.transcript import NO_RESULT, SENT


async def test_the_model_is_called_while_the_header_is_being_stored(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said(), said())
    responder = Responder(make_worker_fixture(model))
    await responder.respond()
    model.opened.clear()
    opened = threading.Event()

    def hold_header(operation: str, body: str) -> None:
        assert operation != "BatchWriteItem" or opened.wait(10)

    with responder.cloud.proxy.watching(hold_header):
        starting = asyncio.create_task(responder.start())
        await asyncio.wait_for(model.opened.wait(), 30)
        opened.set()
        run = await starting

    assert (await responder.play(run)).response.status is ResponseStatus.completed


async def test_a_header_that_cannot_be_stored_begins_nothing(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said(), said())
    responder = Responder(make_worker_fixture(model))
    conversation = await responder.conversation()

    with responder.cloud.proxy.failing("BatchWriteItem"), pytest.raises(StoreUnavailable) as refused:
        await responder.start(conversation=conversation)

    assert model.closed == len(model.requests) == 1
    assert refused.value.response_id is not None  # it may have been written: a repetition would begin another one
    assert (await responder.respond(conversation=conversation)).response.status is ResponseStatus.completed


async def test_a_response_is_stored_before_its_last_event_leaves(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said())))
    run = await responder.start()

    async with aclosing(responder.responses.run(run)) as events:
        async for event in events:
            if isinstance(event, ResponseCompleted):
                break  # a client that hangs up here

    assert (await responder.get(run.response_id)).status is ResponseStatus.completed


async def test_each_step_is_stored_before_it_is_told(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"), said())))
    run = await responder.start(tools=[MCP_TOOL])

    async for event in responder.responses.run(run):
        if event.type == "response.output_item.done" and event.item.type != "mcp_list_tools":
            known = (await responder.get(run.response_id)).output
            assert event.item in known


async def test_a_store_that_fails_in_the_middle_fails_the_response(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"), said("Hi"))))
    run = await responder.start(tools=[MCP_TOOL])

    with responder.cloud.proxy.failing("PutItem", "0001", times=1):
        answered = await responder.play(run)

    kept = await responder.get(run.response_id)
    assert answered.kinds[-2:] == ["error", "failed"]
    assert answered.response == kept
    assert kept.error is not None
    assert kept.error.code == "store_unavailable"
    assert run.error is not None
    assert run.error.response_id == run.response_id


async def test_a_store_that_is_gone_is_told_and_seals_the_response_later(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script(said())))
    run = await responder.start()

    with responder.cloud.proxy.failing("PutItem"):
        answered = await responder.play(run)

    assert (await responder.stored(run.response_id)).ending is None
    assert answered.response.status is ResponseStatus.failed
    CLOCK.move_to(round(run.log.response.header.until * 1000))
    assert (await responder.get(run.response_id)).status is ResponseStatus.failed


@pytest.mark.parametrize("error", [DeadlineExceeded("Over."), ModelError("Busy."), ZeroDivisionError("a fault")])
async def test_a_response_that_fails_shows_what_its_stream_has_shown(
    make_worker_fixture: MakeWorkerFixture, error: Exception
) -> None:
    usage = Usage(input_tokens=5, output_tokens=3, total_tokens=8)
    asked = [*called("buy", text="Let me see.")[:-1], Finished(FinishReason.tool_calls, usage)]
    broken: list[Part] = [ReasoningChunk("Hm."), TextChunk("Half "), TextChunk("an answer"), error]
    responder = Responder(make_worker_fixture(script(asked, broken)))

    answered = await responder.respond(tools=[MCP_TOOL])

    kept = await responder.get(answered.response.id)
    assert kept == answered.response
    assert kept.usage is not None
    assert kept.usage.total_tokens == 8
    assert shown(kept) == [
        ("mcp_list_tools", None),
        ("message", "completed"),
        ("mcp_call", "completed"),
        ("reasoning", None),
        ("message", "incomplete"),
    ]
    assert kept.output[-1].model_dump()["content"][0]["text"] == "Half an answer"


def shown(response: Response) -> list[tuple[str, str | None]]:
    """The types of a response's items, each with its status."""
    return [(item.type, getattr(item, "status", None)) for item in response.output]


async def test_a_response_without_end_fails_and_can_be_read(make_worker_fixture: MakeWorkerFixture) -> None:
    endless: list[Part] = [TextChunk("Hi"), TextChunk("x" * MAX_ANSWER_CHARACTERS), STOP]
    responder = Responder(make_worker_fixture(script(endless)))

    response = (await responder.respond()).response

    assert response.status is ResponseStatus.failed
    assert response.error is not None
    assert "more than 10,000,000 characters" in response.error.message
    assert await responder.get(response.id) == response


async def test_a_response_whose_process_died_shows_all_calls_of_its_last_answer_in_their_order(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(called("buy", "ask_user", "sell", "ask_user")))
    worker_fixture.fake_mcp.gates |= {"buy": asyncio.Event(), "sell": asyncio.Event()}
    responder = Responder(worker_fixture)
    run = await responder.start(tools=[MCP_TOOL, FUNCTION])
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: worker_fixture.fake_mcp.calls == ["buy", "sell"])

    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    CLOCK.move_to(round(run.log.response.header.until * 1000))
    died = await responder.get(run.response_id)

    assert died.status is ResponseStatus.failed
    assert shown(died)[1:] == [
        ("mcp_call", "incomplete"),
        ("function_call", "completed"),
        ("mcp_call", "incomplete"),
        ("function_call", "completed"),
    ]


async def test_calls_that_ended_before_the_time_was_over_are_shown_behind_the_one_that_did_not(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(called("buy", "ask_user", "sell")))
    worker_fixture.fake_mcp.gates["buy"] = asyncio.Event()
    responder = Responder(worker_fixture)
    playing = asyncio.create_task(responder.respond(tools=[MCP_TOOL, FUNCTION]))
    await until(lambda: worker_fixture.fake_mcp.calls == ["buy", "sell"])
    for _ in range(50):  # until the second call has come to its end
        await asyncio.sleep(0)

    CLOCK.move(30)
    answered = await playing

    assert answered.response == await responder.get(answered.response.id)
    assert shown(answered.response)[1:] == [
        ("mcp_call", "incomplete"),
        ("function_call", "completed"),
        ("mcp_call", "completed"),
    ]


@pytest.mark.parametrize("answered", [False, True])
async def test_calls_of_a_response_that_failed_may_be_answered_and_need_not_be(
    make_worker_fixture: MakeWorkerFixture, answered: bool
) -> None:
    worker_fixture = make_worker_fixture(script(called("ask_user", "buy"), said("Sorry")))
    worker_fixture.fake_mcp.gates["buy"] = asyncio.Event()
    responder = Responder(worker_fixture)
    playing = asyncio.create_task(responder.respond(tools=[MCP_TOOL, FUNCTION]))
    await until(lambda: worker_fixture.fake_mcp.calls)
    CLOCK.move(30)
    failed = (await playing).response
    output = {"type": "function_call_output", "call_id": "c0", "output": "yes"}

    again = await responder.respond(
        [*([output] if answered else []), {"role": "user", "content": "Again"}], previous_response_id=failed.id
    )

    assert shown(failed)[1:] == [("function_call", "completed"), ("mcp_call", "incomplete")]
    assert again.response.status is ResponseStatus.completed


async def test_a_response_that_is_deleted_while_it_runs_ends_and_leaves_nothing(
    make_worker_fixture: MakeWorkerFixture, tenant: str
) -> None:
    gate = asyncio.Event()
    responder = Responder(make_worker_fixture(script([TextChunk("Hi"), gate, STOP])))
    run = await responder.start()
    playing = asyncio.create_task(responder.play(run))

    await responder.worker_fixture.services.stored_responses.delete(run.response_id)
    gate.set()
    answered = await playing

    assert answered.response.status is ResponseStatus.failed
    assert run.error is not None
    assert run.error.code == "interrupted"
    with pytest.raises(NotFound):
        await responder.get(run.response_id)


async def test_a_conversation_that_is_taken_over_fails_the_response(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    responder = Responder(make_worker_fixture(script([TextChunk("Hi"), gate, STOP])))
    conversation = await responder.conversation()
    run = await responder.start(conversation=conversation, seconds=90)
    [keeper] = run.log.keepers
    playing = asyncio.create_task(responder.play(run))

    keeper.stop()
    CLOCK.move(responder.worker_fixture.lease)
    gate.set()
    answered = await playing

    assert answered.response.error is not None
    assert answered.response.error.code == "interrupted"
    items = await responder.worker_fixture.services.conversations.list_items(conversation, None, 10, "asc")
    assert items.data == []


async def test_a_complete_response_adds_nothing_to_a_deleted_conversation(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, tenant: str
) -> None:
    """The conversation is deleted while the response runs."""
    gate = asyncio.Event()
    model = script([TextChunk("Hi"), gate, STOP])
    responder = Responder(make_worker_fixture(model))
    conversation = await responder.conversation()
    playing = asyncio.create_task(responder.respond(conversation=conversation))
    await model.opened.wait()

    await responder.worker_fixture.services.conversations.delete(conversation)
    gate.set()
    answered = await playing

    assert answered.response.status is ResponseStatus.completed
    assert (await responder.get(answered.response.id)).status is ResponseStatus.completed
    assert [item for item in cloud.items(tenant) if "conversation" in item["pk"]["S"]] == []


async def test_a_fault_of_an_adapter_is_told_without_its_words(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script([ZeroDivisionError("secret")])))

    response = (await responder.respond()).response

    assert response.error is not None
    assert (response.error.code, "secret" in response.error.message) == ("server_error", False)


async def test_an_error_of_a_models_request_names_the_field_of_a_response(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    wrong = InvalidRequest("An image is none.", param="messages")
    responder = Responder(make_worker_fixture(script([wrong], [ModelError("Busy.")])))

    first, second = (await responder.respond()).response, (await responder.respond()).response

    assert first.error is not None
    assert second.error is not None
    assert (first.error.param, second.error.param) == ("input", "")


@pytest.mark.parametrize("fields", [{"previous_response_id": "resp_x"}, {"tools": [FUNCTION, FUNCTION]}])
async def test_what_is_refused_calls_no_model(make_worker_fixture: MakeWorkerFixture, fields: dict[str, Any]) -> None:
    model = script(said())
    responder = Responder(make_worker_fixture(model))

    with pytest.raises((InvalidRequest, ValueError)):
        await responder.start(**fields)

    assert model.requests == []


async def test_one_response_runs_in_a_conversation_at_a_time(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said(), said())))
    conversation = await responder.conversation()

    outcomes = await asyncio.gather(
        responder.start(conversation=conversation), responder.start(conversation=conversation), return_exceptions=True
    )

    [refused] = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    [run] = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert refused.code == "conversation_locked"
    assert (await responder.play(run)).response.status is ResponseStatus.completed


async def test_the_next_response_knows_which_calls_of_a_failed_one_may_have_taken_effect(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(called("buy", "sell", "ask_user"), said())
    responder = Responder(make_worker_fixture(model))
    responder.worker_fixture.fake_mcp.gates["buy"] = asyncio.Event()
    run = await responder.start(tools=[MCP_TOOL, FUNCTION], seconds=1)

    failed = (await responder.play(run)).response
    await responder.respond("and now?", previous_response_id=failed.id)

    assert failed.status == "failed"
    assert [words_of(each) for each in model.requests[1].messages][2:] == [SENT, "sell is done", NO_RESULT, "and now?"]
