"""Streams of messages that wait for their session or conversation."""

import asyncio
import json
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import deadline, said, script
from tests.services.recovery.test_waiting_runs import Waiting, WaitingInConversation
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.errors import Cancelled, DeadlineExceeded, NotFound, StintError
from stint.domain.ids import name_of, new_id
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.run_outcome import ErrorInfo
from stint.services.runs import polling_pauses
from stint.store.waiting_line import ALIVE_SECONDS, RECORD_SECONDS


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling_pauses, "LONGEST_SECONDS", 0.25)


async def opened(cloud: Cloud, tenant: str) -> tuple[Waiting, str]:
    waiting = await Waiting(WorkerFixture(cloud, tenant, script(said("Hi"), said("Again")))).open()
    return waiting, await waiting.accept("one")


async def queued(cloud: Cloud, tenant: str) -> WaitingInConversation:
    return await WaitingInConversation(WorkerFixture(cloud, tenant, script(said("Hi"), said("Again")))).open()


async def events_of(
    waiting: Waiting, turn_id: str, after: int = -1, seconds: float = 10**6
) -> AsyncGenerator[NumberedEvent, None]:
    ids, requests = (waiting.agent_id, waiting.session_id, turn_id), waiting.fixture.turns.turn_requests
    return (await requests.follow(*ids, after, deadline(seconds))).events()


async def texts_of(
    waiting: WaitingInConversation, response_id: str, after: int = -1, seconds: float = 10**6
) -> AsyncGenerator[str, None]:
    return await waiting.fixture.services.response_requests.read_events(response_id, after, deadline(seconds))


async def read(events: AsyncGenerator[Any, None]) -> list[Any]:
    return [event async for event in events]


async def reading(events: AsyncGenerator[Any, None]) -> "asyncio.Task[list[Any]]":
    """Read a stream in a task, which waits for its message."""
    task = asyncio.create_task(read(events))
    await asyncio.sleep(0.05)
    assert not task.done()
    return task


async def delete_session(waiting: Waiting) -> None:
    await waiting.fixture.turns.sessions.delete(waiting.agent_id, waiting.session_id)


async def test_a_waiting_turn_is_followed_once_it_has_started(cloud: Cloud, tenant: str) -> None:
    waiting, turn_id = await opened(cloud, tenant)
    readers = [await reading(await events_of(waiting, turn_id, after)) for after in (-1, -1, 1)]

    await waiting.work()

    replayed = await read(await events_of(waiting, turn_id))
    assert [event.number for event in replayed] == list(range(len(replayed)))
    assert [await reader for reader in readers] == [replayed, replayed, replayed[2:]]


async def test_a_waiting_turn_that_is_started_with_another_id_is_followed(own_cloud: Cloud, tenant: str) -> None:
    waiting, turn_id = await opened(own_cloud, tenant)
    line = waiting.fixture.store.session_line(tenant, waiting.agent_id, waiting.session_id)
    assert await line.claim_run(turn_id, turn_id)  # and then its process died
    reader = await reading(await events_of(waiting, turn_id))

    await waiting.work()

    run_id = (await waiting.fixture.turns.turns.get(waiting.agent_id, waiting.session_id, turn_id)).turn_id
    assert run_id != turn_id
    assert await reader == await read(await events_of(waiting, run_id))


@pytest.mark.parametrize("act", ["cancel", "fail", "drop", "delete"])
async def test_the_stream_of_a_turn_that_is_not_started_ends_with_an_error(
    own_cloud: Cloud, tenant: str, act: str
) -> None:
    waiting, turn_id = await opened(own_cloud, tenant)
    ids = waiting.agent_id, waiting.session_id
    reader = await reading(await events_of(waiting, turn_id))

    if act == "cancel":
        await waiting.fixture.turns.turn_requests.cancellation.cancel(*ids, turn_id)
    elif act == "fail":
        error = ErrorInfo.of(Cancelled("Too late.", code="stopped"))
        await waiting.fixture.store.session_line(tenant, *ids).fail(turn_id, error)
    elif act == "delete":
        await delete_session(waiting)
    else:
        CLOCK.move(RECORD_SECONDS + 1)

    with pytest.raises(StintError) as ended:
        await asyncio.wait_for(reader, 30)
    codes = {"cancel": ["cancelled"], "fail": ["stopped"], "drop": ["turn_not_found"]}
    codes["delete"] = ["session_not_found", "turn_not_found", "cancelled"]  # it depends on what is deleted so far
    assert ended.value.code in codes[act]


async def test_a_turn_that_does_not_exist_has_no_stream(cloud: Cloud, tenant: str) -> None:
    waiting, turn_id = await opened(cloud, tenant)
    other = await Waiting(WorkerFixture(cloud, f"{tenant}x", script())).open()

    for fixture, sought in ((waiting, new_id()), (waiting, "no id"), (other, turn_id)):
        with pytest.raises(NotFound):
            await events_of(fixture, sought)


async def test_a_waiting_stream_is_read_like_a_waiting_request_and_until_the_deadline(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    waiting, turn_id = await opened(own_cloud, tenant)
    conversation = await queued(own_cloud, tenant)
    own_cloud.forget()

    for follow in (
        partial(events_of, waiting, turn_id),
        partial(texts_of, conversation, conversation.response_id),
    ):
        with pytest.raises(DeadlineExceeded):
            await read(await follow(seconds=1.5))

    assert own_cloud.calls["Query"] <= 2 * 6
    assert own_cloud.calls["PutItem"] + own_cloud.calls["UpdateItem"] == 0


async def test_a_stream_of_a_turn_that_has_started_reads_no_message(own_cloud: Cloud, tenant: str) -> None:
    waiting, turn_id = await opened(own_cloud, tenant)
    await waiting.work()
    own_cloud.forget()

    await read(await events_of(waiting, turn_id))

    assert (own_cloud.calls["GetItem"], own_cloud.calls["Query"]) == (2, 1)  # the agent and the session; the turn


async def test_a_waiting_response_is_followed_once_it_has_started(cloud: Cloud, tenant: str) -> None:
    waiting = await queued(cloud, tenant)
    readers = [await reading(await texts_of(waiting, waiting.response_id, after)) for after in (-1, -1, 1)]
    CLOCK.move(ALIVE_SECONDS + 1)

    await waiting.work()

    replayed = await read(await texts_of(waiting, waiting.response_id))
    assert [json.loads(text)["sequence_number"] for text in replayed] == list(range(len(replayed)))
    assert [await reader for reader in readers] == [replayed, replayed, replayed[2:]]


@pytest.mark.parametrize(("act", "after"), [("cancel", -1), ("cancel", 0), ("cancel", 7), ("fail", -1)])
async def test_the_stream_of_a_response_that_is_not_started_ends_with_its_failure(
    own_cloud: Cloud, tenant: str, act: str, after: int
) -> None:
    waiting = await queued(own_cloud, tenant)
    reader = await reading(await texts_of(waiting, waiting.response_id, after))

    if act == "cancel":
        await waiting.fixture.services.response_requests.cancel(waiting.response_id)
    else:
        [place] = await waiting.admission.line.read()
        await waiting.admission.line.fail(place.message_id, ErrorInfo.of(NotFound("Model", "m")))

    events = [json.loads(text) for text in await asyncio.wait_for(reader, 30)]
    assert [event["type"] for event in events] == ["response.created", "response.failed"][after >= 0 :]
    assert events[-1]["response"] == json.loads((await waiting.read()).to_json())
    assert events[-1]["response"]["status"] == ("cancelled" if act == "cancel" else "failed")


@pytest.mark.parametrize("act", ["response", "conversation", "drop"])
async def test_the_stream_of_a_response_that_is_deleted_ends(own_cloud: Cloud, tenant: str, act: str) -> None:
    waiting = await queued(own_cloud, tenant)
    reader = await reading(await texts_of(waiting, waiting.response_id))
    store, services = waiting.fixture.store, waiting.fixture.services

    if act == "response":
        await services.response_requests.waiting.delete(waiting.response_id)
    elif act == "conversation":
        await store.conversations.mark_deleted(tenant, waiting.conversation_id)
    else:
        CLOCK.move(RECORD_SECONDS + 1)

    with pytest.raises(NotFound):
        await asyncio.wait_for(reader, 30)


async def test_a_response_that_does_not_exist_has_no_stream(cloud: Cloud, tenant: str) -> None:
    waiting = await queued(cloud, tenant)
    other = await queued(cloud, f"{tenant}x")

    for fixture, sought in ((waiting, name_of("resp", new_id())), (waiting, "x"), (other, waiting.response_id)):
        with pytest.raises(NotFound):
            await texts_of(fixture, sought)
