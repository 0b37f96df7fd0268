"""Sessions that start with copies of another one's turns."""

import asyncio
import secrets
from contextlib import nullcontext, suppress
from math import ceil
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import called, said, script
from tests.services.conftest import MakeTurnFixture
from tests.services.knowledge.killable import Death, Killed, killable_store
from tests.services.turn_fixture import TurnFixture, die
from tests.services.turns.test_turn_costs import write_units
from tests.store.conftest import Cloud

from stint.caller import NO_ATTEMPT, RequestAttempt, set_attempt, set_end_user
from stint.domain.errors import Conflict, InvalidRequest, NotFound, Stopped, StoreUnavailable
from stint.domain.expiry import Expiry
from stint.domain.ids import new_id
from stint.domain.inference import AssistantAnswer, ToolResult, UserInput
from stint.domain.llama_stack.copied_turns import copy_record
from stint.domain.llama_stack.sessions import ForkFrom
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, InferenceStep, StepUsage, ToolExecutionStep
from stint.domain.tasks import UPLOAD_DELAY, SentTask
from stint.domain.tools import ToolResponse
from stint.models.port import ChatModel
from stint.services.deletions import Deletions
from stint.services.turns.code_outputs import keep_outputs
from stint.store import forks, keys
from stint.store.items import size
from stint.store.owners import hash_user
from stint.store.store import Store

LARGE = secrets.token_urlsafe(375_000)
"""A text that is stored as an object."""


async def fork(process: TurnFixture, turn_id: str, model: ChatModel | None = None, **request: Any) -> TurnFixture:
    """Fork the session of a process from a turn, and return a process that serves the fork."""
    source = ForkFrom(session_id=process.session_id, turn_id=turn_id)
    other = process.other_process(model or script())
    other.session_id = await process.sessions.create(process.agent_id, "fork", fork_from=source, **request)
    return other


def shown(turn: Turn) -> dict[str, Any]:
    """Return a turn without what differs in its copy."""
    found = turn.model_dump(mode="json", exclude={"turn_id", "session_id", "receipt"})
    for step in found["steps"]:
        del step["turn_id"]
    return found


async def test_the_model_sees_the_turns_of_a_fork_as_messages(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(script(said("One"), called("add"), said("Three"), said("Later"))).open("add")
    await process.turn("First")
    second = await process.turn("Second")
    second = await process.resumed(second.turn_id, ("c0", "3"))
    await process.turn("After the fork")
    model = script(said("Other"))

    forked = await fork(process, second.turn_id, model)
    turn = await forked.turn("Third")

    assert turn.output_message.content == "Other"
    messages = model.requests[0].messages
    assert [type(each) for each in messages] == [
        *(UserInput, AssistantAnswer, UserInput, AssistantAnswer, ToolResult, AssistantAnswer, UserInput)
    ]
    texts = [each.content if isinstance(each, UserInput) else None for each in messages]
    assert [text for text in texts if text] == ["First", "Second", "Third"]
    assert [len(await each.stored()) for each in (process, forked)] == [3, 3]


async def test_the_turns_of_a_fork_are_copies_with_their_own_ids(make_turn_fixture: MakeTurnFixture) -> None:
    failure = RuntimeError("broken")
    process = await make_turn_fixture(script(said("One"), [*said("Two")[:1], failure], said("Three"))).open()
    turns = [await process.turn(text) for text in ("First", "Second", "Third")]

    forked = await fork(process, turns[2].turn_id)

    session = await forked.sessions.get(forked.agent_id, forked.session_id)
    assert [turn.status for turn in turns] == [TurnStatus.completed, TurnStatus.failed, TurnStatus.completed]
    assert [shown(turn) for turn in session.turns] == [shown(turn) for turn in await process.stored()]
    assert not {turn.turn_id for turn in session.turns} & {turn.turn_id for turn in turns}
    assert {turn.session_id for turn in session.turns} == {forked.session_id}
    assert {step.turn_id for turn in session.turns for step in turn.steps} <= {turn.turn_id for turn in session.turns}
    assert [turn.receipt for turn in session.turns] == [None] * 3
    assert turns[2].receipt is not None
    assert session.forked_from is not None
    origin = session.forked_from
    assert (origin.session_id, origin.turn_id, origin.complete) == (process.session_id, turns[2].turn_id, True)


async def test_a_fork_stays_readable_when_its_source_is_deleted(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(script(said(LARGE))).open()
    turn = await process.turn(LARGE)
    before = await process.stored()

    forked = await fork(process, turn.turn_id)
    await process.sessions.delete(process.agent_id, process.session_id)

    assert [shown(each) for each in await forked.stored()] == [shown(each) for each in before]
    await forked.sessions.delete(forked.agent_id, forked.session_id)
    with pytest.raises(NotFound):
        await forked.sessions.get(forked.agent_id, forked.session_id)


async def test_nothing_is_left_of_a_deleted_fork_and_its_source(cloud: Cloud, tenant: str) -> None:
    process = await TurnFixture(cloud.store, tenant, script(said(LARGE))).open()
    turn = await process.turn()
    assert cloud.blobs(tenant)
    forked = await fork(process, turn.turn_id)

    await process.agents.delete(process.agent_id)

    assert [item for item in cloud.items(tenant) if "sealed_at" not in item] == []
    assert cloud.blobs(tenant) == []
    with pytest.raises(NotFound):
        await forked.sessions.get(forked.agent_id, forked.session_id)


async def test_a_fork_of_a_fork_has_the_turns_of_both(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(script(said("One"))).open()
    first = await process.turn("First")
    forked = await fork(process, first.turn_id, script(said("Two")))
    second = await forked.turn("Second")

    again = await fork(forked, second.turn_id)

    assert [shown(turn) for turn in await again.stored()] == [shown(turn) for turn in await forked.stored()]


async def test_the_last_complete_turn_of_a_fork_can_be_resumed(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(script(said("One"))).open("add")
    turn = await process.turn()
    forked = await fork(process, turn.turn_id, script(said("Two")))
    [copy] = await forked.stored()

    resumed = await forked.resumed(copy.turn_id, ("c0", "3"))

    assert (resumed.turn_id, resumed.output_message.content) == (copy.turn_id, "Two")
    assert resumed.receipt is not None
    assert [each.output_message.content for each in await process.stored()] == ["One"]


async def test_a_turn_that_waits_or_runs_is_refused_by_name(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(script(called("add"), [asyncio.Event(), *said()])).open("add")
    waiting = await process.turn()

    with pytest.raises(Conflict, match=r"waits for the results of its client's tools\. Resume it") as refused:
        await fork(process, waiting.turn_id)
    running = await process.start()
    with pytest.raises(Conflict, match=r"is still running\. Wait for its end") as busy:
        await fork(process, running.turn_id)
    await die(running)

    assert [each.value.code for each in (refused, busy)] == ["turn_not_ended"] * 2
    cancelled = await fork(process, waiting.turn_id)
    assert [turn.status for turn in await cancelled.stored()] == [TurnStatus.cancelled]
    interrupted = await fork(process, running.turn_id)
    assert [turn.status for turn in await interrupted.stored()] == [TurnStatus.cancelled, TurnStatus.failed]


async def test_a_stopped_session_is_not_forked(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    process = await make_turn_fixture(script(said())).open()
    turn = await process.turn()
    await cloud.store.stops.add(process.tenant, f"session:{process.session_id}", 1_700_000_000)
    source = ForkFrom(session_id=process.session_id, turn_id=turn.turn_id)
    other = process.other_process(script())

    with pytest.raises(Stopped):
        async with other.services.meters.request():
            await other.sessions.create(process.agent_id, "fork", fork_from=source)

    assert other.inbox.tasks == []


async def test_unknown_sessions_and_turns_are_not_found(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(script(said(), said())).open()
    turn = await process.turn()
    other = await make_turn_fixture(script(said())).open()
    foreign = await other.turn()

    for session_id, turn_id in (
        (process.session_id, foreign.turn_id),
        (process.session_id, new_id()),
        (process.session_id, "nothing"),
        (other.session_id, foreign.turn_id),
        (new_id(), turn.turn_id),
        ("nothing", turn.turn_id),
    ):
        with pytest.raises(NotFound):
            await process.sessions.create(
                process.agent_id, "fork", fork_from=ForkFrom(session_id=session_id, turn_id=turn_id)
            )
    assert process.inbox.tasks == []


async def test_a_long_history_is_copied_as_far_as_the_model_sees_it(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(script(*[said("x" * 4_000)] * 6), history=15_000).open()
    turns = [await process.turn(str(number)) for number in range(6)]

    forked = await fork(process, turns[4].turn_id)

    session = await forked.sessions.get(forked.agent_id, forked.session_id)
    assert [turn.input_messages[0].content for turn in session.turns] == ["2", "3", "4"]
    assert session.forked_from is not None
    assert not session.forked_from.complete


async def test_a_turn_that_is_too_large_is_refused(
    make_turn_fixture: MakeTurnFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await make_turn_fixture(script(said(), said("x" * 4_000))).open()
    turns = [await process.turn() for _ in range(2)]
    monkeypatch.setattr(forks, "MOST_BYTES", 4_000)

    with pytest.raises(InvalidRequest, match="Fork from an earlier turn") as refused:
        await fork(process, turns[1].turn_id)

    assert (refused.value.code, refused.value.param) == ("turn_too_large", "fork_from")
    monkeypatch.setattr(forks, "MOST_RECORDS", 2)
    assert len(await (await fork(process, turns[0].turn_id)).stored()) == 1


async def test_a_session_with_its_own_vector_db_is_refused(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    process = await make_turn_fixture(script(said())).open()
    turn = await process.turn()
    lease = await cloud.store.session_leases.acquire(*process.ids, new_id(), resume=False, seconds=30)
    await lease.add_vector_db("vs_" + "0" * 32)
    await lease.release()

    with pytest.raises(InvalidRequest, match="a vector db of its own") as refused:
        await fork(process, turn.turn_id)

    assert (refused.value.code, refused.value.param) == ("session_has_vector_db", "fork_from")


async def test_files_of_code_are_copied(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    process = await make_turn_fixture(script(said())).open()
    turn = await process.turn()
    lease = await cloud.store.session_leases.acquire(*process.ids, new_id(), resume=False, seconds=30)
    await keep_outputs(cloud.store.session_files, lease, {"a.txt": b"1", "b.txt": b"2"}, [])
    await lease.release()

    forked = await fork(process, turn.turn_id)
    await process.sessions.delete(process.agent_id, process.session_id)

    lease = await cloud.store.session_leases.acquire(*forked.ids, new_id(), resume=False, seconds=30)
    assert await cloud.store.session_files.read(lease) == {"a.txt": b"1", "b.txt": b"2"}


@pytest.mark.parametrize(("moment", "copied"), [("Query", {"a.txt", "b.txt"}), ("BatchWriteItem", {"a.txt"})])
async def test_files_that_code_replaces_meanwhile_are_copied(
    own_cloud: Cloud, tenant: str, moment: str, copied: set[str]
) -> None:
    process = await TurnFixture(own_cloud.store, tenant, script(said())).open()
    turn = await process.turn()
    await keep_file(own_cloud.store, process, "a.txt")
    moments = [moment]

    def replace_files(operation: str, _body: str) -> None:
        if operation in moments:
            moments.clear()
            asyncio.run(keep_file(own_cloud.other_process(), process, "b.txt"))

    with own_cloud.proxy.watching(replace_files):
        forked = await fork(process, turn.turn_id)

    assert not moments
    lease = await own_cloud.store.session_leases.acquire(*forked.ids, new_id(), resume=False, seconds=30)
    assert set(await own_cloud.store.session_files.read(lease)) == copied


async def test_files_that_cannot_be_copied_are_a_conflict(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    process = await make_turn_fixture(script(said())).open()
    turn = await process.turn()
    await keep_file(cloud.store, process, "a.txt")
    for key in cloud.blobs(process.tenant):
        cloud.s3.delete_object(Bucket=cloud.bucket, Key=key)

    with pytest.raises(Conflict, match="replaces its files"):
        await fork(process, turn.turn_id)


async def keep_file(store: Store, process: TurnFixture, name: str) -> None:
    """Add a file to the session of a process, as code does."""
    async with asyncio.timeout(30):
        lease = await store.session_leases.acquire(*process.ids, new_id(), resume=False, seconds=30)
        await keep_outputs(store.session_files, lease, {name: b"1"}, [])
        await lease.release()


async def test_a_fork_that_was_resumed_is_not_the_one_of_a_retry(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(script(said("One"))).open("add")
    forked = await fork(process, (await process.turn()).turn_id, script(said("Two")))
    set_attempt(RequestAttempt(fingerprint="f" * 32, retry_count=1))
    assert await forked.sessions.find_created(forked.agent_id, forked.session_id) == forked.session_id
    [copy] = await forked.stored()

    await forked.resumed(copy.turn_id, ("c0", "3"))

    with pytest.raises(NotFound):
        await forked.sessions.find_created(forked.agent_id, forked.session_id)
    set_attempt(NO_ATTEMPT)


def test_a_copied_step_has_no_price_and_no_object_of_its_source() -> None:
    common = {"turn_id": "a", "step_id": new_id(), "started_at": now()}
    usage = StepUsage(input_tokens=3, output_tokens=2, dollars=0.5)
    answer = InferenceStep(**common, model_response=CompletionMessage(content="Hi"), usage=usage)
    metadatas: list[dict[str, Any]] = [{"full_result": "key", "status": 200}, {"full_result": "key"}]
    results = [ToolResponse(call_id="c", tool_name="t", content="...", metadata=each) for each in metadatas]
    tool = ToolExecutionStep(**common, tool_calls=[], tool_responses=results)

    copied, early = (copy_record(each, "b") for each in (TurnRecord(step=answer), TurnRecord(early=[tool])))

    assert isinstance(copied.step, InferenceStep)
    assert copied.step.usage == StepUsage(input_tokens=3, output_tokens=2)
    assert early.early is not None
    assert isinstance(step := early.early[0], ToolExecutionStep)
    assert [each.metadata for each in step.tool_responses] == [{"status": 200}, None]
    assert (answer.usage, tool.tool_responses[0].metadata) == (usage, metadatas[0])


async def test_a_fork_belongs_to_the_end_user_of_its_source(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    process = await make_turn_fixture(script(said())).open()
    set_end_user("ann")
    process.session_id = await process.sessions.create(process.agent_id, "talk")
    turn = await process.turn()
    set_end_user("bob")
    with pytest.raises(NotFound):
        await fork(process, turn.turn_id)
    set_end_user(None)

    forked = await fork(process, turn.turn_id)

    assert (await cloud.store.sessions.get(*forked.ids)).end_users == hash_user("ann")
    entries = [each async for some in cloud.store.end_users.entries(process.tenant, "ann") for each in some]
    assert {each["sk"].split(":")[-1] for each in entries} == {process.session_id, forked.session_id}


@pytest.mark.parametrize("hours", [1, 5])
async def test_a_fork_expires_with_its_source_at_the_latest(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, hours: int
) -> None:
    process = await make_turn_fixture(script(said())).open()
    with CLOCK.stop():
        expiry = Expiry(seconds=2 * 3_600)
        process.session_id = await process.sessions.create(process.agent_id, "talk", expiry)
        turn = await process.turn()
        forked = await fork(process, turn.turn_id, expires_after=Expiry(seconds=hours * 3_600))
        [source, copy] = [await cloud.store.sessions.get(*each.ids) for each in (process, forked)]

    assert source.expires_at is not None
    assert copy.expires_at == source.expires_at - (3_600 if hours == 1 else 0)
    records = [item for item in cloud.items(process.tenant) if forked.session_id in str(item["pk"])]
    assert [int(item["expires_at"]["N"]) for item in records] == [copy.expires_at] * 3


async def test_a_fork_of_a_session_that_is_deleted_meanwhile_is_deleted_too(own_cloud: Cloud, tenant: str) -> None:
    process = await TurnFixture(own_cloud.store, tenant, script(said())).open()
    turn = await process.turn()

    def delete_source(operation: str, _body: str) -> None:
        if operation == "TransactWriteItems":
            asyncio.run(mark_deleted(own_cloud, process))

    with own_cloud.proxy.watching(delete_source), pytest.raises(NotFound, match=process.session_id):
        await fork(process, turn.turn_id)

    page = [each async for each in own_cloud.store.sessions.ids(tenant, process.agent_id)]
    assert page == [process.session_id]


@pytest.mark.parametrize("queue_fails", [False, True])
async def test_a_fork_whose_source_cannot_be_read_again_is_deleted(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch, queue_fails: bool
) -> None:
    process = await TurnFixture(own_cloud.store, tenant, script(said())).open()
    turn = await process.turn()
    created = False

    def delete_source(operation: str, _body: str) -> None:
        nonlocal created
        if operation == "TransactWriteItems":
            created = True
            asyncio.run(mark_deleted(own_cloud, process))

    def is_second_read(operation: str, body: str) -> bool:
        return created and operation == "GetItem" and process.session_id in body

    async def send(task: SentTask) -> None:
        if queue_fails and created:
            raise StoreUnavailable("The queue is down.")
        await process.inbox.send(task)

    monkeypatch.setattr(process, "deletions", Deletions(process.deletions.kinds, send))
    process.sessions.deletions = process.deletions
    source = ForkFrom(session_id=process.session_id, turn_id=turn.turn_id)
    proxy = own_cloud.proxy
    with proxy.watching(delete_source), proxy.throttling(is_second_read), pytest.raises(StoreUnavailable):
        await process.sessions.create(process.agent_id, "fork", fork_from=source)

    await process.deletions.continue_deletion(process.inbox.tasks[-1], 30)
    assert await listed(own_cloud, process) == [process.session_id]


async def mark_deleted(cloud: Cloud, process: TurnFixture) -> None:
    """Mark the session of a process as deleted, from another event loop."""
    async with asyncio.timeout(30):
        await cloud.other_process().sessions.mark_deleted(*process.ids)


async def listed(cloud: Cloud, process: TurnFixture) -> list[str]:
    """Return the ids of the sessions of a process's agent."""
    return [each async for each in cloud.store.sessions.ids(process.tenant, process.agent_id)]


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("by", ["retry", "task"])
async def test_the_source_of_a_fork_whose_creation_died_is_checked(
    cloud: Cloud, tenant: str, deleted: bool, by: str
) -> None:
    process = await TurnFixture(cloud.store, tenant, script(said())).open()
    source = ForkFrom(session_id=process.session_id, turn_id=(await process.turn()).turn_id)
    session_id, moment, task = "", 0, None
    while not session_id:  # until it dies with a record
        moment += 1
        dead = TurnFixture(killable_store(cloud, Death(moment)), tenant, script())
        with suppress(Killed):
            await dead.sessions.create(process.agent_id, "fork", fork_from=source)
        [session_id] = set(await listed(cloud, process)) - {process.session_id} or [""]
        task = dead.inbox.tasks[0] if dead.inbox.tasks else None
    assert (await cloud.store.sessions.get(tenant, process.agent_id, session_id)).unchecked
    if deleted:
        await process.sessions.delete(process.agent_id, process.session_id)

    if by == "task":
        assert task is not None
        await process.deletions.continue_deletion(task, 30)
    else:
        set_attempt(RequestAttempt(object_id=session_id, repeated=True))
        with pytest.raises(NotFound) if deleted else nullcontext():
            assert await process.sessions.find_created(process.agent_id, session_id) == session_id
        set_attempt(NO_ATTEMPT)

    if deleted:
        assert await listed(cloud, process) == []
        assert [item for item in cloud.items(tenant) if session_id in str(item)] == []
    else:
        assert not (await cloud.store.sessions.get(tenant, process.agent_id, session_id)).unchecked
        # The task of a fork that was checked leaves it, also without its source.
        await process.sessions.delete(process.agent_id, process.session_id)
        assert task is not None
        await process.deletions.continue_deletion(task, 30)
        assert await listed(cloud, process) == [session_id]


async def test_a_fork_costs_its_records_and_a_session(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    process = await make_turn_fixture(script(*[said()] * 20)).open()
    turns = [await process.turn() for _ in range(20)]
    cloud.forget()

    await fork(process, turns[-1].turn_id)

    # Two records of each simple turn; the list entry and the state of the session in a transaction.
    assert cloud.units["BatchWriteItem"] == 2 * 20
    assert cloud.calls["BatchWriteItem"] == 2
    assert cloud.units["TransactWriteItems"] == 6
    assert write_units(cloud) == 1  # that its source was checked
    assert (cloud.calls["GetItem"], cloud.units["GetItem"]) == (4, 4)
    # The engine counts a unit per Query, whatever it reads.
    items = [each async for each in cloud.table.query(keys.turns(*process.ids), before=keys.AFTER_TURNS)]
    assert (cloud.calls["Query"] - 1, ceil(sum(map(size, items)) / 4096)) == (1, 5)
    [task] = process.inbox.tasks
    assert (task.orphan, task.delay_seconds) == (True, UPLOAD_DELAY)


async def test_a_fork_whose_creation_dies_exists_or_leaves_nothing(cloud: Cloud, tenant: str) -> None:
    process = await TurnFixture(cloud.store, tenant, script(said(), said(LARGE))).open()
    turns = [await process.turn() for _ in range(2)]
    session_id, moment = "", 0
    source = ForkFrom(session_id=process.session_id, turn_id=turns[1].turn_id)
    stored, blobs = len(cloud.items(tenant)), len(cloud.blobs(tenant))
    while not session_id:
        moment += 1
        dead = TurnFixture(killable_store(cloud, Death(moment)), tenant, script())
        with suppress(Killed):
            session_id = await dead.sessions.create(process.agent_id, "fork", fork_from=source)
        listed = [each async for each in cloud.store.sessions.ids(tenant, process.agent_id)]
        for task in dead.inbox.tasks:
            await process.deletions.continue_deletion(task, 30)

        for found in listed:
            session = await process.sessions.get(process.agent_id, found)
            assert len(session.turns) == 2
        if len(listed) == 1:
            assert (len(cloud.items(tenant)), len(cloud.blobs(tenant))) == (stored, blobs)
        elif not session_id:  # the answer was lost
            [forked] = [each for each in listed if each != process.session_id]
            await process.sessions.delete(process.agent_id, forked)
    assert moment > 15
