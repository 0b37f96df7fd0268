import asyncio
import io
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from functions.worker import app
from tests.script_model import Part, said, script
from tests.services.conftest import MakeTurnFixture, MakeWorkerFixture
from tests.services.turn_fixture import TurnFixture
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import require_principal
from stint.domain.errors import ModelError, StoreUnavailable
from stint.domain.ids import TENANT, new_id
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.tasks import DeletionTask
from stint.services.background.event_requests import EventRequests


class Context:
    aws_request_id = "request"

    def __init__(self, milliseconds: int = 60_000) -> None:
        self.milliseconds = milliseconds

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


class WorkQueue:
    """The worker's queue, which notes what is to be delivered again, and when."""

    def __init__(self) -> None:
        self.again: list[tuple[str, int]] = []
        self.refuses = False

    async def change_visibility_timeout(self, receipt_handle: str, seconds: int) -> None:
        if self.refuses:
            raise StoreUnavailable("The queue is closed: try again.")
        self.again.append((receipt_handle, seconds))


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> WorkQueue:
    queue = WorkQueue()
    monkeypatch.setitem(vars(app.composition), "queue", queue)
    return queue


def message(body: Any, *, receives: int = 1, message_id: str = "m1") -> dict[str, Any]:
    """A message of the queue, as Lambda hands it over."""
    return {
        "messageId": message_id,
        "receiptHandle": "handle",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"ApproximateReceiveCount": str(receives)},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:work",
        "awsRegion": "us-east-1",
    }


DONE: dict[str, Any] = {"batchItemFailures": []}
DEEP = json.loads("[" * 99 + "]" * 99)
FAILED = {"batchItemFailures": [{"itemIdentifier": "m1"}]}


async def handle(event: Any, milliseconds: int = 60_000) -> Any:
    """Run the function as Lambda does, in a thread that has no event loop."""
    return await asyncio.to_thread(app.handler, event, Context(milliseconds))


async def deliver(task: Any, milliseconds: int = 60_000) -> Any:
    """Deliver one message to the worker, and return its answer."""
    return await handle({"Records": [message(task)]}, milliseconds)


async def mark_as_deleted(
    turn_fixture: TurnFixture, monkeypatch: pytest.MonkeyPatch, kind: str = "agent"
) -> dict[str, Any]:
    """Mark an agent, or its session, as deleted, and return the task that finishes the deletion."""
    monkeypatch.setitem(vars(app.composition), "deletions", turn_fixture.deletions)
    await turn_fixture.turn()
    task = DeletionTask(tenant=turn_fixture.tenant, agent_id=turn_fixture.agent_id)
    if kind == "agent":
        await turn_fixture.store.agents.mark_deleted(turn_fixture.tenant, turn_fixture.agent_id)
    else:
        await turn_fixture.store.sessions.mark_deleted(*turn_fixture.ids)
        task = task.model_copy(update={"session_id": turn_fixture.session_id})
    return task.model_dump()


async def test_a_deletion_is_finished_and_its_message_may_come_again(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    task = await mark_as_deleted(turn_fixture, monkeypatch)

    answers = [await deliver(task) for _ in range(2)]

    assert answers == [DONE, DONE]
    assert cloud.items(turn_fixture.tenant) == []
    assert turn_fixture.inbox.tasks == []


async def test_a_deletion_without_time_goes_back_to_the_queue(
    make_turn_fixture: MakeTurnFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    task = await mark_as_deleted(turn_fixture, monkeypatch)

    answer = await deliver(task, milliseconds=int(app.RESERVE_SECONDS * 1000))

    assert answer == DONE
    assert [left.model_dump() for left in turn_fixture.inbox.tasks] == [task]


@pytest.mark.parametrize("kind", ["agent", "session"])
async def test_a_deletion_whose_object_has_no_mark_deletes_nothing_and_is_dropped(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, queue: WorkQueue, kind: str
) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    monkeypatch.setitem(vars(app.composition), "deletions", turn_fixture.deletions)
    await turn_fixture.turn()
    session_id = turn_fixture.session_id if kind == "session" else None
    early = DeletionTask(tenant=turn_fixture.tenant, agent_id=turn_fixture.agent_id, session_id=session_id).model_dump()
    before = cloud.items(turn_fixture.tenant)

    unmarked = await deliver(early)
    after = cloud.items(turn_fixture.tenant)
    marked = await mark_as_deleted(turn_fixture, monkeypatch, kind)
    in_time = await deliver(marked)

    assert (unmarked, in_time, marked) == (DONE, DONE, early)
    assert after == before
    assert queue.again == []
    assert not [item for item in cloud.items(turn_fixture.tenant) if "session" in item["pk"]["S"]]


@pytest.mark.parametrize(
    "task",
    [
        "no JSON",
        [],
        {},
        {"kind": "paint", "tenant": "t", "agent_id": new_id()},
        {"kind": "delete", "tenant": "t", "agent_id": 7},
        {"kind": "delete", "tenant": "t", "agent_id": "no id"},
        {"kind": "delete", "tenant": "t#agent", "agent_id": new_id()},
        {"tenant": "t", "agent_id": new_id()},
    ],
    ids=["no JSON", "list", "empty", "other kind", "wrong type", "no id", "no tenant", "no kind"],
)
async def test_a_message_that_can_never_be_done_is_logged_and_not_tried_again(
    make_turn_fixture: MakeTurnFixture, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, task: Any
) -> None:
    turn_fixture = make_turn_fixture(script())
    monkeypatch.setitem(vars(app.composition), "deletions", turn_fixture.deletions)

    with caplog.at_level(logging.WARNING, "stint"):
        answer = await deliver(task)

    assert answer == DONE
    assert "was dropped" in caplog.text
    assert turn_fixture.inbox.tasks == []


async def test_a_direct_invocation_deletes_nothing(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    task = await mark_as_deleted(turn_fixture, monkeypatch)
    before = cloud.items(turn_fixture.tenant)

    with caplog.at_level(logging.ERROR, "stint"):
        events: list[Any] = [task, task | {"task": "delete"}, None, [], "delete"]
        assert [app.handler(event, Context()) for event in events] == [None] * 5

    assert caplog.text.count("was dropped") == 5
    assert cloud.items(turn_fixture.tenant) == before


async def test_a_failing_store_fails_the_message(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch, queue: WorkQueue
) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(said())).open()
    task = await mark_as_deleted(turn_fixture, monkeypatch)

    with own_cloud.proxy.failing("BatchWriteItem"):
        assert await deliver(task) == FAILED

    assert queue.again == []


UseFixture = Callable[[WorkerFixture], None]


@pytest.fixture
def use_fixture(monkeypatch: pytest.MonkeyPatch) -> UseFixture:
    """Return a function that lets the worker's function use the parts of a fixture."""

    def use(worker_fixture: WorkerFixture) -> None:
        monkeypatch.setattr(app.composition, "make_worker", lambda _: worker_fixture.worker)
        monkeypatch.setattr(app.composition, "make_event_requests", lambda _: worker_fixture.event_requests)
        monkeypatch.setitem(vars(app.composition), "deletions", worker_fixture.deletions)

    return use


async def test_a_message_is_worked_on(make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture) -> None:
    worker_fixture = make_worker_fixture(script(said()))
    use_fixture(worker_fixture)
    response_id = await worker_fixture.create()
    [task] = worker_fixture.queue.tasks

    answer = await handle({"Records": [message(task.model_dump())]})

    assert answer == {"batchItemFailures": []}
    assert await worker_fixture.status(response_id) == "completed"


async def test_of_several_messages_only_those_that_failed_come_again(
    make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture, caplog: pytest.LogCaptureFixture
) -> None:
    fault: list[Part] = [ValueError("a fault")]
    worker_fixture = make_worker_fixture(script(fault, said()))
    use_fixture(worker_fixture)
    ids = [await worker_fixture.create() for _ in range(2)]
    records = [message(task.model_dump(), message_id=f"m{n}") for n, task in enumerate(worker_fixture.queue.tasks)]

    with caplog.at_level(logging.ERROR, "stint"):
        answer = await handle({"Records": [*records, message("no JSON", message_id="m2")]})

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert [await worker_fixture.status(response_id) for response_id in ids] == ["in_progress", "completed"]
    assert "was dropped" in caplog.text


async def test_the_third_delivery_ends_a_response_that_cannot_be_run(
    make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture
) -> None:
    fault: list[Part] = [ValueError("a fault")]
    worker_fixture = make_worker_fixture(script(fault))
    use_fixture(worker_fixture)
    response_id = await worker_fixture.create()
    [task] = worker_fixture.queue.tasks

    answer = await handle({"Records": [message(task.model_dump(), receives=3)]})

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert await worker_fixture.status(response_id) == "failed"


async def test_a_message_of_a_response_that_is_gone_is_done(
    make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture, caplog: pytest.LogCaptureFixture
) -> None:
    worker_fixture = make_worker_fixture(script())
    use_fixture(worker_fixture)
    response_id = await worker_fixture.create()
    await worker_fixture.services.stored_responses.delete(response_id)
    [task] = worker_fixture.queue.tasks

    with caplog.at_level(logging.WARNING, "stint"):
        answer = await handle({"Records": [message(task.model_dump())]})

    assert answer == {"batchItemFailures": []}
    assert caplog.text == ""


async def test_an_event_of_the_bus_and_a_direct_invocation_are_worked_on(
    make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture
) -> None:
    worker_fixture = make_worker_fixture(script(said("one"), said("two")))
    use_fixture(worker_fixture)
    detail = {"model": "test/m", "input": "Hello"}

    bus = await handle({"detail-type": "Stint Response Requested", "id": "e1", "source": "shop", "detail": detail})
    direct = await handle({"detail-type": "Stint Response Requested", "detail": detail})

    assert (bus["event_id"], bus["status"]) == ("e1", "completed")
    assert (direct["event_id"], direct["status"]) == (Context.aws_request_id, "completed")
    assert bus["response_id"] != direct["response_id"]


async def test_the_lines_of_each_event_name_its_own_agent_session_and_turn(
    make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture, written: io.StringIO
) -> None:
    worker_fixture = make_worker_fixture(script([ModelError("no")], [ModelError("no")]))
    use_fixture(worker_fixture)
    expected = []

    for name in ("first", "second"):
        agent_id = await worker_fixture.turns.agents.create(AgentConfig(model="test/m", instructions="", name=name))
        session_id = await worker_fixture.turns.sessions.create(agent_id, "talk")
        detail = {"agent_id": agent_id, "session_id": session_id, "messages": [{"role": "user", "content": "Hi"}]}
        ended = await handle({"detail-type": "Stint Turn Requested", "id": f"e-{name}", "detail": detail})
        expected.append((f"e-{name}", name, agent_id, session_id, ended["turn_id"]))
    await handle({"detail-type": "Order Paid", "detail": {}})

    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    keys = ("event_id", "agent_name", "agent_id", "session_id", "turn_id")
    assert [(line["message"], *(line.get(key) for key in keys)) for line in lines] == [
        ("The turn failed", *expected[0]),
        ("Request", *expected[0]),
        ("The turn failed", *expected[1]),
        ("Request", *expected[1]),
        ("The event was dropped: it is not a valid task or request of this worker", *[None] * 5),
        ("Request", *[None] * 5),
    ]


async def test_the_lines_of_an_event_that_comes_again_name_its_turn(
    make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture, written: io.StringIO
) -> None:
    worker_fixture = make_worker_fixture(script(said("one")))
    use_fixture(worker_fixture)
    agent_id = await worker_fixture.turns.agents.create(AgentConfig(model="test/m", instructions="", name="shop"))
    session_id = await worker_fixture.turns.sessions.create(agent_id, "talk")
    detail = {"agent_id": agent_id, "session_id": session_id, "messages": [{"role": "user", "content": "Hi"}]}
    event = {"detail-type": "Stint Turn Requested", "id": "e1", "detail": detail}

    ended = [await handle(event), await handle(event)]

    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    keys = ("agent_name", "agent_id", "session_id", "turn_id")
    assert ended[0] == ended[1]
    assert [[line.get(key) for key in keys] for line in lines] == [
        ["shop", agent_id, session_id, ended[0]["turn_id"]]
    ] * 2


@pytest.mark.parametrize(
    "event",
    [
        {"detail-type": "Order Paid", "detail": {}},
        {"detail-type": "Stint Turn Requested", "id": "e1", "detail": {"agent_id": "a"}},
        {"detail-type": "Stint Response Requested", "id": "e1", "detail": {"input": "Hi", "store": False}},
        {"detail-type": "Stint Response Requested", "id": "e1"},
        {"detail-type": "Stint Response Completed", "id": "e1", "detail": {"model": "test/m", "input": "Hi"}},
        {"detail-type": "Stint Response Requested", "tenant": "a#b", "detail": {"model": "test/m", "input": "Hi"}},
        {"detail-type": None},
        {"detail-type": "Stint Response Requested", "detail": {"model": "test/m", "input": "\ud800"}},
        {"detail-type": "Stint Response Requested", "detail": {"model": "test/m", "input": "Hi", "a": float("nan")}},
        {"detail-type": "Stint Response Requested", "detail": {"model": "test/m", "input": "Hi", "a": [0] * 200_000}},
        {"detail-type": "Stint Response Requested", "detail": {"model": "test/m", "input": "Hi", "a": DEEP}},
    ],
    ids=[
        *("other", "no messages", "not stored", "no detail", "an end", "no tenant", "null"),
        *("half a character", "nan", "many values", "deep"),
    ],
)
async def test_an_event_that_asks_for_nothing_known_is_logged_without_a_trace_and_dropped(
    make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture, caplog: pytest.LogCaptureFixture, event: Any
) -> None:
    worker_fixture = make_worker_fixture(script())
    use_fixture(worker_fixture)

    with caplog.at_level(logging.ERROR, "stint"):
        answer = await handle(event)

    assert answer is None
    [record] = caplog.records
    assert "was dropped" in record.message
    assert record.exc_info is None
    assert worker_fixture.queue.kinds == []


@pytest.mark.parametrize("kind", ["response", "conversation"])
async def test_what_is_left_of_a_deletion_is_deleted_once_it_is_marked(
    make_worker_fixture: MakeWorkerFixture, use_fixture: UseFixture, queue: WorkQueue, kind: str
) -> None:
    worker_fixture = make_worker_fixture(script(said()))
    use_fixture(worker_fixture)
    mark: Callable[[str, str], Awaitable[None]] = worker_fixture.store.conversations.mark_deleted
    if kind == "response":
        identifier, mark = (await worker_fixture.finished(stream=True)).id, worker_fixture.store.responses.mark_deleted
    else:
        identifier = await worker_fixture.conversation()
    event = {
        "Records": [message({"kind": f"delete_{kind}", "tenant": worker_fixture.tenant, f"{kind}_id": identifier})]
    }
    before = worker_fixture.cloud.items(worker_fixture.tenant)

    unmarked = await handle(event)
    kept = worker_fixture.cloud.items(worker_fixture.tenant)
    await mark(worker_fixture.tenant, identifier)
    answers = [await handle(event) for _ in range(2)]

    assert (unmarked, answers) == (DONE, [DONE, DONE])
    assert kept == before
    assert queue.again == []
    assert [item for item in worker_fixture.cloud.items(worker_fixture.tenant) if "expires_at" not in item] == []


async def test_the_tenant_of_an_event_is_what_the_rule_says_and_no_detail(
    make_worker_fixture: MakeWorkerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker_fixture = make_worker_fixture(script(said("one"), said("two")))
    asked: list[tuple[str, str]] = []

    def make_event_requests(tenant: str) -> EventRequests:
        asked.append((tenant, require_principal().tenant))
        return worker_fixture.event_requests

    monkeypatch.setattr(app.composition, "make_event_requests", make_event_requests)
    detail = {"model": "test/m", "input": "Hello", "tenant": "victim"}
    event = {"detail-type": "Stint Response Requested", "source": "victim", "detail": detail}

    await handle(event | {"tenant": "shop"})
    await handle(event)

    assert asked == [("shop", "shop"), (TENANT, TENANT)]
