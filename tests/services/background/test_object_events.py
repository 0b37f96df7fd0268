"""S3's events of objects, as the rule passes them on to the worker."""

import json
import logging
from typing import Any

import pytest
from functions.worker import app
from infra.local.engine import ROOT
from tests.services.background.test_worker import handle

from stint.domain.errors import StoreUnavailable

EVENTS = ROOT / "events" / "worker"


class Inbox:
    """Notes the tenants and keys of objects that have changed."""

    def __init__(self) -> None:
        self.handled: list[tuple[str, str]] = []
        self.error: Exception | None = None

    def of_tenant(self, tenant: str) -> "Inbox":
        self.tenant = tenant
        return self

    async def handle(self, key: str) -> None:
        if self.error:
            raise self.error
        self.handled.append((self.tenant, key))


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> Inbox:
    inbox = Inbox()
    monkeypatch.setattr(app.composition, "compose_inbox", inbox.of_tenant)
    return inbox


def event(**changes: Any) -> dict[str, Any]:
    sample: dict[str, Any] = json.loads((EVENTS / "object_created.json").read_text())
    return sample | changes


@pytest.mark.parametrize("name", ["object_created", "object_deleted"])
async def test_the_object_of_an_event_is_handled(inbox: Inbox, name: str) -> None:
    sample = json.loads((EVENTS / f"{name}.json").read_text())

    assert await handle(sample) is None

    assert inbox.handled == [("default", sample["detail"]["object"]["key"])]


async def test_keys_are_not_decoded(inbox: Inbox) -> None:
    await handle(event(detail={"object": {"key": "inbox/a+b%20c.txt"}}))

    assert inbox.handled == [("default", "inbox/a+b%20c.txt")]


@pytest.mark.parametrize(
    "changes",
    [
        {"detail": {}},
        {"detail": {"object": {"key": 7}}},
        {"detail": {"object": {"key": ""}}},
        {"detail": {"object": {"key": "x" * 1025}}},
        {"detail": {"object": {"key": "\ud800"}}},
        {"tenant": "a/b"},
    ],
)
async def test_an_event_that_cannot_be_read_is_dropped(
    inbox: Inbox, caplog: pytest.LogCaptureFixture, changes: dict[str, Any]
) -> None:
    with caplog.at_level(logging.ERROR):
        assert await handle(event(**changes)) is None

    assert inbox.handled == []


async def test_an_error_of_the_store_is_raised_so_that_the_event_comes_again(inbox: Inbox) -> None:
    inbox.error = StoreUnavailable("The bucket is down.")

    with pytest.raises(StoreUnavailable):
        await handle(event())
