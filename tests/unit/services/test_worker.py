import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from functions.worker import app
from tests.unit.services.conftest import MakeOffice, MakeStage
from tests.unit.services.faults import failing
from tests.unit.services.responses.office import Office
from tests.unit.services.stage import Part, Stage, said, script
from tests.unit.store.conftest import Cloud

from stint.domain.errors import StoreUnavailable
from stint.domain.ids import new_id


class Context:
    aws_request_id = "request"

    def __init__(self, milliseconds: int = 60_000) -> None:
        self.milliseconds = milliseconds

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


async def left_to_the_worker(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Give the event with which a deletion that had no time is handed over."""
    monkeypatch.setattr(app, "make_deletions", lambda: stage.deletions)
    await stage.turn()
    stage.store.agents.mark_deleted(stage.tenant, stage.agent_id)
    return {"task": "delete", "tenant": stage.tenant, "agent_id": stage.agent_id, "session_id": None}


async def test_a_task_is_done_and_may_come_again(
    make_stage: MakeStage, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = await make_stage(script(said())).open()
    event = await left_to_the_worker(stage, monkeypatch)

    for _ in range(2):
        app.handler(event, Context())

    assert cloud.items(stage.tenant) == []
    assert stage.inbox.tasks == []


async def test_a_task_without_time_is_handed_on_as_it_is(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = await make_stage(script(said())).open()
    event = await left_to_the_worker(stage, monkeypatch)

    app.handler(event, Context(milliseconds=int(app.RESERVE_SECONDS * 1000)))

    assert [task.model_dump() for task in stage.inbox.tasks] == [event]


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "delete",
        {},
        {"task": "paint", "tenant": "t", "agent_id": new_id()},
        {"tenant": "t", "agent_id": 7},
        {"tenant": "t", "agent_id": "no id"},
    ],
    ids=["null", "list", "text", "empty", "other task", "wrong type", "no id"],
)
async def test_an_event_that_can_never_be_done_is_logged_and_not_tried_again(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, event: Any
) -> None:
    stage = make_stage(script())
    monkeypatch.setattr(app, "make_deletions", lambda: stage.deletions)

    with caplog.at_level(logging.ERROR, "stint"):
        app.handler(event, Context())

    assert "is dropped" in caplog.text
    assert stage.inbox.tasks == []


async def test_a_failing_store_is_raised_so_that_lambda_tries_again(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = await Stage(own_cloud.store, tenant, script(said())).open()
    event = await left_to_the_worker(stage, monkeypatch)

    with failing(own_cloud, "BatchWriteItem"), pytest.raises(StoreUnavailable):
        app.handler(event, Context())


Seat = Callable[[Office], None]


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


@pytest.fixture
def office_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> Seat:
    """Let the worker's function work for an office."""

    def seat(office: Office) -> None:
        monkeypatch.setattr(app, "make_work", lambda _: office.work)
        monkeypatch.setattr(app, "make_invocations", lambda _: office.invocations)
        monkeypatch.setattr(app, "make_response_services", lambda _: office.services)

    return seat


async def handle(event: Any, milliseconds: int = 60_000) -> Any:
    """Run the function as Lambda does, in a thread that has no event loop."""
    return await asyncio.to_thread(app.handler, event, Context(milliseconds))


async def test_a_message_is_worked_on(make_office: MakeOffice, office_of_the_worker: Seat) -> None:
    office = make_office(script(said()))
    office_of_the_worker(office)
    response_id = await office.create()
    [task] = office.desk.tasks

    answer = await handle({"Records": [message(task.model_dump())]})

    assert answer == {"batchItemFailures": []}
    assert await office.status(response_id) == "completed"


async def test_of_several_messages_only_those_that_failed_come_again(
    make_office: MakeOffice, office_of_the_worker: Seat, caplog: pytest.LogCaptureFixture
) -> None:
    fault: list[Part] = [ValueError("a fault")]
    office = make_office(script(fault, said()))
    office_of_the_worker(office)
    ids = [await office.create() for _ in range(2)]
    records = [message(task.model_dump(), message_id=f"m{n}") for n, task in enumerate(office.desk.tasks)]

    with caplog.at_level(logging.ERROR, "stint"):
        answer = await handle({"Records": [*records, message("no JSON", message_id="m2")]})

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert [await office.status(response_id) for response_id in ids] == ["in_progress", "completed"]
    assert "is dropped" in caplog.text


async def test_the_third_delivery_ends_a_response_that_cannot_be_run(
    make_office: MakeOffice, office_of_the_worker: Seat
) -> None:
    fault: list[Part] = [ValueError("a fault")]
    office = make_office(script(fault))
    office_of_the_worker(office)
    response_id = await office.create()
    [task] = office.desk.tasks

    answer = await handle({"Records": [message(task.model_dump(), receives=3)]})

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert await office.status(response_id) == "failed"


async def test_a_message_of_a_response_that_is_gone_is_done(
    make_office: MakeOffice, office_of_the_worker: Seat, caplog: pytest.LogCaptureFixture
) -> None:
    office = make_office(script())
    office_of_the_worker(office)
    response_id = await office.create()
    await office.services.stored_responses.delete(response_id)
    [task] = office.desk.tasks

    with caplog.at_level(logging.WARNING, "stint"):
        answer = await handle({"Records": [message(task.model_dump())]})

    assert answer == {"batchItemFailures": []}
    assert caplog.text == ""


async def test_an_event_of_the_bus_and_a_direct_invocation_are_worked_on(
    make_office: MakeOffice, office_of_the_worker: Seat
) -> None:
    office = make_office(script(said("one"), said("two")))
    office_of_the_worker(office)
    detail = {"model": "test/m", "input": "Hello"}

    bus = await handle({"detail-type": "Stint Response Requested", "id": "e1", "source": "shop", "detail": detail})
    direct = await handle({"detail-type": "Stint Response Requested", "detail": detail})

    assert (bus["event_id"], bus["status"]) == ("e1", "completed")
    assert (direct["event_id"], direct["status"]) == (Context.aws_request_id, "completed")
    assert bus["response_id"] != direct["response_id"]


@pytest.mark.parametrize(
    "event",
    [
        {"detail-type": "Order Paid", "detail": {}},
        {"detail-type": "Stint Turn Requested", "id": "e1", "detail": {"agent_id": "a"}},
        {"detail-type": "Stint Response Requested", "id": "e1", "detail": {"input": "Hi", "store": False}},
        {"detail-type": "Stint Response Requested", "id": "e1"},
        {"detail-type": None},
    ],
    ids=["other", "no messages", "not stored", "no detail", "null"],
)
async def test_an_event_that_asks_for_nothing_known_is_logged_without_a_trace_and_dropped(
    make_office: MakeOffice, office_of_the_worker: Seat, caplog: pytest.LogCaptureFixture, event: Any
) -> None:
    office = make_office(script())
    office_of_the_worker(office)

    with caplog.at_level(logging.ERROR, "stint"):
        answer = await handle(event)

    assert answer is None
    [record] = caplog.records
    assert "is dropped" in record.message
    assert record.exc_info is None
    assert office.desk.kinds == []


@pytest.mark.parametrize("kind", ["response", "conversation"])
async def test_what_is_left_of_a_deletion_is_deleted(
    make_office: MakeOffice, office_of_the_worker: Seat, kind: str
) -> None:
    office = make_office(script(said()))
    office_of_the_worker(office)
    if kind == "response":
        identifier = (await office.finished(stream=True)).id
    else:
        identifier = await office.conversation()

    answer = await handle({"task": f"delete_{kind}", "tenant": office.tenant, f"{kind}_id": identifier})

    assert answer is None
    assert [item for item in office.cloud.items(office.tenant) if "expires_at" not in item] == []
