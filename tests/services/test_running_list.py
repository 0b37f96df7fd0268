"""The list of running runs: which runs write a record, what it has, and when it ends."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.listed_runs import put_run
from tests.script_model import Part, said, script, until
from tests.services.conftest import MakeTurnFixture, MakeWorkerFixture
from tests.services.deaths import die_at
from tests.services.polling import poll_until
from tests.services.responses.responder import Responder
from tests.services.turn_fixture import TurnFixture, ended
from tests.store.conftest import Cloud

from stint.caller import hash_end_user, set_end_user, set_principal
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.principals import Principal
from stint.domain.running_runs import RunningRun
from stint.services.turns.turn_handles import StartedTurn
from stint.spending.running_list import RENEWED_SECONDS, SHOWN_SECONDS
from stint.spending.stop_monitor import LONG_SECONDS, WATCH_SECONDS

LONG = LONG_SECONDS + WATCH_SECONDS
"""After these seconds, the watch has seen that a run is long."""


@pytest.fixture(autouse=True)
def _as_the_key_k1_for_ann(tenant: str) -> Iterator[None]:
    set_principal(Principal(tenant, "s", frozenset({"use"}), "k1"))
    set_end_user("ann")
    yield
    set_end_user(None)
    set_principal(None)


async def list_runs(cloud: Cloud, tenant: str) -> list[RunningRun]:
    return (await cloud.other_process().running_runs.list_page(tenant, None, 10, lambda _: True)).data


async def wait_for_runs(cloud: Cloud, tenant: str, count: int = 1) -> list[RunningRun]:
    """Wait until so many runs are listed, and return them."""

    async def has_all() -> bool:
        return len(await list_runs(cloud, tenant)) == count

    await poll_until(has_all)
    return await list_runs(cloud, tenant)


def records(cloud: Cloud, tenant: str) -> list[dict[str, Any]]:
    return [item for item in cloud.items(tenant) if "#running." in item["pk"]["S"]]


class Answer:
    """An answer of a model that a test ends."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.parts: list[Part] = [self.end, *said()]


@asynccontextmanager
async def running_turn(fixture: TurnFixture, answer: Answer) -> AsyncIterator[str]:
    """Run a turn like its route, whose answer ends with the body."""
    handle = StartedTurn(fixture.turns, run := await fixture.start(seconds=900), None)
    playing = asyncio.create_task(handle.outcome())
    yield run.turn_id
    answer.end.set()
    turn = await asyncio.wait_for(playing, 30)
    await handle.finish()
    assert turn.status is TurnStatus.completed


async def test_a_turn_is_listed_after_ten_seconds_until_it_ends(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, tenant: str
) -> None:
    answer = Answer()
    fixture = await make_turn_fixture(script(answer.parts)).open()

    async with running_turn(fixture, answer) as turn_id:
        CLOCK.move(LONG)
        [run] = await wait_for_runs(cloud, tenant)

    assert (run.kind, run.id, run.agent_id, run.session_id) == ("turn", turn_id, fixture.agent_id, fixture.session_id)
    assert (run.model, run.key_id, run.user_hash) == ("test/m", "k1", hash_end_user("ann"))
    assert (run.conversation_id, run.background, run.on_disconnect) == (None, False, "continue")
    assert run.until - run.began_at == pytest.approx(LONG_SECONDS + SHOWN_SECONDS, abs=3)
    assert records(cloud, tenant) == []


async def test_a_turn_of_less_than_ten_seconds_writes_and_loads_nothing_for_the_list(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, tenant: str
) -> None:
    answer = Answer()
    fixture = await make_turn_fixture(script(answer.parts)).open()

    with cloud.proxy.watch() as calls:
        async with running_turn(fixture, answer):
            CLOCK.move(LONG_SECONDS - 2)
            await until(lambda: any("BatchGetItem" in call for call in calls))

    assert [call for call in calls if "#running." in call] == []
    assert not fixture.turns.meters.stops.lists_runs


async def test_a_record_is_renewed_before_it_expires_and_no_receipt_counts_it(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, tenant: str
) -> None:
    answer = Answer()
    fixture = await TurnFixture(cloud.store, tenant, script(answer.parts), lease=900).open()

    with cloud.proxy.watch() as calls:
        async with running_turn(fixture, answer) as turn_id:
            CLOCK.move(LONG)
            [first] = await wait_for_runs(cloud, tenant)
            CLOCK.move(SHOWN_SECONDS - RENEWED_SECONDS)

            async def is_renewed() -> bool:
                return (await list_runs(cloud, tenant))[0].until > first.until

            await poll_until(is_renewed)

    writes = [call.partition(" ")[0] for call in calls if "#running." in call and not call.startswith("Query")]
    assert writes == ["PutItem", "PutItem", "DeleteItem"]
    receipt = (await fixture.get(turn_id)).receipt
    assert receipt is not None
    assert receipt.write_units == 4


async def test_a_run_whose_process_died_is_not_listed_after_a_minute(own_cloud: Cloud, tenant: str) -> None:
    fixture = await TurnFixture(own_cloud.store, tenant, script([asyncio.Event()]), lease=900).open()

    async def run() -> None:
        turn = await fixture.start(seconds=900)
        CLOCK.move(LONG)
        await fixture.play(turn)

    # At the second read of the watch: the first one begins to list the run.
    await die_at(own_cloud, "BatchGetItem", 2, run)

    assert len(await list_runs(own_cloud, tenant)) == 1
    CLOCK.move(SHOWN_SECONDS)
    assert await list_runs(own_cloud, tenant) == []
    [left] = records(own_cloud, tenant)
    assert "expires_at" in left


async def test_a_record_that_cannot_be_written_fails_no_turn_and_is_logged_once(
    own_cloud: Cloud, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = Answer()
    fixture = await TurnFixture(own_cloud.store, tenant, script(answer.parts), lease=900).open()
    monitor = fixture.turns.meters.stops

    with own_cloud.proxy.failing("PutItem", "#running."):
        async with running_turn(fixture, answer):
            tasks = set[asyncio.Task[None]]()
            CLOCK.move(LONG)
            while len(tasks) < 2:
                CLOCK.move(WATCH_SECONDS)
                await until(lambda: monitor.lists_runs and any(each.task for each in monitor.running.listed.values()))
                [listed] = monitor.running.listed.values()
                assert listed.task is not None
                tasks.add(listed.task)
                await asyncio.wait(tasks)

    logged = [record.message for record in caplog.records if "could not be listed" in record.message]
    assert logged == ["A running run could not be listed; trying again"]


@pytest.mark.parametrize("fields", [{"on_disconnect": "cancel"}, {"store": False}, {"conversation": True}], ids=str)
async def test_a_response_is_listed_also_one_that_is_not_stored(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, tenant: str, fields: Mapping[str, Any]
) -> None:
    answer = Answer()
    responder = Responder(make_worker_fixture(script(answer.parts)))
    conversation = await responder.conversation() if "conversation" in fields else None
    chosen = {**fields} | ({"conversation": conversation} if conversation else {})
    run = await responder.start(seconds=900, **chosen)
    playing = asyncio.create_task(responder.play(run))

    CLOCK.move(LONG)
    [found] = await wait_for_runs(cloud, tenant)
    answer.end.set()
    await asyncio.wait_for(playing, 30)
    await responder.responses.meters.stops.settle()

    assert (found.kind, found.id, found.conversation_id) == ("response", run.response_id, conversation)
    assert (found.agent_id, found.session_id, found.key_id, found.model) == (None, None, "k1", "test/m")
    assert (found.background, found.user_hash) == (False, hash_end_user("ann"))
    assert found.on_disconnect == fields.get("on_disconnect", "continue")
    assert records(cloud, tenant) == []


async def test_a_response_in_the_background_is_listed_with_the_key_of_its_creator(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, tenant: str
) -> None:
    answer = Answer()
    fixture = make_worker_fixture(model := script(answer.parts))
    response_id = await fixture.create()
    set_principal(None)
    set_end_user(None)
    running = asyncio.create_task(fixture.run(response_id))
    await until(model.opened.is_set)

    CLOCK.move(LONG)
    [found] = await wait_for_runs(cloud, tenant)
    answer.end.set()
    await asyncio.wait_for(running, 30)

    assert (found.id, found.key_id, found.background) == (response_id, "k1", True)
    assert found.user_hash
    assert records(cloud, tenant) == []


async def test_a_turn_that_is_resumed_elsewhere_stays_listed_when_its_first_process_ends(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, tenant: str
) -> None:
    answer = Answer()
    fixture = await make_turn_fixture(script(answer.parts)).open()

    async with running_turn(fixture, answer):
        CLOCK.move(LONG)
        [run] = await wait_for_runs(cloud, tenant)
        await put_run(cloud.other_process().running_runs, tenant, run, "another process")

    assert await list_runs(cloud, tenant) == [run]


async def test_a_stop_of_a_turn_ends_it_and_leaves_its_session(make_turn_fixture: MakeTurnFixture, tenant: str) -> None:
    model = script([asyncio.Event()], said())
    fixture = await make_turn_fixture(model).open()
    run = await fixture.start()
    playing = asyncio.create_task(fixture.play(run))
    await until(model.opened.is_set)

    await fixture.store.stops.add(tenant, f"turn:{run.turn_id}", 1_700_000_000)
    CLOCK.move(WATCH_SECONDS)
    turn = ended(await asyncio.wait_for(playing, 30))

    assert (turn.status, turn.error and turn.error.code) == (TurnStatus.failed, "stopped")
    assert (await fixture.turn()).status is TurnStatus.completed
