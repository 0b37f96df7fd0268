"""Processes of sessions that die at each storage call: no message is lost, stuck or doubled, and no tool runs twice."""

import asyncio
from functools import partial
from itertools import product

import pytest
from tests.clock import CLOCK
from tests.script_model import called, deadline, said, script
from tests.services.deaths import counting, die_at
from tests.services.polling import poll_until
from tests.services.session_process import (
    SHOP,
    SessionProcess,
    function,
    hurry,
    ids,
    message,
    read,
    result,
    types,
)
from tests.store.conftest import Cloud

from stint.caller import NO_ATTEMPT, RequestAttempt, set_attempt
from stint.domain.ids import new_id
from stint.domain.llama_stack.turns import TurnStatus
from stint.openai_agents.schemas.sessions import SessionCreateParams
from stint.openai_agents.streamed_turns import PlacedEvent
from stint.services.runs.run_handle import RequestContext

LEASE = 30.0
CALLS = (
    "GetItem",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "Query",
    "BatchGetItem",
    "BatchWriteItem",
    "TransactWriteItems",
)
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


class KeyedAttempt:
    """The attempts of a request with one idempotency key, whose record has the id of what the request creates."""

    def __init__(self) -> None:
        self.object_id = new_id()

    async def rename(self, object_id: str) -> None:
        self.object_id = object_id

    def next(self, *, repeated: bool = True) -> RequestAttempt:
        return RequestAttempt(object_id=self.object_id, repeated=repeated, rename=self.rename)


def points_of(calls: list[str], names: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(name, number) for name in names for number in range(calls.count(name))]


async def settle(process: SessionProcess) -> None:
    """Let the leases of dead processes lapse, and work off all tasks."""
    for _ in range(3):
        CLOCK.move(LEASE + 11)
        await process.work()


async def test_a_post_that_dies_at_any_call_and_is_repeated_adds_its_message_once(
    own_cloud: Cloud, tenant: str
) -> None:
    async def make() -> SessionProcess:
        return await SessionProcess(own_cloud, tenant, script(*[said()] * 9)).open()

    process = await make()
    await process.fixture.turns.turns.planner.prepare()
    with counting(own_cloud) as calls:
        await process.post(message("one"), attempt=KeyedAttempt().next(repeated=False))
    points = points_of(calls, CALLS)
    assert len(points) >= 8

    for operation, number in points:
        process = await make()
        key = KeyedAttempt()
        await die_at(
            own_cloud, operation, number, partial(process.post, message("one"), attempt=key.next(repeated=False))
        )
        await process.other_process(script()).post(message("one"), attempt=key.next())
        await settle(process)

        assert await process.inputs() == ["one"], (operation, number)
        assert process.queue.waiting == [], (operation, number)
        assert (await process.show()).status == "idle"


async def test_a_post_that_is_repeated_at_any_time_adds_its_message_once(own_cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(own_cloud, tenant, script(called("buy"), said())).open(SHOP)
    key = KeyedAttempt()
    await process.post(message("one"), attempt=key.next(repeated=False))

    async def repeat(*_: object) -> None:
        await process.other_process(script()).post(message("one"), attempt=key.next())

    await repeat()
    stream = await process.open_stream()
    async for event in stream.events():
        await repeat()
        if event.event.type == "agent.session.idle":
            break
    await repeat()
    await settle(process)

    assert await process.inputs() == ["one"]
    assert process.fixture.fake_mcp.calls == ["buy"]


async def test_a_holder_that_dies_at_any_call_loses_no_message_and_repeats_no_tool(
    own_cloud: Cloud, tenant: str
) -> None:
    async def make() -> SessionProcess:
        return await SessionProcess(own_cloud, tenant, script(called("buy"), *[said()] * 5)).open(SHOP)

    async def hold(process: SessionProcess) -> None:
        await read(await process.open_stream(), "agent.session.idle")

    process = await make()
    await process.post(message("one"))
    with counting(own_cloud) as calls:
        await hold(process)
    points = points_of(calls, WRITES)
    assert len(points) >= 8

    statuses = set()
    for operation, number in points:
        process = await make()
        await process.post(message("one"))
        await die_at(own_cloud, operation, number, partial(hold, process))
        heir = process.other_process(script(called("buy"), *[said()] * 3))
        await settle(heir)

        assert await heir.inputs() == ["one"], (operation, number)
        [turn] = await heir.stored()
        assert turn.status in (TurnStatus.completed, TurnStatus.failed), (operation, number)
        statuses.add(turn.status)
        assert len(process.fixture.fake_mcp.calls + heir.fixture.fake_mcp.calls) <= 1, (operation, number)
        shown = await heir.show()
        assert (shown.status, heir.queue.waiting) == ("idle", []), (operation, number)
    assert statuses == {TurnStatus.completed, TurnStatus.failed}


async def test_a_resume_that_dies_at_any_call_uses_each_result_once(own_cloud: Cloud, tenant: str) -> None:
    async def make() -> tuple[SessionProcess, str]:
        model = script(called("ask", "tell"), *[said()] * 5)
        process = await SessionProcess(own_cloud, tenant, model).open(function("ask"), function("tell"))
        await process.post(message("one"))
        await process.work()
        [turn] = await process.stored()
        await process.post(result(turn.turn_id, "c0"))
        return process, turn.turn_id

    async def go_on(process: SessionProcess, turn_id: str) -> None:
        await process.post(result(turn_id, "c1"))
        await process.work()

    process, turn_id = await make()
    with counting(own_cloud) as calls:
        await go_on(process, turn_id)
    points = points_of(calls, WRITES)
    assert len(points) >= 6

    for operation, number in points:
        process, turn_id = await make()
        tasks = [*process.queue.waiting]
        await die_at(own_cloud, operation, number, partial(go_on, process, turn_id))
        heir = process.other_process(script(said(), said()))
        heir.queue.waiting[:] = [*tasks, *heir.queue.waiting]
        CLOCK.move(LEASE + 1)
        await heir.post(result(turn_id, "c1"))
        await settle(heir)

        [turn] = await heir.stored()
        assert turn.status in (TurnStatus.completed, TurnStatus.failed), (operation, number)
        given = [each.call_id for step in turn.steps for each in getattr(step, "tool_responses", [])]
        assert len(given) == len(set(given)), (operation, number)
        assert turn.status is TurnStatus.failed or sorted(given) == ["c0", "c1"], (operation, number)
        assert ((await heir.show()).status, heir.queue.waiting) == ("idle", []), (operation, number)


async def test_a_post_to_a_running_turn_that_dies_at_any_call_adds_its_message_once(
    own_cloud: Cloud, tenant: str
) -> None:
    async def make() -> tuple[SessionProcess, asyncio.Task[None], asyncio.Event]:
        process = await SessionProcess(own_cloud, tenant, script(called("buy"), *[said()] * 5)).open(SHOP)
        gate = process.fixture.fake_mcp.gates["buy"] = asyncio.Event()
        await process.post(message("one"))
        working = asyncio.create_task(process.work())

        async def is_called() -> bool:
            return bool(process.fixture.fake_mcp.calls)

        await poll_until(is_called)
        return process, working, gate

    process, working, gate = await make()
    poster = process.other_process(script())
    with counting(own_cloud) as calls:
        await poster.post(message("two"), attempt=KeyedAttempt().next(repeated=False))
    gate.set()
    await working
    points = points_of(calls, WRITES)
    assert len(points) >= 3

    for operation, number in points:
        process, working, gate = await make()
        key = KeyedAttempt()
        poster = process.other_process(script())
        await die_at(
            own_cloud, operation, number, partial(poster.post, message("two"), attempt=key.next(repeated=False))
        )
        await poster.post(message("two"), attempt=key.next())
        gate.set()
        await working
        await poster.post(message("two"), attempt=key.next())
        await settle(process)

        assert await process.inputs() == ["one", "two"], (operation, number)
        assert ((await process.show()).status, process.queue.waiting) == ("idle", []), (operation, number)


async def test_streams_and_the_worker_take_each_message_once(own_cloud: Cloud, tenant: str) -> None:
    answers = [said()] * 20
    process = await SessionProcess(own_cloud, tenant, script(*answers)).open()
    holders = [process.other_process(script(*answers)) for _ in range(3)]
    texts = [f"message {number}" for number in range(6)]

    def has_all(events: list[PlacedEvent]) -> bool:
        return sum(is_input(each) for each in events) == len(texts) and types(events)[-1] == "idle"

    async def post_and_work() -> None:
        posts = [each.post(message(text)) for each, text in zip(holders * 2, texts, strict=True)]
        await asyncio.gather(*posts)
        for _ in range(5):  # tasks are delayed: none arrives before its request has ended
            await process.work()

    streams = [read(await each.open_stream(), has_all) for each in holders]
    working = asyncio.create_task(post_and_work())
    first, *others = await asyncio.gather(*streams)
    await working
    await settle(process)

    assert sorted(await process.inputs()) == texts
    assert len(ids(first)) == len(set(ids(first)))
    assert ids(first) == ids(others[0]) == ids(others[1])


def is_input(placed: PlacedEvent) -> bool:
    event = placed.event
    return event.type == "agent.session.turn.item.added" and event.output_index is None


@pytest.mark.parametrize("number", range(4))
async def test_the_last_results_of_two_processes_let_the_turn_go_on_once(
    own_cloud: Cloud, tenant: str, number: int
) -> None:
    answers = [said("after"), said("again")]
    process = await SessionProcess(own_cloud, tenant, script(called("ask", "tell"), *answers)).open(
        function("ask"), function("tell")
    )
    await process.post(message("one"))
    await process.work()
    [turn] = await process.stored()
    models = [script(*answers) for _ in range(4)]
    others = [process.other_process(model) for model in models]
    streams = [read(await each.open_stream(), "agent.session.idle") for each in others[:2]]
    posts = [each.post(result(turn.turn_id, f"c{place}")) for place, each in enumerate(others[2:])]

    async def work(after: float) -> None:
        await asyncio.sleep(after)
        for _ in range(5):
            await others[3].work()

    await asyncio.gather(*streams, *posts, work(0.004 * number))
    await settle(process)

    [turn] = await process.stored()
    kinds = [step.step_type for step in turn.steps]
    assert (turn.status, kinds) == (TurnStatus.completed, ["inference", "tool_execution", "inference"])
    assert sum(len(model.requests) for model in models) == 1


async def test_a_stream_that_is_joined_again_at_each_event_has_each_event_once(own_cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(own_cloud, tenant, script(called("ask"), *[said()] * 3)).open(function("ask"))
    whole: list[PlacedEvent] = []

    async def join(last_id: str, until: str) -> list[PlacedEvent]:
        return await read(await process.other_process(script()).open_stream(last_id), until)

    await process.post(message("one"))
    stream = await process.open_stream()
    whole += await read(stream, "agent.session.requires_action")
    [turn] = await process.stored()
    await process.post(result(turn.turn_id, "c0"))
    await process.post(message("two"))
    await settle(process)

    first = str(whole[0].position)
    rest = [whole[0], *await join(first, "agent.session.idle")]
    rest += await join(str(rest[-1].position), "agent.session.idle")
    assert ids(rest)[: len(whole)] == ids(whole)
    assert len(ids(rest)) == len(set(ids(rest)))
    for place, each in enumerate(rest[:-1]):
        left = rest[place + 1 :]
        again = await read(
            await process.other_process(script()).open_stream(str(each.position)), partial(has_count, len(left))
        )
        assert ids(again) == ids(left)


def has_count(count: int, events: list[PlacedEvent]) -> bool:
    return len(events) == count


async def test_a_creation_that_dies_twice_at_any_call_makes_one_session_with_its_message(
    own_cloud: Cloud, tenant: str
) -> None:
    body = {"environment": {"type": "none"}, "agent": {"model": "test/m"}, "input": "one"}
    params = SessionCreateParams.model_validate(body)

    async def create(process: SessionProcess, key: KeyedAttempt, *, repeated: bool = True) -> None:
        attempt = key.next(repeated=repeated)
        set_attempt(attempt)
        view = await process.services.agent_sessions.create(params, RequestContext(deadline(30), attempt))
        process.agent_id, process.session_id = view.agent_id, view.session_id

    def make(tenant: str) -> SessionProcess:
        return SessionProcess(own_cloud, tenant, script(*[said()] * 3))

    process = make(tenant)
    with counting(own_cloud) as calls:
        await create(process, KeyedAttempt(), repeated=False)
    points = points_of(calls, WRITES)
    assert len(points) >= 4

    sample = [*product(points, points)][::4]
    for number, (first, second) in enumerate(sample):
        process, key = make(f"{tenant}x{number}"), KeyedAttempt()
        await die_at(own_cloud, *first, partial(create, process, key, repeated=False))
        await die_at(own_cloud, *second, partial(create, process, key))
        await create(process, key)
        await settle(process)

        index = process.fixture.store.session_index
        sessions, _ = await index.list(process.fixture.tenant, after=None, limit=9, newest_first=True)
        found = []
        for session in sessions:
            process.agent_id, process.session_id = session.agent_id, session.session_id
            found += await process.inputs()
        assert found == ["one"], (first, second)
    set_attempt(NO_ATTEMPT)
