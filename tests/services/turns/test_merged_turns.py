"""Messages that the running turn takes before its next model call."""

import asyncio
import time
from collections.abc import Sequence

import pytest
from tests.clock import CLOCK
from tests.script_model import called, deadline, said, script, until, words_of
from tests.services.deaths import counting, die_at
from tests.services.turn_fixture import TurnFixture, ended
from tests.services.turns.test_turn_tools import FakeTools, Making
from tests.services.turns.test_waiting_turns import admission, line, message
from tests.store.conftest import Cloud

from stint.caller import acting_as
from stint.domain.errors import RateLimitExceeded
from stint.domain.ids import new_id
from stint.domain.inference import ModelMessage
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnStatus
from stint.domain.principals import Budgets, Principal
from stint.services.runs.admission import StartedRun
from stint.services.runs.run_handle import RequestContext
from stint.store import keys
from stint.tools.port import Invocation, ToolOutcome


def texts(messages: Sequence[ModelMessage]) -> list[str]:
    return [words_of(each) for each in messages]


class Merging:
    """A turn whose tool runs while messages are accepted: before the next model call."""

    def __init__(self, cloud: Cloud, tenant: str, *bodies: TurnCreateRequest) -> None:
        self.model = script(called("add"), said("Done"), said("Again"))
        self.bodies = bodies or (message("and two", "merge"),)
        self.ids: list[str] = []
        self.making = Making(cloud, tenant, FakeTools(self.act))

    async def open(self) -> TurnFixture:
        self.fixture = await self.making.turn_fixture(self.model)
        return self.fixture

    async def act(self, _: Invocation) -> ToolOutcome:
        for body in self.bodies:
            self.ids.append(await admission(self.fixture).accept(body))
        return ToolOutcome("3")

    async def follow(self, message_id: str) -> Turn:
        """Return the turn of a message as its request gets it."""
        started = await admission(self.fixture).start(message_id, self.bodies[0], RequestContext(deadline(600)))
        assert isinstance(started, StartedRun)
        retries = self.fixture.services.turn_requests.retries
        ids = self.fixture.agent_id, self.fixture.session_id
        events = await retries.follow_message(*ids, message_id, started.run_id, deadline(600))
        return ended([numbered.event async for numbered in events])


async def test_the_running_turn_gets_a_message_before_its_next_model_call(own_cloud: Cloud, tenant: str) -> None:
    merging = Merging(own_cloud, tenant)
    fixture = await merging.open()

    turn = await fixture.turn("one")

    assert texts(merging.model.requests[1].messages) == ["one", "", "3", "and two"]
    assert [each.content for each in turn.input_messages] == ["one", "and two"]
    assert await line(fixture).read() == []
    assert (await fixture.get(turn.turn_id)).input_messages == turn.input_messages
    followed = await merging.follow(merging.ids[0])
    assert (followed.turn_id, followed.status) == (turn.turn_id, TurnStatus.completed)
    assert (await fixture.get(merging.ids[0])).turn_id == turn.turn_id

    another = await merging.making.turn_fixture(merging.model)
    another.agent_id, another.session_id = fixture.agent_id, fixture.session_id
    for process in (fixture, another):
        merging.model.answers.append(said())
        await process.turn("three")
        assert texts(merging.model.requests[-1].messages)[:5] == ["one", "", "3", "and two", "Done"]


async def test_a_heartbeat_with_the_id_of_a_merged_message_is_one_of_the_running_turn(
    own_cloud: Cloud, tenant: str
) -> None:
    fixture = await (merging := Merging(own_cloud, tenant)).open()
    silence = asyncio.Event()
    merging.model.answers[1] = [silence, *said("Done")]
    running = asyncio.create_task(fixture.turn("one"))
    await until(lambda: len(merging.model.requests) == 2)

    cancellation = fixture.services.turn_requests.cancellation
    await cancellation.receive_heartbeat(fixture.agent_id, fixture.session_id, merging.ids[0])
    record = await fixture.store._table.get(keys.session_state(*fixture.ids)) or {}
    silence.set()

    assert record["heartbeat_turn"] == (await running).turn_id


async def test_only_messages_of_the_same_caller_are_merged(own_cloud: Cloud, tenant: str) -> None:
    fixture = await (merging := Merging(own_cloud, tenant)).open()

    with acting_as(Principal(tenant, "someone", frozenset({"use"}), key_id="k1")):
        waiting = await admission(fixture).accept(message("of another key", "merge"))
    await fixture.turn("one")

    assert [place.message_id for place in await line(fixture).read()] == [waiting]
    assert texts(merging.model.requests[1].messages) == ["one", "", "3", "and two"]


async def test_requests_with_more_than_messages_get_a_turn_of_their_own(own_cloud: Cloud, tenant: str) -> None:
    body = message("and two", "merge")
    other, enqueued = body.model_copy(update={"instructions": "Be brief."}), message("and three")
    fixture = await (merging := Merging(own_cloud, tenant, other, enqueued, body)).open()

    await fixture.turn("one")

    assert [place.message_id for place in await line(fixture).read()] == merging.ids[:2]


async def test_a_message_that_comes_after_the_last_model_call_gets_a_turn_of_its_own(
    own_cloud: Cloud, tenant: str
) -> None:
    fixture = await (merging := Merging(own_cloud, tenant)).open()
    silence = asyncio.Event()
    merging.model.answers[:] = [[silence, *said("Done")], said("Again")]
    running = asyncio.create_task(fixture.turn("one"))
    await merging.model.opened.wait()

    waiting = await admission(fixture).accept(merging.bodies[0])
    silence.set()
    await running
    run = await admission(fixture).start(waiting, merging.bodies[0], RequestContext(deadline(600)))

    assert not isinstance(run, StartedRun)
    assert ended(await fixture.play(run)).turn_id == waiting
    assert [turn.input_messages[0].content for turn in await fixture.stored()] == ["one", "and two"]


async def test_a_cancelled_message_is_not_merged(own_cloud: Cloud, tenant: str) -> None:
    fixture = await (merging := Merging(own_cloud, tenant)).open()
    accept = merging.act

    async def accept_and_cancel(invocation: Invocation) -> ToolOutcome:
        outcome = await accept(invocation)
        cancellation = fixture.services.turn_requests.cancellation
        await cancellation.cancel(fixture.agent_id, fixture.session_id, merging.ids[0])
        return outcome

    merging.making.workshop.act = accept_and_cancel

    await fixture.turn("one")

    assert texts(merging.model.requests[1].messages) == ["one", "", "3"]
    assert (await fixture.get(merging.ids[0])).status is TurnStatus.cancelled


async def test_messages_over_the_budget_of_a_minute_are_not_merged(own_cloud: Cloud, tenant: str) -> None:
    fixture = await (merging := Merging(own_cloud, tenant, *[message(text, "merge") for text in "abc"])).open()

    with (
        CLOCK.stop(),
        acting_as(Principal(tenant, "s", frozenset({"use"}), "k1", budgets=Budgets(requests_per_minute=3))),
    ):
        CLOCK.move(60 - time.time() % 60 + 0.01)
        turn = await fixture.turn("one")
        with pytest.raises(RateLimitExceeded):
            await fixture.start("two")

    assert [each.content for each in turn.input_messages] == ["one", "a", "b"]
    assert [place.message_id for place in await line(fixture).read()] == merging.ids[2:]


async def test_a_message_that_is_claimed_already_is_not_counted_again(own_cloud: Cloud, tenant: str) -> None:
    fixture = await Merging(own_cloud, tenant).open()
    with (
        CLOCK.stop(),
        acting_as(Principal(tenant, "s", frozenset({"use"}), "k1", budgets=Budgets(requests_per_minute=2))),
    ):
        CLOCK.move(60 - time.time() % 60 + 0.01)
        lost = await admission(fixture).accept(message("zero", "merge"))
        assert await line(fixture).claim_merge(lost, new_id())
        turn = await fixture.turn("one")

    assert [each.content for each in turn.input_messages] == ["one", "and two"]


@pytest.mark.parametrize(("operation", "marker"), [("UpdateItem", "merged_into"), ("DeleteItem", "waiting_session")])
async def test_a_turn_goes_on_after_errors_of_its_messages(
    own_cloud: Cloud, tenant: str, operation: str, marker: str
) -> None:
    merging = Merging(own_cloud, tenant)
    fixture = await merging.open()

    with own_cloud.proxy.failing(operation, marker):
        turn = await fixture.turn("one")
    run = await admission(fixture).start(merging.ids[0], merging.bodies[0], RequestContext(deadline(600)))
    if not isinstance(run, StartedRun):
        await fixture.play(run)

    assert turn.status is TurnStatus.completed
    said_texts = [each.content for stored in await fixture.stored() for each in stored.input_messages]
    assert said_texts == ["one", "and two"]
    assert await line(fixture).read() == []


async def test_a_turn_that_dies_at_any_call_loses_and_doubles_no_message(own_cloud: Cloud, tenant: str) -> None:
    fixture = await Merging(own_cloud, tenant).open()
    with counting(own_cloud) as calls:
        await fixture.turn("one")
    points = [(name, n) for name in ("PutItem", "UpdateItem", "DeleteItem") for n in range(calls.count(name))]
    assert len(points) >= 9

    merged = own = 0
    for operation, number in points:
        merging = Merging(own_cloud, tenant)
        fixture = await merging.open()
        await die_at(own_cloud, operation, number, lambda process=fixture: process.turn("one"))  # type: ignore[misc]
        CLOCK.move(30)
        merging.model.answers[:] = [said() for _ in range(9)]
        for message_id in merging.ids:
            run = await admission(fixture).start(message_id, merging.bodies[0], RequestContext(deadline(600)))
            if not isinstance(run, StartedRun):
                await fixture.play(run)

        said_texts = [each.content for turn in await fixture.stored() for each in turn.input_messages]
        assert said_texts.count("and two") == len(merging.ids), (operation, number, said_texts)
        assert await line(fixture).read() == []
        merged += any(len(turn.input_messages) > 1 for turn in await fixture.stored())
        own += any(turn.input_messages[0].content == "and two" for turn in await fixture.stored())
    assert merged
    assert own
