"""Turns that are cancelled when their client no longer sends heartbeats."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, called, said, script, until
from tests.services.conftest import MakeTurnFixture
from tests.services.signal_reads import SignalReads, counting_reads
from tests.services.turn_fixture import TurnFixture, die, ended
from tests.store.conftest import Cloud

from stint.caller import set_end_user
from stint.domain.errors import Forbidden, NotFound
from stint.domain.ids import new_id
from stint.domain.inference import TextChunk
from stint.domain.llama_stack.events import Event
from stint.domain.llama_stack.turns import TurnResumeRequest, TurnStatus
from stint.domain.run_signals import HEARTBEAT_SECONDS, HEARTBEAT_TIMEOUT_SECONDS, HeartbeatReceived
from stint.domain.tools import ToolResponse
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.turn_run import TurnRun
from stint.store import keys


def blocked() -> list[Part]:
    """Return an answer that never ends."""
    return [TextChunk("I am"), asyncio.Event()]


async def beat(fixture: TurnFixture, turn_id: str) -> HeartbeatReceived:
    cancellation = fixture.services.turn_requests.cancellation
    return await cancellation.receive_heartbeat(fixture.agent_id, fixture.session_id, turn_id)


async def session_record(fixture: TurnFixture) -> dict[str, Any]:
    return dict(await fixture.store._table.get(keys.session_state(*fixture.ids)) or {})


@dataclass
class RunningTurn:
    """A turn whose model is silent."""

    run: TurnRun
    playing: asyncio.Task[list[Event]]
    reads: SignalReads


@asynccontextmanager
async def running(
    fixture: TurnFixture, run: TurnRun | None = None, **request: Any
) -> AsyncGenerator[RunningTurn, None]:
    """Run a turn until the body ends."""
    started = run or await fixture.start(seconds=600, **request)
    with counting_reads() as reads:
        playing = asyncio.create_task(fixture.play(started))
        await asyncio.sleep(0)
        yield RunningTurn(started, playing, reads)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


async def test_three_missed_heartbeats_cancel_a_turn_with_its_steps(make_turn_fixture: MakeTurnFixture) -> None:
    model = script(called("nosuch"), blocked(), said("Hi"))
    fixture = await make_turn_fixture(model).open()

    async with running(fixture, on_disconnect="cancel") as turn:
        await until(lambda: len(model.requests) == 2)
        await turn.reads.let_pass(HEARTBEAT_SECONDS)
        received = await beat(fixture.other_process(script()), turn.run.turn_id)
        await turn.reads.let_pass(HEARTBEAT_TIMEOUT_SECONDS)
        assert not turn.playing.done()
        await turn.reads.let_pass(1)
        cancelled = ended(await asyncio.wait_for(turn.playing, 30))

    assert received == HeartbeatReceived(interval_seconds=5, timeout_seconds=15)
    assert (cancelled.status, cancelled.error) == (TurnStatus.cancelled, None)
    assert [step.step_type for step in cancelled.steps] == ["inference", "tool_execution"]
    assert cancelled.receipt is not None
    assert "lease_turn" not in (record := await session_record(fixture))
    assert "heartbeat_at" not in record
    assert (await fixture.turn()).status == TurnStatus.completed


async def test_heartbeats_keep_a_turn_running(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(blocked())).open()

    async with running(fixture, on_disconnect="cancel") as turn:
        for _ in range(3):
            await beat(fixture, turn.run.turn_id)
            await turn.reads.let_pass(HEARTBEAT_TIMEOUT_SECONDS - 1)

        assert not turn.playing.done()


@pytest.mark.parametrize("chosen", ["cancel", "continue"])
async def test_a_turn_without_a_heartbeat_or_without_the_wish_runs_on(
    make_turn_fixture: MakeTurnFixture, chosen: str
) -> None:
    fixture = await make_turn_fixture(script(blocked())).open()

    async with running(fixture, on_disconnect=chosen) as turn:
        if chosen == "continue":
            await beat(fixture, turn.run.turn_id)
        await turn.reads.let_pass(2 * HEARTBEAT_TIMEOUT_SECONDS)

        assert not turn.playing.done()


async def test_a_client_has_the_whole_time_again_after_a_pause_of_the_reads(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(blocked())).open()

    async with running(fixture, on_disconnect="cancel") as turn:
        await beat(fixture, turn.run.turn_id)
        await turn.reads.let_pass(1)
        CLOCK.move(10 * HEARTBEAT_TIMEOUT_SECONDS)
        await turn.reads.let_pass(HEARTBEAT_TIMEOUT_SECONDS)
        assert not turn.playing.done()
        await turn.reads.let_pass(1)

        assert ended(await asyncio.wait_for(turn.playing, 30)).status == TurnStatus.cancelled


async def test_a_resumed_turn_waits_for_a_heartbeat_of_its_own(make_turn_fixture: MakeTurnFixture) -> None:
    model = script(called("add"), blocked(), blocked())
    fixture = await make_turn_fixture(model).open("add")
    paused = await fixture.turn()
    answers = TurnResumeRequest(
        tool_responses=[ToolResponse(call_id="c0", tool_name="add", content="3")], on_disconnect="cancel"
    )
    ids = fixture.agent_id, fixture.session_id, paused.turn_id
    deadline = asyncio.get_running_loop().time() + 600
    first = await fixture.turns.resume(*ids, answers, RequestContext(deadline))
    await beat(fixture, paused.turn_id)
    await die(first)

    again = await fixture.turns.resume(*ids, answers, RequestContext(deadline))
    async with running(fixture, again) as turn:
        assert "heartbeat_turn" not in await session_record(fixture)
        await turn.reads.let_pass(HEARTBEAT_TIMEOUT_SECONDS + 2)
        assert not turn.playing.done()
        await beat(fixture, paused.turn_id)
        await turn.reads.let_pass(HEARTBEAT_TIMEOUT_SECONDS + 1)

        assert ended(await asyncio.wait_for(turn.playing, 30)).status == TurnStatus.cancelled


async def test_heartbeats_of_an_ended_turn_do_not_concern_the_next_one(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said(), blocked())).open()
    first = await fixture.turn()

    async with running(fixture, on_disconnect="cancel") as turn:
        assert await beat(fixture, first.turn_id) == HeartbeatReceived()
        assert "heartbeat_at" not in await session_record(fixture)
        await turn.reads.let_pass(HEARTBEAT_TIMEOUT_SECONDS + 2)

        assert not turn.playing.done()


async def test_a_heartbeat_of_what_is_not_there(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()

    with pytest.raises(NotFound, match="Turn"):
        await beat(fixture, new_id())
    fixture.session_id = new_id()
    with pytest.raises(NotFound, match="Session"):
        await beat(fixture, new_id())


async def test_another_end_user_sends_no_heartbeat(make_turn_fixture: MakeTurnFixture) -> None:
    set_end_user("ada")
    try:
        fixture = await make_turn_fixture(script(blocked())).open()
        async with running(fixture) as turn:
            set_end_user("bob")
            with pytest.raises(Forbidden, match="another end user"):
                await beat(fixture, turn.run.turn_id)
            assert "heartbeat_at" not in await session_record(fixture)
    finally:
        set_end_user(None)


async def test_a_heartbeat_is_one_write_unit(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    fixture = await make_turn_fixture(script(blocked())).open()

    async with running(fixture) as turn:
        cloud.forget()
        await beat(fixture, turn.run.turn_id)

    assert [call for call in cloud.calls if call != "BatchGetItem"] == ["UpdateItem"]
