"""Streams of foreground responses that readers rejoin: the events of the first stream, with its numbers."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import STOP, Part, called, deadline, script, until
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Answered, Responder
from tests.services.worker_fixture import FUNCTION, MCP_TOOL

from stint.domain.errors import InvalidRequest, NotFound, StintError
from stint.domain.inference import Finished, FinishReason, ReasoningChunk, RefusalChunk, TextChunk
from stint.domain.openai.response_events import ResponseEvent

CUT_OFF = Finished(FinishReason.length)
THOUGHT = [ReasoningChunk("Let me "), ReasoningChunk("think."), ReasoningChunk(signature="s1")]


def spoken(*pieces: str, end: Part = STOP) -> list[Part]:
    return [*(TextChunk(piece) for piece in pieces), end]


async def rejoin(responder: Responder, response_id: str, after: int = -1, seconds: float = 60) -> list[str]:
    events = await responder.worker_fixture.services.tail.read_events(response_id, after, deadline(seconds))
    return [text async for text in events]


def sent(events: Sequence[ResponseEvent]) -> list[str]:
    return [event.model_dump_json() for event in events]


def id_of(answered: Answered) -> str:
    return answered.response.id


@pytest.mark.parametrize(
    ("answers", "fields"),
    [
        ([spoken("Good ", "mor", "ning", "x" * 80)], {}),
        ([spoken("All at once")], {"instructions": "Be brief."}),
        ([[*THOUGHT, *spoken("Well, ", "yes.")]], {}),
        ([[*THOUGHT, *spoken("Well, ", "yes.")]], {"reasoning": {"effort": "low"}}),
        ([[*THOUGHT, *spoken("Yes.")]], {"include": ["reasoning.encrypted_content"]}),
        ([[RefusalChunk("I "), RefusalChunk("won't."), STOP]], {}),
        ([spoken("Too ", "long", end=CUT_OFF)], {}),
        ([[*THOUGHT, *called("ask_user", text="Let me ask.")]], {"tools": [FUNCTION]}),
        ([called("buy", "ask_user"), spoken("Bought ", "it.")], {"tools": [MCP_TOOL, FUNCTION]}),
        ([called("buy", "sell", text="Trading."), called("sell"), spoken("Done.")], {"tools": [MCP_TOOL]}),
        ([called("buy"), spoken("Done.")], {"tools": [MCP_TOOL], "max_tool_calls": 1}),
        ([called("buy", arguments="{no"), spoken("Sorry.")], {"tools": [MCP_TOOL]}),
        ([called("nosuch"), spoken("Sorry.")], {}),
    ],
)
async def test_a_response_is_replayed_with_the_events_and_numbers_of_its_stream(
    make_worker_fixture: MakeWorkerFixture, answers: list[list[Part]], fields: dict[str, Any]
) -> None:
    responder = Responder(make_worker_fixture(script(*answers)))
    answered = await responder.respond(**fields)

    assert await rejoin(responder, id_of(answered)) == sent(answered.events)


async def test_a_result_after_an_unfinished_one_is_replayed_as_the_first_stream_showed_it(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    fixture = make_worker_fixture(script(called("buy", "sell")))
    fixture.fake_mcp.gates["buy"] = asyncio.Event()
    responder = Responder(fixture)
    run = await responder.start(tools=[MCP_TOOL], seconds=300)
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: any(record.early for record in run.log.response.records))
    CLOCK.move(300)
    answered = await playing

    assert [item.type for item in answered.response.output] == ["mcp_list_tools", "mcp_call", "mcp_call"]
    assert [item.status for item in answered.response.output[1:]] == ["incomplete", "completed"]  # type: ignore[union-attr]
    assert await rejoin(responder, run.response_id) == sent(answered.events)


async def test_calls_that_the_client_approved_are_replayed(make_worker_fixture: MakeWorkerFixture) -> None:
    tool = MCP_TOOL | {"require_approval": "always"}
    responder = Responder(make_worker_fixture(script(called("buy"), spoken("Bought ", "it."))))
    asked = await responder.respond(tools=[tool])
    [request] = [item for item in asked.response.output if item.type == "mcp_approval_request"]
    approval = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    answered = await responder.respond([approval], previous_response_id=id_of(asked), tools=[tool])

    assert await rejoin(responder, id_of(asked)) == sent(asked.events)
    assert await rejoin(responder, id_of(answered)) == sent(answered.events)


async def test_a_reader_gets_the_events_after_the_one_that_it_has(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(spoken("one ", "two ", "three"))))
    answered = await responder.respond()
    events = sent(answered.events)

    for after in range(len(events)):
        assert await rejoin(responder, id_of(answered), after) == events[after + 1 :]
    with pytest.raises(InvalidRequest, match=f"has {len(events)} events, numbered from 0") as refused:
        await rejoin(responder, id_of(answered), len(events))
    assert refused.value.param == "starting_after"


async def test_several_readers_follow_a_running_response_to_its_end(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    responder = Responder(
        make_worker_fixture(script(called("buy"), [TextChunk("Well, "), gate, TextChunk("done."), STOP]))
    )
    run = await responder.start(tools=[MCP_TOOL])
    playing = asyncio.create_task(responder.play(run))
    readers = [asyncio.create_task(rejoin(responder, run.response_id, after)) for after in (-1, -1, 2)]
    await asyncio.sleep(0.5)
    gate.set()
    events = sent((await playing).events)

    assert [await reader for reader in readers] == [events, events, events[3:]]


async def test_the_reader_of_a_response_whose_process_died_gets_its_failure(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"), [asyncio.Event()])))
    run = await responder.start(tools=[MCP_TOOL])
    async with aclosing(responder.responses.run(run)) as events:
        seen = [await anext(events) for _ in range(12)]
    run.log.stop()
    await run.run.close_inference()
    reading = asyncio.create_task(rejoin(responder, run.response_id))
    await asyncio.sleep(0.2)
    for _ in range(20):
        CLOCK.move(60)
        await asyncio.sleep(0.02)

    found = await reading

    assert found[:12] == sent(seen)
    assert '"type":"response.failed"' in found[-1]
    assert '"code":"interrupted"' in found[-1]
    assert await rejoin(responder, run.response_id, 500) == found[-1:]


async def test_the_reader_of_a_deleted_response_is_told_that_it_does_not_exist(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script([asyncio.Event()])))
    run = await responder.start()
    reading = asyncio.create_task(rejoin(responder, run.response_id))
    await asyncio.sleep(0.1)
    await responder.worker_fixture.services.stored_responses.delete(run.response_id)
    CLOCK.move(10)

    with pytest.raises(NotFound):
        await reading
    run.log.stop()
    await run.run.close_inference()


async def test_a_quiet_response_is_read_less_often_and_until_the_deadline_only(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script([asyncio.Event()])))
    run = await responder.start()
    responder.cloud.forget()

    with pytest.raises(StintError, match="time limit"):
        await rejoin(responder, run.response_id, seconds=3)

    assert responder.cloud.calls["Query"] <= 14  # two each time
    run.log.stop()
    await run.run.close_inference()
