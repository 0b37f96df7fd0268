import asyncio
import os
import signal
import sys
from contextlib import aclosing
from pathlib import Path

from infra.local.engine import Engine
from tests.script_model import called, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, die

from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.run_outcome import RunStatus
from stint.services.agents.interrupted import mark_interrupted
from stint.services.turns.turn_run import TurnRun

ROOT = Path(__file__).parents[3]
PROCESS = Path(__file__).with_name("turn_process.py")


async def in_session(turn_fixture: TurnFixture) -> list[Turn]:
    return (await turn_fixture.sessions.get(turn_fixture.agent_id, turn_fixture.session_id)).turns


async def with_one_step(turn_fixture: TurnFixture) -> TurnRun:
    """Begin a turn, and stop reading it behind its first stored step; its lease is renewed no more."""
    turn = await turn_fixture.start()
    async with aclosing(turn_fixture.turns.run(turn)) as events:
        async for event in events:
            if shape([event]) == ["complete inference"]:
                break
    return turn


async def test_a_turn_is_shown_in_progress_while_its_session_is_held(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"))).open()

    turn = await with_one_step(turn_fixture)

    shown = await turn_fixture.get(turn.turn_id)
    assert (shown.status, shown.completed_at, len(shown.steps)) == (TurnStatus.in_progress, None, 1)
    assert await in_session(turn_fixture) == [shown]
    await die(turn)


async def test_a_turn_whose_process_died_is_shown_as_failed_at_once_and_always_the_same(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"))).open()
    turn = await with_one_step(turn_fixture)

    await die(turn)

    shown = await turn_fixture.get(turn.turn_id)
    assert shown.error is not None
    assert (shown.status, shown.error.code) == (TurnStatus.failed, "interrupted")
    assert shown.completed_at == shown.steps[-1].completed_at
    assert await in_session(turn_fixture) == [shown] == [await turn_fixture.get(turn.turn_id)]


async def test_a_turn_that_ended_between_two_reads_is_shown_as_it_ended(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"), said())).open()
    turn = await turn_fixture.start()
    before = await turn_fixture.store.turns.get(*turn_fixture.ids, turn.turn_id)
    await turn_fixture.play(turn)
    record = await turn_fixture.store.sessions.get(*turn_fixture.ids)

    shown = await mark_interrupted(turn_fixture.store, turn_fixture.tenant, turn_fixture.agent_id, record, before)

    assert shown.status is RunStatus.completed


async def test_a_turn_that_was_resumed_between_two_reads_is_shown_in_progress(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), [asyncio.Event()])).open("add")
    record = await turn_fixture.store.sessions.get(*turn_fixture.ids)
    paused = await turn_fixture.turn()
    turn = await turn_fixture.resume(paused.turn_id, ("c0", "3"))
    seen = await turn_fixture.store.turns.get(*turn_fixture.ids, turn.turn_id)

    shown = await mark_interrupted(turn_fixture.store, turn_fixture.tenant, turn_fixture.agent_id, record, seen)

    assert shown.status is RunStatus.in_progress
    await die(turn)


async def read_until(process: asyncio.subprocess.Process, word: str, times: int) -> list[str]:
    """Read a process's lines until one has come so many times."""
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(30):
        while lines.count(word) < times:
            line = await process.stdout.readline()
            assert line, f"the process ended: {lines}"
            lines.append(line.decode().strip())
    return lines


async def test_a_killed_process_leaves_its_finished_steps_and_the_next_turn_works(
    make_turn_fixture: MakeTurnFixture, engine: Engine
) -> None:
    model = script(said("two"))
    turn_fixture = await make_turn_fixture(model).open()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROCESS), engine.outputs["TableName"], engine.outputs["BucketName"], *turn_fixture.ids),
        env={**os.environ, **engine.environment(), "PYTHONPATH": f"{ROOT}/layers/core:{ROOT}"},
        stdout=asyncio.subprocess.PIPE,
    )
    turn_id, *_ = await read_until(process, "start inference", times=2)
    process.kill()
    await process.wait()

    await turn_fixture.expire_lease()
    shown = await turn_fixture.get(turn_id)
    following = await turn_fixture.turn("two")

    assert process.returncode == -signal.SIGKILL
    assert (shown.status, [step.step_type for step in shown.steps]) == (
        TurnStatus.failed,
        ["inference", "tool_execution"],
    )
    assert following.output_message.content == "two"
    sealed, _ = await turn_fixture.stored()
    assert (sealed.status, sealed.steps) == (TurnStatus.failed, shown.steps)
    assert len(model.requests[0].messages) == 4
