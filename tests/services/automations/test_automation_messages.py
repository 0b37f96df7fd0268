"""The worker's function with tasks of automations, as its queue delivers them."""

from typing import Any

import pytest
from tests.services.automations.automation_fixture import AT, AutomationFixture, acting
from tests.services.background.test_worker import DONE, handle, message

from stint.domain.api_keys import ApiKeyWithSecret
from stint.domain.errors import StoreUnavailable
from stint.openai_agents import automation_runs


@pytest.fixture(autouse=True)
def _worker(process: AutomationFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automation_runs, "make_automation_runs", lambda *_: process.runs)


async def deliver(process: AutomationFixture, receives: int = 1, at: str = AT) -> Any:
    [schedule] = process.schedules.active.values()
    body = schedule.payload.replace("<aws.scheduler.scheduled-time>", at)
    return await handle({"Records": [message(body, receives=receives)]})


async def test_the_payload_of_a_schedule_begins_a_session(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        automation = await process.create()
    assert await deliver(process) == DONE
    assert await deliver(process) == DONE
    assert len(await process.list_sessions()) == 1
    with acting(key):
        assert [each.status for each in await process.list_invocations(automation)] == ["completed"]


async def test_the_last_delivery_of_a_message_fails_the_invocation(
    process: AutomationFixture, key: ApiKeyWithSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> str:
        raise StoreUnavailable("DynamoDB does not answer.")

    monkeypatch.setattr(type(process.targets), "create_session", refuse)
    with acting(key):
        automation = await process.create()
    again = {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert [await deliver(process, receives) for receives in (1, 2, 3)] == [again, again, DONE]
    with acting(key):
        assert [each.status for each in await process.list_invocations(automation)] == ["failed"]


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "automation", "tenant": "a", "automation_id": "automation_1"},
        {"kind": "automation", "tenant": "A#b", "automation_id": "automation_1", "invocation_id": "invocation_1"},
        {"kind": "automation", "tenant": "a", "invocation_id": "invocation_1"},
        {"kind": "automation", "tenant": "a", "automation_id": "automation_1", "scheduled_at": AT},
    ],
)
async def test_a_message_that_is_no_task_is_dropped(body: dict[str, str]) -> None:
    assert await handle({"Records": [message(body)]}) == DONE
