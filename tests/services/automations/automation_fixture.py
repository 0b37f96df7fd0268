"""A process of a tenant that serves automations and runs them. Two with the same tenant are two processes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.api.fakes import FakeSchedules
from tests.script_model import deadline, said, script
from tests.services.session_process import SessionProcess
from tests.services.worker_fixture import FakeQueue
from tests.store.conftest import Cloud

from stint.bootstrap.agents import delete_agent_objects
from stint.caller import NO_ATTEMPT, RequestAttempt, acting_as, find_end_user, set_attempt, set_end_user, set_tenant
from stint.domain.api_keys import ApiKeyWithSecret, CreateApiKeyRequest
from stint.domain.errors import StoreUnavailable
from stint.domain.ids import TENANT
from stint.domain.openai.automations import Automation, AutomationInvocation, ExistingSessionTarget, NewAutomation
from stint.domain.principals import Principal
from stint.domain.schedules import Schedule
from stint.domain.tasks import AutomationTask
from stint.openai_agents.schemas.automations import NewSessionParams
from stint.services.access.api_keys import ApiKeys
from stint.services.automations.automations import Automations
from stint.services.automations.creators import CreatorKeys
from stint.services.automations.runs import AutomationRuns
from stint.services.deletions import Deletions
from stint.services.end_users.end_users import EndUsers
from stint.store.api_keys import ApiKeyStore
from stint.store.table import Table

NEW_SESSION = {"type": "new_session", "environment": {"type": "none"}, "agent": {"model": "test/m"}}
AT = "2026-11-29T15:00:00Z"


class BreakableSchedules(FakeSchedules):
    """Schedules that fail after they have done their work, or before. `calls` has the names of all calls."""

    fails = ""

    async def create(self, schedule: Schedule) -> None:
        self.refuse("before create")
        await super().create(schedule)
        self.refuse("after create")

    async def delete(self, name: str) -> None:
        self.refuse("before delete")
        await super().delete(name)
        self.refuse("after delete")

    def refuse(self, step: str) -> None:
        if step == self.fails:
            raise StoreUnavailable("EventBridge Scheduler does not answer.")


class AutomationFixture:
    """`schedules` fire when a test says so, and `queue` has the tasks."""

    def __init__(
        self,
        cloud: Cloud,
        tenant: str,
        keys_table: str,
        schedules: BreakableSchedules | None = None,
        queue: FakeQueue | None = None,
        *,
        authenticates: bool = True,
    ) -> None:
        self.cloud, self.tenant, self.keys_table = cloud, tenant, keys_table
        self.sessions = SessionProcess(cloud, tenant, script(*[said()] * 99), queue)
        self.queue = self.sessions.queue
        self.schedules = schedules or BreakableSchedules()
        store, key_store = cloud.store, ApiKeyStore(Table(cloud.client, keys_table))
        self.keys = ApiKeys(key_store)
        creators = CreatorKeys(tenant, authenticates, store.stops, lambda: key_store)
        kinds = delete_agent_objects(store, self.queue.send, self.schedules.delete)
        self.deletions = Deletions(kinds, self.queue.send)
        self.targets = self.sessions.services.automation_targets
        parts = tenant, store.automations, store.invocations, self.schedules
        self.automations = Automations(*parts, authenticates, self.targets, self.deletions)
        self.runs = AutomationRuns(*parts, creators, lambda: self.targets, self.queue.send, 30)
        self.end_users = EndUsers(tenant, store, self.deletions)

    def other_process(self) -> "AutomationFixture":
        return AutomationFixture(self.cloud, self.tenant, self.keys_table, self.schedules, self.queue)

    async def create_key(self, *scopes: str, **fields: Any) -> ApiKeyWithSecret:
        given = {"tenant": self.tenant, "scopes": [*(scopes or ("use",))]} | fields
        return await self.keys.create(CreateApiKeyRequest.model_validate(given))

    async def target(self, text: str = "Report.", **fields: Any) -> Any:
        content = [{"type": "input_text", "text": text}]
        body = NEW_SESSION | {"input": [{"type": "message", "role": "user", "content": content}]} | fields
        return await self.targets.read(NewSessionParams.model_validate(body))

    async def create(self, **fields: Any) -> Automation:
        """Create an automation, which begins a session every hour unless its fields say otherwise."""
        return await self.automations.create(NewAutomation(**await self.body(**fields)))

    async def body(self, **fields: Any) -> dict[str, Any]:
        given = {"type": "periodic", "name": "Report", "expression": "0 * * * *", "timezone": "UTC"} | fields
        if given["type"] == "once":
            given.pop("expression"), given.pop("timezone")
            given = {"run_at": int(time.time()) + 3600} | given
        return {"target": await self.target()} | given

    def fire(self, at: str = AT) -> list[AutomationTask]:
        """Return the tasks that the schedules send at a time. Those of one-time schedules are gone then."""
        tasks = self.schedules.fire(at)
        for name, schedule in [*self.schedules.active.items()]:
            if schedule.expression.startswith("at("):
                del self.schedules.active[name]
        return tasks

    async def run(self, *tasks: AutomationTask, last: bool = False) -> None:
        """Handle tasks as the worker does, which has no caller."""
        set_tenant(self.tenant)
        with acting_as(None):
            for task in tasks:
                await self.runs.handle(task, deadline(30), last=last)

    async def run_at(self, at: str = AT, *, last: bool = False) -> None:
        await self.run(*self.fire(at), last=last)

    async def work(self) -> None:
        """Handle each of the queue's tasks of automations once, also those that are delayed."""
        tasks, self.queue.automations = self.queue.automations, []
        await self.run(*tasks)

    async def list_invocations(self, automation: Automation) -> list[AutomationInvocation]:
        page = await self.automations.list_invocations(automation.id, after=None, limit=100, newest_first=True)
        return page.data

    async def list_sessions(self) -> list[str]:
        """Return the ids of all sessions of the tenant."""
        found, _ = await self.cloud.store.session_index.list(self.tenant, after=None, limit=1000, newest_first=True)
        return [each.session_id for each in found]


@contextmanager
def acting(key: ApiKeyWithSecret | Principal, user: str | None = None) -> Iterator[None]:
    """Run the body as a request with an API key, or of another principal, for an end user."""
    principal = key if isinstance(key, Principal) else principal_of(key)
    before = find_end_user()
    with acting_as(principal):
        set_end_user(user)
        try:
            yield
        finally:
            set_end_user(before)


def principal_of(key: ApiKeyWithSecret) -> Principal:
    return Principal(key.tenant, key.subject, frozenset(key.scopes), key.id, tuple(key.models), key.budgets)


@contextmanager
def in_attempt(attempt: RequestAttempt) -> Iterator[None]:
    set_attempt(attempt)
    try:
        yield
    finally:
        set_attempt(NO_ATTEMPT)


def existing(session_id: str, text: str = "Go on.") -> ExistingSessionTarget:
    return ExistingSessionTarget(session_id=session_id, instructions=text)


TOKEN = Principal(TENANT, "somebody", frozenset({"use"}))
