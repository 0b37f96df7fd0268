"""Unfinished steps of foreground responses: what readers who rejoin get of them."""

import asyncio
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import STOP, Part, called, deadline, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.polling import poll_until
from tests.services.responses.responder import Responder
from tests.services.responses.test_rejoined_responses import THOUGHT, rejoin, sent
from tests.services.worker_fixture import MCP_TOOL

from stint.domain.errors import ModelError
from stint.domain.inference import ReasoningChunk, RefusalChunk, TextChunk
from stint.domain.partial_steps import PartialStep
from stint.services.runs.partial_writer import PATIENCE_SECONDS
from stint.store.keys import response_partials

DEAD = ModelError("The line is dead.")


async def parts_of(responder: Responder, response_id: str) -> list[PartialStep]:
    fixture = responder.worker_fixture
    place = response_partials(fixture.tenant, response_id)
    return [part for _, part in await fixture.store.partial_steps.read(place, place.after_step(None))]


class Reader:
    """A reader that rejoined the stream of a response."""

    def __init__(self, responder: Responder, response_id: str) -> None:
        self.found: list[str] = []
        self.task = asyncio.create_task(self.read(responder, response_id))

    async def read(self, responder: Responder, response_id: str) -> None:
        tail = responder.worker_fixture.services.tail
        async for text in await tail.read_events(response_id, -1, deadline(600)):
            self.found.append(text)

    async def until(self, part: str) -> None:
        """Wait until the last event has this text in it."""

        async def is_last() -> bool:
            return bool(self.found) and part in self.found[-1]

        await poll_until(is_last)


@pytest.mark.parametrize(
    "broken",
    [
        [DEAD],
        [TextChunk("one "), TextChunk("two "), DEAD],
        [*THOUGHT, DEAD],
        [ReasoningChunk("Let me "), DEAD],
        [*THOUGHT, TextChunk("one "), TextChunk("two "), DEAD],
        [RefusalChunk("I "), RefusalChunk("won"), DEAD],
    ],
)
@pytest.mark.parametrize("include", [[], ["reasoning.encrypted_content"]])
async def test_an_answer_that_breaks_off_is_replayed_with_its_events_and_numbers(
    make_worker_fixture: MakeWorkerFixture, broken: list[Part], include: list[str]
) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"), broken)))
    answered = await responder.respond(tools=[MCP_TOOL], include=include)

    assert answered.kinds[-1] == "failed"
    assert await rejoin(responder, answered.response.id) == sent(answered.events)


@pytest.mark.parametrize(
    ("begun", "last"),
    [
        ([TextChunk("one "), TextChunk("two ")], '"delta":"two "'),
        ([ReasoningChunk("Let me "), ReasoningChunk("see")], '"delta":"see"'),
        ([*THOUGHT, TextChunk("one ")], '"delta":"one "'),
        ([RefusalChunk("I "), RefusalChunk("won")], '"delta":"won"'),
    ],
)
async def test_pieces_of_a_step_that_runs_long_reach_readers_before_it_ends(
    make_worker_fixture: MakeWorkerFixture, begun: list[Part], last: str
) -> None:
    gate = asyncio.Event()
    responder = Responder(make_worker_fixture(script([*begun, gate, TextChunk("done"), STOP])))
    run = await responder.start()
    playing = asyncio.create_task(responder.play(run))
    reader = Reader(responder, run.response_id)
    await asyncio.sleep(0.3)
    CLOCK.move(PATIENCE_SECONDS)
    await reader.until(last)
    gate.set()
    events = sent((await playing).events)
    await reader.task

    assert reader.found == events


async def test_a_tool_that_runs_long_is_shown_to_readers(make_worker_fixture: MakeWorkerFixture) -> None:
    fixture = make_worker_fixture(script(called("buy"), [TextChunk("done"), STOP]))
    gate = fixture.fake_mcp.gates["buy"] = asyncio.Event()
    responder = Responder(fixture)
    run = await responder.start(tools=[MCP_TOOL])
    playing = asyncio.create_task(responder.play(run))
    reader = Reader(responder, run.response_id)
    await asyncio.sleep(0.3)
    CLOCK.move(PATIENCE_SECONDS)
    await reader.until("response.mcp_call_arguments.done")
    gate.set()
    events = sent((await playing).events)
    await reader.task

    assert reader.found == events


@pytest.mark.parametrize("fields", [{"store": False}, {"store": True}])
async def test_parts_are_stored_and_deleted_with_their_response(
    make_worker_fixture: MakeWorkerFixture, fields: dict[str, Any]
) -> None:
    responder = Responder(make_worker_fixture(script([TextChunk("one "), asyncio.Event()])))
    run = await responder.start(**fields)
    playing = asyncio.create_task(responder.play(run))
    await asyncio.sleep(0.3)
    CLOCK.move(PATIENCE_SECONDS)
    await asyncio.sleep(0.3)
    assert len(await parts_of(responder, run.response_id)) == fields["store"]

    if fields["store"]:
        await responder.worker_fixture.services.stored_responses.delete(run.response_id)
        assert await parts_of(responder, run.response_id) == []
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    run.log.stop()
