"""Waiting messages after errors and deaths around their claim, their cancellation and their removal."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.clock import CLOCK
from tests.script_model import said, script
from tests.services.deaths import die_at
from tests.services.recovery.test_waiting_runs import Waiting, WaitingInConversation
from tests.services.turn_fixture import die
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import RequestAttempt
from stint.domain.errors import Conflict, NotFound, StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.messages import UserMessage
from stint.domain.waiting_messages import WaitingPlace
from stint.services.runs.admission import Admission
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.turn_admission import TurnLine
from stint.services.turns.turns import Turns
from stint.store.responses import ResponseStore
from stint.store.turns import TurnStore
from stint.store.waiting_line import ALIVE_SECONDS, WaitingLine

BODY = TurnCreateRequest(messages=[UserMessage(content="one")])


async def unavailable(*_: object, **__: object) -> None:
    raise StoreUnavailable("throttled")


async def opened(cloud: Cloud, tenant: str) -> Waiting:
    return await Waiting(WorkerFixture(cloud, tenant, script(said(), said()))).open()


async def failed_once(cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch) -> WaitingInConversation:
    """Return a response that the worker claimed, and could not store."""
    waiting = await WaitingInConversation(WorkerFixture(cloud, tenant, script(said(), said()))).open()
    CLOCK.move(ALIVE_SECONDS + 1)
    with monkeypatch.context() as patched:
        patched.setattr(ResponseStore, "put", unavailable)
        await waiting.work()
    return waiting


async def cancel(waiting: Waiting, message_id: str) -> str:
    cancellation = waiting.fixture.turns.turn_requests.cancellation
    return (await cancellation.cancel(waiting.agent_id, waiting.session_id, message_id)).status.value


async def work(waiting: Waiting, times: int = 1) -> None:
    for _ in range(times):
        CLOCK.move(ALIVE_SECONDS + 1)
        await waiting.work()


async def test_a_cancellation_that_dies_does_not_block_the_line(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    first, _ = await waiting.accept("one"), await waiting.accept("two")
    await die_at(own_cloud, "DeleteItem", 0, partial(cancel, waiting, first))
    await work(waiting, 3)
    assert (await waiting.inputs(), await waiting.places()) == (["two"], 0)


async def test_a_message_whose_start_failed_can_be_cancelled(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await opened(own_cloud, tenant)
    message = await waiting.accept("one")
    with monkeypatch.context() as patched:
        patched.setattr(TurnStore, "put_header", unavailable)
        await waiting.work()
    assert await cancel(waiting, message) == "cancelled"
    await work(waiting, 2)
    assert (await waiting.inputs(), await waiting.places()) == ([], 0)


async def test_a_response_whose_start_failed_can_be_cancelled(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await failed_once(own_cloud, tenant, monkeypatch)
    assert (await waiting.fixture.services.response_requests.cancel(waiting.response_id)).status == "cancelled"
    await work(waiting, 2)
    assert (await waiting.read()).status == "cancelled"


async def test_a_response_that_failed_once_claimed_can_be_deleted(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise Conflict("The file is not ready.", code="file_not_ready")

    waiting = await WaitingInConversation(WorkerFixture(own_cloud, tenant, script())).open()
    CLOCK.move(ALIVE_SECONDS + 1)
    with monkeypatch.context() as patched:
        patched.setattr(ResponseStore, "put", refuse)
        await waiting.work()
    assert (await waiting.read()).status == "failed"

    assert (await waiting.fixture.services.response_requests.delete(waiting.response_id)).deleted
    with pytest.raises(NotFound):
        await waiting.read()


async def test_a_repetition_finds_the_response_that_the_worker_ran_with_another_id(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await failed_once(own_cloud, tenant, monkeypatch)
    await work(waiting)
    assert (await waiting.read()).status == "completed"
    message = str(UUID(waiting.response_id.removeprefix("resp_")))
    attempt = RequestAttempt(object_id=message, repeated=True)
    found = await waiting.admission.find_accepted(attempt)
    assert found == message


async def test_a_run_goes_on_if_its_place_cannot_be_removed(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await opened(own_cloud, tenant)
    await waiting.accept("one")
    with monkeypatch.context() as patched:
        patched.setattr(WaitingLine, "finish", unavailable)
        patched.setattr(WaitingLine, "remove_place", unavailable)
        await waiting.work()
    admission = waiting.fixture.turns.turn_requests.make_admission(waiting.agent_id, waiting.session_id)
    assert await admission.kind.find_running() is None
    await work(waiting)
    assert (await waiting.inputs(), await waiting.places()) == (["one"], 0)


async def test_a_start_that_is_refused_does_not_block_the_line(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise Conflict("The file is not ready.", code="file_not_ready")

    waiting = await opened(own_cloud, tenant)
    await waiting.accept("one")
    with monkeypatch.context() as patched:
        patched.setattr(Turns, "start", refuse)
        await waiting.work()
    await waiting.accept("two")
    await work(waiting)
    assert (await waiting.inputs(), await waiting.places()) == (["two"], 0)


async def test_a_turn_of_the_worker_is_found_by_a_retry(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    await waiting.accept("one", attempt=RequestAttempt("f" * 32))
    await waiting.work()
    history = await waiting.fixture.store.turns.history(tenant, waiting.agent_id, waiting.session_id)
    assert history.turns[0].header.fingerprint == "f" * 32


async def test_an_interruption_of_a_run_without_a_header_starts(own_cloud: Cloud) -> None:
    async def interrupt(turn_id: str) -> None:
        raise NotFound("Turn", turn_id)

    async def find_running() -> str | None:
        return "t"

    async def start() -> str:
        return "started"

    kind = SimpleNamespace(find_holder=find_running, interrupt=interrupt)
    admission: Admission[Any, Any] = Admission(None, kind)  # type: ignore[arg-type]
    assert await admission.start_after_interrupting(start, asyncio.get_running_loop().time() + 5) == "started"


async def test_the_last_delivery_of_a_task_sends_it_again_while_the_store_fails(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await opened(own_cloud, tenant)
    await waiting.accept("one")
    with monkeypatch.context() as patched:
        patched.setattr(WaitingLine, "read", unavailable)
        await waiting.work(last=True)
    await work(waiting)
    assert (await waiting.inputs(), await waiting.places()) == (["one"], 0)


async def test_a_message_whose_start_fails_unexpectedly_does_not_block_the_line(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    waiting = await opened(own_cloud, tenant)
    await waiting.accept("one")
    with monkeypatch.context() as patched:
        patched.setattr(Turns, "start", fail)
        with pytest.raises(RuntimeError):
            await waiting.work(last=True)
    await waiting.accept("two")
    await work(waiting)
    assert (await waiting.inputs(), await waiting.places()) == (["two"], 0)


async def test_a_message_that_is_merged_while_the_worker_looks_at_it_is_found(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await opened(own_cloud, tenant)
    message = await waiting.accept("one")
    line = own_cloud.store.session_line(tenant, waiting.agent_id, waiting.session_id)
    read, run = WaitingLine.read, new_id()

    async def merge_and_read(self: WaitingLine) -> list[WaitingPlace]:
        assert await line.claim_merge(message, run)
        await line.remove_place(message)
        return await read(self)

    with monkeypatch.context() as patched:
        patched.setattr(WaitingLine, "read", merge_and_read)
        await waiting.work()

    state = await line.get(message)
    assert state is not None
    assert state.merged_into == run


async def test_a_message_starts_after_a_turn_whose_release_failed(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    turns, ids = waiting.fixture.turns.turns, (waiting.agent_id, waiting.session_id)
    run = await turns.start(*ids, BODY, RequestContext(asyncio.get_running_loop().time() + 60))
    message = await waiting.accept("two")
    run.log.keeper.release = unavailable  # type: ignore[method-assign]
    assert [event async for event in turns.run(run)]

    assert (await own_cloud.store.sessions.get(tenant, *ids)).lease_turn == run.run.run_id
    await work(waiting)

    assert (await waiting.inputs(), await waiting.places()) == (["one", "two"], 0)
    assert (await turns.get(*ids, message)).status == "completed"


@pytest.mark.parametrize("cancels", [True, False])
async def test_a_message_of_a_turn_that_died_before_it_stored_it_waits_again(
    own_cloud: Cloud, tenant: str, cancels: bool
) -> None:
    waiting = await opened(own_cloud, tenant)
    turns, ids = waiting.fixture.turns.turns, (waiting.agent_id, waiting.session_id)
    run = await turns.start(*ids, BODY, RequestContext(asyncio.get_running_loop().time() + 60))
    message = await waiting.accept("two")
    assert await own_cloud.store.session_line(tenant, *ids).claim_merge(message, run.run.run_id)
    await die(run)

    found = await turns.get(*ids, message)
    assert (found.turn_id, found.status) == (message, "in_progress")
    if cancels:
        assert await cancel(waiting, message) == "cancelled"
    await work(waiting, 2)

    assert (await waiting.inputs(), await waiting.places()) == (["one"] if cancels else ["one", "two"], 0)


@pytest.mark.parametrize("state", ["waits", "claimed", "run"])
async def test_a_message_is_refused_only_if_it_is_not_run(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    waiting = await opened(own_cloud, tenant)

    async def fail_once(line: TurnLine) -> None:
        monkeypatch.undo()
        waiting_line = waiting.fixture.store.session_line(line.turns.tenant, line.agent_id, line.session_id)
        [place] = await waiting_line.read()
        if state == "claimed":
            assert await waiting_line.claim_run(place.message_id, new_id())
        elif state == "run":
            CLOCK.move(ALIVE_SECONDS + 1)
            await waiting.work()
        raise StoreUnavailable("throttled")

    monkeypatch.setattr(TurnLine, "find_running", fail_once)
    if state == "waits":
        with pytest.raises(StoreUnavailable):
            await waiting.accept("one")
    else:
        await waiting.accept("one")
    await work(waiting, 2)

    assert (await waiting.inputs(), await waiting.places()) == ([] if state == "waits" else ["one"], 0)
