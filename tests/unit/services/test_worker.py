import logging
from typing import Any

import pytest
from functions.worker import app
from tests.unit.services.conftest import MakeStage
from tests.unit.services.faults import failing
from tests.unit.services.stage import Stage, said, script
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
