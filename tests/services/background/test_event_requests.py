import asyncio
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import called, deadline, said, script, until
from tests.services.conftest import MakeWorkerFixture
from tests.services.turn_fixture import keep_running, tool
from tests.services.worker_fixture import WorkerFixture

from stint.domain.errors import StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.notifications.completion_events import CompletionEvent, ResponseFinished, TurnFinished
from stint.domain.notifications.request_events import REQUEST_EVENT
from stint.models.port import ChatModel


class Events:
    """Events that ask for turns of one session, and for responses."""

    def __init__(self, worker_fixture: WorkerFixture) -> None:
        self.worker_fixture = worker_fixture
        self.agent_id = self.session_id = ""

    async def open(self) -> "Events":
        self.agent_id = await self.worker_fixture.turns.agents.create(AgentConfig(model="test/m", instructions=""))
        self.session_id = await self.worker_fixture.turns.sessions.create(self.agent_id, "talk")
        return self

    def other_process(self, model: ChatModel) -> "Events":
        """The same events in another process."""
        other = Events(self.worker_fixture.other_process(model))
        other.agent_id, other.session_id = self.agent_id, self.session_id
        return other

    async def turn(self, event_id: str, text: str = "Hello", seconds: float = 30, **detail: Any) -> TurnFinished | None:
        place = {"agent_id": self.agent_id, "session_id": self.session_id}
        said = {"messages": [{"role": "user", "content": text}]}
        ended = await self.do("Stint Turn Requested", event_id, place | said | detail, seconds)
        assert ended is None or isinstance(ended, TurnFinished)
        return ended

    async def response(self, event_id: str, seconds: float = 30, **detail: Any) -> ResponseFinished | None:
        body = {"model": "test/m", "input": "Hello"} | detail
        ended = await self.do("Stint Response Requested", event_id, body, seconds)
        assert ended is None or isinstance(ended, ResponseFinished)
        return ended

    async def do(
        self, detail_type: str, event_id: str, detail: dict[str, Any], seconds: float
    ) -> CompletionEvent | None:
        request = REQUEST_EVENT.validate_python({"id": event_id, "detail-type": detail_type, "detail": detail})
        return await self.worker_fixture.event_requests.handle(request, event_id, deadline(seconds))

    @property
    def kinds(self) -> list[str]:
        return [kind for _, kind in self.worker_fixture.queue.kinds]


async def test_an_event_begins_a_turn_that_can_be_read_and_its_end_is_announced(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    events = await Events(make_worker_fixture(script(said("Hi")))).open()

    ended = await events.turn("e1")

    assert ended is not None
    assert ended.turn_id is not None
    turn = await events.worker_fixture.turns.turns.get(events.agent_id, events.session_id, ended.turn_id)
    assert (turn.status, turn.output_message.content) == ("completed", "Hi")
    assert events.kinds == ["Stint Turn Completed"]
    assert events.worker_fixture.queue.ends == [ended]
    assert (ended.event_id, ended.agent_id, ended.session_id) == ("e1", events.agent_id, events.session_id)


async def test_an_event_begins_a_response_that_can_be_read_and_its_end_is_announced(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    events = Events(make_worker_fixture(script(said("Hi"))))

    ended = await events.response("e1", metadata={"order": "7"})

    assert ended is not None
    assert ended.response_id is not None
    response = await events.worker_fixture.get(ended.response_id)
    assert (response.status, response.background, response.metadata) == ("completed", True, {"order": "7"})
    assert events.kinds == ["Stint Response Completed"]
    assert events.worker_fixture.queue.ends == [ended]
    assert events.worker_fixture.queue.tasks == []


async def test_an_event_that_comes_again_begins_nothing_and_ends_the_same(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    events = await Events(make_worker_fixture(script(said("Hi"), said("Hi")))).open()
    turn, response = await events.turn("e1"), await events.response("e2")

    again = await events.other_process(script()).turn("e1"), await events.other_process(script()).response("e2")

    assert again == (turn, response)
    assert len(events.kinds) == 2


async def test_events_at_the_same_time_begin_one_thing(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    model = script([gate, *said()])
    events = await Events(make_worker_fixture(model)).open()
    records = events.worker_fixture.event_requests.records
    first = asyncio.create_task(events.turn("e1", seconds=900))
    await model.opened.wait()

    second = asyncio.create_task(events.other_process(script()).turn("e1", seconds=900))
    await keep_running(
        second, lambda: records.held_until(events.worker_fixture.tenant, "e1"), events.worker_fixture.lease
    )
    assert await second is None
    gate.set()

    ended = await first
    assert ended is not None
    assert ended.status is TurnStatus.completed
    assert len(await all_turns(events)) == 1


async def test_a_turn_whose_worker_died_is_told_as_failed_and_not_begun_again(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script([asyncio.Event()])
    events = await Events(make_worker_fixture(model)).open()
    working = asyncio.create_task(events.turn("e1"))
    while not await all_turns(events):  # noqa: ASYNC110 - a thread stores the header while the model is called
        await asyncio.sleep(0.005)
    events.worker_fixture.stop_database()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    events.worker_fixture.restart_database()
    CLOCK.move(events.worker_fixture.lease)

    ended = await events.other_process(script()).turn("e1")

    assert ended is not None
    assert ended.error is not None
    assert (ended.status, ended.error.code) == ("failed", "interrupted")
    assert len(await all_turns(events)) == 1
    assert events.kinds == ["Stint Turn Failed"]


async def test_a_response_whose_worker_died_is_gone_on_with(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script([asyncio.Event()])
    events = Events(make_worker_fixture(model))
    working = asyncio.create_task(events.response("e1"))
    await until(lambda: model.requests)
    events.worker_fixture.stop_database()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    events.worker_fixture.restart_database()
    CLOCK.move(events.worker_fixture.lease)

    ended = await events.other_process(script(said())).response("e1")

    assert ended is not None
    assert ended.status == "completed"
    listed = await events.worker_fixture.services.stored_responses.list(None, 10, None, "desc")
    assert [response.id for response in listed.data] == [ended.response_id]


async def test_what_is_refused_is_announced_as_failed_and_not_tried_again(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    events = await Events(make_worker_fixture(script())).open()

    no_agent = await events.turn("e1", agent_id=new_id())
    no_model = await events.response("e2", model="nowhere")

    assert no_agent is not None
    assert no_agent.error is not None
    assert (no_agent.turn_id, no_agent.status, no_agent.error.code) == (None, "failed", "agent_not_found")
    assert no_model is not None
    assert no_model.error is not None
    assert (no_model.response_id, no_model.status) == (None, "failed")
    assert "nowhere" in no_model.error.message
    assert events.kinds == ["Stint Turn Failed", "Stint Response Failed"]
    assert await events.turn("e1", agent_id=no_agent.agent_id) == no_agent


async def test_a_turn_waits_for_its_session(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    model = script([gate, *said("first")], said("second"))
    events = await Events(make_worker_fixture(model)).open()
    first = asyncio.create_task(events.turn("e1"))
    await model.opened.wait()
    second = asyncio.create_task(events.turn("e2"))
    await asyncio.sleep(0.2)

    gate.set()
    ends = await first, await second

    assert [end.status for end in ends if end] == ["completed", "completed"]


async def test_a_failing_store_is_raised_and_the_event_may_be_tried_at_once(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    events = await Events(make_worker_fixture(script(said(), said()))).open()
    events.worker_fixture.queue.refuses = True
    with pytest.raises(StoreUnavailable):
        await events.turn("e1")
    events.worker_fixture.queue.refuses = False

    ended = await events.turn("e1")

    assert ended is not None
    assert ended.status == "completed"
    assert len(await all_turns(events)) == 1


async def test_a_turn_that_waits_for_its_client_is_complete_as_far_as_the_event_goes(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    events = await Events(make_worker_fixture(script(called("add")))).open()

    ended = await events.turn("e1", client_tools=[tool("add").model_dump()])

    assert ended is not None
    assert ended.status == "awaiting_input"
    assert events.kinds == ["Stint Turn Completed"]


async def test_an_event_costs_three_units_for_a_turn_and_two_for_a_response(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    events = await Events(make_worker_fixture(script(said("Hi"), said("Hi")))).open()
    events.worker_fixture.cloud.forget()

    await events.response("e1")
    response = written(events.worker_fixture)
    await events.turn("e2")

    assert response == 4 + 2
    assert written(events.worker_fixture) - response == 4 + 3


def written(worker_fixture: WorkerFixture) -> float:
    return sum(worker_fixture.cloud.units[name] for name in ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem"))


async def all_turns(events: Events) -> list[Any]:
    history = await events.worker_fixture.cloud.store.turns.history(
        events.worker_fixture.tenant,
        events.agent_id,
        events.session_id,
    )
    return list(history.turns)
