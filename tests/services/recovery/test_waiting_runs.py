"""Messages whose request died, which the worker runs."""

import asyncio
from functools import partial
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.deaths import counting, die_at
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import NO_ATTEMPT, RequestAttempt, acting_as, find_end_user, find_principal, set_end_user
from stint.domain.ids import name_of
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.messages import UserMessage
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response
from stint.domain.principals import Principal
from stint.domain.stops import stop_name
from stint.domain.tools import AgentToolGroupWithArgs
from stint.services.agents.masking import NOT_STORED
from stint.services.background.waiting_runs import WaitingRuns
from stint.store.waiting_line import ALIVE_SECONDS

LEASE = 30.0
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")


class Waiting:
    """A worker, and a session whose messages wait."""

    def __init__(self, fixture: WorkerFixture) -> None:
        self.fixture, agents = fixture, fixture.turns
        self.runs = WaitingRuns(agents.turn_requests, fixture.services.response_requests)

    async def open(self) -> "Waiting":
        agents = self.fixture.turns
        self.agent_id = await agents.agents.create(AgentConfig(model="test/m", instructions=""))
        self.session_id = await agents.sessions.create(self.agent_id, "talk")
        return self

    async def accept(self, text: str, attempt: RequestAttempt = NO_ATTEMPT, **fields: Any) -> str:
        """Accept a message whose request dies at once."""
        admission = self.fixture.turns.turn_requests.make_admission(self.agent_id, self.session_id)
        request = TurnCreateRequest(messages=[UserMessage(content=text)], when_busy="enqueue", **fields)
        message_id = await admission.accept(request, attempt)
        CLOCK.move(ALIVE_SECONDS + 1)
        return message_id

    async def work(self, *, last: bool = False) -> None:
        """Handle each task once."""
        queue = self.fixture.queue
        tasks, queue.waiting = queue.waiting, []
        for task in tasks:
            await self.runs.handle(task, asyncio.get_running_loop().time() + 900, last=last)

    async def inputs(self) -> list[str]:
        ids = self.fixture.tenant, self.agent_id, self.session_id
        history = await self.fixture.store.turns.history(*ids)
        return [str(each.content) for turn in history.turns for each in turn.header.input_messages]

    async def places(self) -> int:
        ids = self.fixture.tenant, self.agent_id, self.session_id
        return len(await self.fixture.store.session_line(*ids).read())


async def test_the_worker_runs_messages_in_order_once_no_request_has_them(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    waiting = await Waiting(make_worker_fixture(script(said(), said()))).open()
    admission = waiting.fixture.turns.turn_requests.make_admission(waiting.agent_id, waiting.session_id)
    first = await waiting.accept("one")
    await waiting.accept("two")

    await admission.line.renew(first)
    await waiting.work()
    assert await waiting.inputs() == []
    assert len(waiting.fixture.queue.waiting) == 2

    CLOCK.move(ALIVE_SECONDS + 1)
    await waiting.work()
    assert await waiting.inputs() == ["one", "two"]
    assert (await waiting.places(), waiting.fixture.queue.waiting) == (0, [])


async def test_a_message_is_run_for_its_caller_and_end_user(make_worker_fixture: MakeWorkerFixture) -> None:
    seen: list[tuple[str, str | None]] = []
    model = script(said())
    waiting = await Waiting(make_worker_fixture(model)).open()
    stream = model.stream

    def note(request):  # type: ignore[no-untyped-def]
        caller = find_principal()
        seen.append((caller.key_id if caller else "", find_end_user()))
        return stream(request)

    model.stream = note  # type: ignore[method-assign]
    with acting_as(Principal(waiting.fixture.tenant, "bot", frozenset({"use"}), key_id="k1")):
        set_end_user("mia")
        await waiting.accept("one")
        set_end_user(None)

    await waiting.work()

    assert seen == [("k1", "mia")]
    assert find_end_user() is None


async def test_a_message_of_a_stopped_key_is_not_run(make_worker_fixture: MakeWorkerFixture) -> None:
    waiting = await Waiting(make_worker_fixture(script())).open()
    with acting_as(Principal(waiting.fixture.tenant, "bot", frozenset({"use"}), key_id="k1")):
        message_id = await waiting.accept("one")
    await waiting.fixture.store.stops.add(waiting.fixture.tenant, stop_name("key", "k1"), 1)

    await waiting.work()

    turn = await waiting.fixture.turns.turns.get(waiting.agent_id, waiting.session_id, message_id)
    assert turn.error is not None
    assert turn.error.code == "stopped"
    assert await waiting.inputs() == []


async def test_a_worker_that_dies_at_any_call_loses_and_doubles_no_message(own_cloud: Cloud, tenant: str) -> None:
    def process() -> Waiting:
        return Waiting(WorkerFixture(own_cloud, tenant, script(said(), said())))

    waiting = await process().open()
    await waiting.accept("one")
    with counting(own_cloud) as calls:
        await waiting.work()
    points = [(name, n) for name in WRITES for n in range(calls.count(name))]
    assert len(points) >= 7

    for operation, number in points:
        waiting = await process().open()
        await waiting.accept("one")
        [task] = waiting.fixture.queue.waiting
        await die_at(own_cloud, operation, number, waiting.work)
        CLOCK.move(LEASE)
        waiting.fixture.queue.waiting[:] = [task]
        await waiting.work()

        assert await waiting.inputs() == ["one"], (operation, number)
        assert await waiting.places() == 0


async def test_an_acceptance_that_dies_at_any_call_is_found_or_was_not_made(own_cloud: Cloud, tenant: str) -> None:
    with counting(own_cloud) as calls:
        waiting = await Waiting(WorkerFixture(own_cloud, tenant, script(said()))).open()
        before = calls.count("PutItem")
        await waiting.accept("one")
    for number in range(calls.count("PutItem") - before):
        waiting = await Waiting(WorkerFixture(own_cloud, tenant, script(said()))).open()
        await die_at(own_cloud, "PutItem", number, partial(waiting.accept, "one"))
        CLOCK.move(ALIVE_SECONDS + 1)

        await waiting.work()

        assert await waiting.inputs() == []
        assert (await waiting.places(), waiting.fixture.queue.waiting) == (0, [])


async def test_credentials_of_a_message_are_not_stored(cloud: Cloud, tenant: str) -> None:
    waiting = await Waiting(WorkerFixture(cloud, tenant, script())).open()
    group = AgentToolGroupWithArgs(name="builtin::websearch", args={"api_key": "sk-very-secret", "engine": "brave"})
    message_id = await waiting.accept("one", toolgroups=[group])
    assert not any("sk-very-secret" in str(item) for item in cloud.items(tenant))

    await waiting.work()

    turn = await waiting.fixture.turns.turns.get(waiting.agent_id, waiting.session_id, message_id)
    assert (turn.error and turn.error.message, await waiting.places()) == (NOT_STORED, 0)


class WaitingInConversation(Waiting):
    """A worker, and a conversation in which a message waits."""

    async def open(self, items: Any = "one", *, of_llama_stack: bool = False) -> "WaitingInConversation":
        services, conversation = self.fixture.services, await self.fixture.conversation()
        fields = {"model": "test/m", "input": items, "conversation": conversation, "when_busy": "enqueue"}
        request = CreateResponse.model_validate(fields)
        self.admission = services.response_requests.make_admission(conversation)
        accepted = self.admission.accept(request.for_llama_stack() if of_llama_stack else request)
        self.response_id = name_of("resp", await accepted)
        self.conversation_id = conversation
        return self

    async def read(self) -> Response:
        return await self.fixture.services.response_requests.get(self.response_id, ())


async def test_a_worker_that_dies_at_any_call_runs_a_response_that_waits_once(own_cloud: Cloud, tenant: str) -> None:
    def process() -> WaitingInConversation:
        return WaitingInConversation(WorkerFixture(own_cloud, tenant, script(said("Hi"), said("Hi"))))

    waiting = await process().open()
    queued = await waiting.read()
    CLOCK.move(ALIVE_SECONDS + 1)
    with counting(own_cloud) as calls:
        await waiting.work()
    ended = await waiting.read()
    assert (queued.id, queued.status, ended.id, ended.status) == (ended.id, "queued", queued.id, "completed")
    points = [(name, n) for name in WRITES for n in range(calls.count(name))]
    assert len(points) >= 6

    for operation, number in points:
        waiting = await process().open()
        CLOCK.move(ALIVE_SECONDS + 1)
        [task] = waiting.fixture.queue.waiting
        await die_at(own_cloud, operation, number, waiting.work)
        CLOCK.move(LEASE + 1)
        waiting.fixture.queue.waiting[:] = [task]
        await waiting.work()

        response = await waiting.read()
        assert response.status in ("completed", "failed"), (operation, number)
        await waiting.fixture.services.responses.contexts.conversations.reconcile(waiting.conversation_id)
        history = await waiting.fixture.store.conversations.history(tenant, waiting.conversation_id)
        assert len(history.items) == (2 if response.status == "completed" else 0), (operation, number)
        assert await waiting.admission.line.read() == []


@pytest.mark.parametrize(("of_llama_stack", "status"), [(True, "completed"), (False, "failed")])
async def test_a_response_of_llama_stacks_path_may_have_a_call_without_a_result(
    cloud: Cloud, tenant: str, of_llama_stack: bool, status: str
) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    waiting = WaitingInConversation(WorkerFixture(cloud, tenant, script(said("Hi"))))
    await waiting.open([{"role": "user", "content": "one"}, call], of_llama_stack=of_llama_stack)
    CLOCK.move(ALIVE_SECONDS + 1)

    await waiting.work()

    assert (await waiting.read()).status == status
