"""Responses, chat completions and inference of API keys and tenants that an admin stops."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, Script, called, deadline, said, script, until
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.errors import Stopped
from stint.domain.inference import TextChunk
from stint.domain.llama_stack.inference import InferenceChatRequest
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.completions import TextCompletionRequest
from stint.domain.principals import Principal
from stint.spending.stop_monitor import WATCH_SECONDS


@pytest.fixture(autouse=True)
def _as_the_key_k1(tenant: str) -> Iterator[None]:
    set_principal(Principal(tenant, "s", frozenset({"use"}), "k1"))
    yield
    set_principal(None)


def blocked() -> list[Part]:
    """Return an answer that never ends."""
    return [TextChunk("I am"), asyncio.Event()]


async def stop(fixture: WorkerFixture, name: str) -> None:
    await fixture.store.stops.add(fixture.tenant, name, 1_700_000_000)


@pytest.mark.parametrize("name", ["response:{response}", "conversation:{conversation}", "key:k1", "tenant"])
async def test_a_running_response_ends_at_the_next_read_of_the_stops(
    make_worker_fixture: MakeWorkerFixture, name: str
) -> None:
    model = script(called("buy"), blocked())
    responder = Responder(make_worker_fixture(model))
    conversation = await responder.conversation()
    run = await responder.start(tools=[MCP_TOOL], conversation=conversation)
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: len(model.requests) == 2)
    name = name.format(response=run.response_id, conversation=conversation)

    await stop(responder.worker_fixture, name)
    CLOCK.move(WATCH_SECONDS)
    response = (await asyncio.wait_for(playing, 30)).response

    assert (response.status, response.error and response.error.code) == ("failed", "stopped")
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    stored = await responder.get(response.id)
    assert (stored.status, stored.receipt is not None) == ("failed", True)
    await responder.worker_fixture.store.stops.remove(responder.worker_fixture.tenant, name)
    model.answers[2:] = [said()]
    assert (await responder.respond(conversation=conversation)).response.status == "completed"


async def test_a_new_response_is_refused_and_nothing_of_it_is_stored(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said(), said())))
    await stop(responder.worker_fixture, "key:k1")

    with pytest.raises(Stopped):
        await responder.start()

    assert (await responder.worker_fixture.services.stored_responses.list(None, 10, None, "desc")).data == []


async def test_a_new_response_of_a_stopped_conversation_is_refused(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said(), said())))
    conversation, other = await responder.conversation(), await responder.conversation()
    await stop(responder.worker_fixture, f"conversation:{conversation}")

    with pytest.raises(Stopped, match=f"Conversation {conversation} was stopped"):
        await responder.start(conversation=conversation)

    assert (await responder.respond(conversation=other)).response.status == "completed"


async def test_the_model_of_a_response_is_called_while_the_stops_are_read(own_cloud: Cloud, tenant: str) -> None:
    model = script(said(), said())
    responder = Responder(WorkerFixture(own_cloud, tenant, model))
    await responder.respond(store=False)
    model.opened.clear()

    with own_cloud.proxy.held_together("GetItem", "GetItem") as seen:  # the second call never comes
        starting = asyncio.create_task(responder.start(store=False))
        await asyncio.wait_for(model.opened.wait(), 30)
        assert not starting.done()
        await own_cloud.store.stops.read(tenant)
        run = await starting

    assert seen["GetItem"] == 2
    await responder.play(run)


async def test_a_caller_who_was_stopped_before_reaches_no_model(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said(), said(), said())
    responder = Responder(make_worker_fixture(model))
    await stop(responder.worker_fixture, "key:k1")
    with pytest.raises(Stopped):
        await responder.start()
    called_before = len(model.requests)

    for _ in range(2):
        with pytest.raises(Stopped):
            await responder.start()

    assert len(model.requests) == called_before


@pytest.mark.parametrize("name", ["key:k1", "tenant"])
async def test_a_running_background_response_fails_and_its_worker_ends(
    make_worker_fixture: MakeWorkerFixture, name: str
) -> None:
    model = script(called("buy"), blocked())
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create(tools=[MCP_TOOL], stream=True)
    set_principal(None)  # a worker has no caller
    working = asyncio.create_task(worker_fixture.run(response_id))
    await until(lambda: len(model.requests) == 2)

    await stop(worker_fixture, name)
    CLOCK.move(WATCH_SECONDS)
    await asyncio.wait_for(working, 30)

    response = await worker_fixture.get(response_id)
    assert (response.status, response.error and response.error.code) == ("failed", "stopped")
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert response.receipt is not None
    assert (await worker_fixture.follow(response_id))[-1]["type"] == "response.failed"


@pytest.mark.parametrize("name", ["response:{response}", "key:k1", "tenant"])
async def test_a_queued_response_that_was_stopped_fails_without_a_model_call(
    make_worker_fixture: MakeWorkerFixture, name: str
) -> None:
    model = script(said())
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create()
    set_principal(None)  # a worker has no caller
    await stop(worker_fixture, name.format(response=response_id))

    await worker_fixture.run(response_id)

    response = await worker_fixture.get(response_id)
    assert (response.status, response.error and response.error.code) == ("failed", "stopped")
    assert model.requests == []


async def test_a_stopped_caller_cannot_create_a_background_response(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script())
    await stop(worker_fixture, "key:k1")

    with pytest.raises(Stopped):
        await worker_fixture.create()

    assert worker_fixture.queue.tasks == []
    assert (await worker_fixture.services.stored_responses.list(None, 10, None, "desc")).data == []


Begin = Callable[[WorkerFixture], Awaitable[AsyncIterator[object]]]


async def begin_chat(fixture: WorkerFixture) -> AsyncIterator[object]:
    request = ChatCompletionRequest.model_validate({"model": "test/m", "messages": [{"role": "user", "content": "Hi"}]})
    return fixture.services.chat.run(await fixture.services.chat.start(request, deadline(30)))


async def begin_completion(fixture: WorkerFixture) -> AsyncIterator[object]:
    request = TextCompletionRequest.model_validate({"model": "test/m", "prompt": "Hi"})
    completions = fixture.services.make_inference().completions
    return completions.run(await completions.start(request, deadline(30)))


async def begin_inference(fixture: WorkerFixture) -> AsyncIterator[object]:
    request = InferenceChatRequest.model_validate(
        {"model_id": "test/m", "messages": [{"role": "user", "content": "Hi"}]}
    )
    inference = fixture.services.make_inference().inference
    return inference.run(await inference.start_chat(request, deadline(30)))


async def drain(events: AsyncIterator[object]) -> None:
    async for _ in events:
        pass


@pytest.mark.parametrize("begin", [begin_chat, begin_completion, begin_inference])
async def test_a_model_call_in_flight_ends_at_the_next_read_of_the_stops(
    make_worker_fixture: MakeWorkerFixture, begin: Begin
) -> None:
    model: Script = script(blocked())
    worker_fixture = make_worker_fixture(model)
    running = asyncio.create_task(drain(await begin(worker_fixture)))
    await until(lambda: len(model.requests) == 1)

    await stop(worker_fixture, "key:k1")
    CLOCK.move(WATCH_SECONDS)

    with pytest.raises(Stopped):
        await asyncio.wait_for(running, 30)
    assert model.closed == 1


@pytest.mark.parametrize("begin", [begin_chat, begin_completion, begin_inference])
async def test_a_model_call_of_a_stopped_key_returns_nothing_of_the_answer(
    make_worker_fixture: MakeWorkerFixture, begin: Begin
) -> None:
    worker_fixture = make_worker_fixture(script(said(), said()))
    await stop(worker_fixture, "key:k1")

    with pytest.raises(Stopped):
        await anext(await begin(worker_fixture))
