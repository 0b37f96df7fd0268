"""The whole API behind its authorizer in one process, with the composition of the functions."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace, TracebackType
from typing import Any, Self, TypeVar
from unittest import mock

import httpx
from functions.authorizer import app as authorizer
from infra.local.engine import Engine
from tests.api.app_fixture import Served, vars_of
from tests.api.fakes import FakeSchedules
from tests.route_rules import SERVED
from tests.security.gateway import Gateway, read_system

from stint.bootstrap.openai import OpenAIComposition
from stint.bootstrap.operator import OperatorComposition
from stint.domain.api_keys import ApiKeyWithSecret, CreateApiKeyRequest
from stint.domain.principals import SCOPES
from stint.domain.tasks import (
    AnyTask,
    AutomationTask,
    IngestionTask,
    ResponseTask,
    ResumeTask,
    WaitingTask,
    WebhookTask,
)
from stint.http.app import create_app
from stint.october_2024.composition import compose_october
from stint.openai_agents.automation_runs import make_automation_runs
from stint.openai_agents.composition import automations_of, compose_openai_agents, vaults_of
from stint.services.access.api_keys import ApiKeys
from stint.settings import Settings, read_settings
from stint.store.api_keys import ApiKeyStore
from stint.store.clients import make_dynamodb
from stint.store.table import Table

T = TypeVar("T")
TASK_SECONDS = 60.0


class InlineQueue:
    """The work queue, whose tasks this process handles at once. `sent` has its messages."""

    def __init__(self, composition: OpenAIComposition) -> None:
        self.composition = composition
        self.sent: list[str] = []
        self._running: set[asyncio.Task[None]] = set()

    async def send(self, task: AnyTask) -> None:
        self.sent.append(task.model_dump_json())
        if task.delay_seconds:
            return
        running = asyncio.get_running_loop().create_task(self.run(task))
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def run(self, task: AnyTask) -> None:
        deadline = asyncio.get_running_loop().time() + TASK_SECONDS
        if isinstance(task, ResponseTask):
            await self.composition.make_worker(task.tenant).handle(task.response_id, deadline)
        elif isinstance(task, IngestionTask):
            await self.composition.make_ingestion(task.tenant).handle_task(task, deadline, last=True)
        elif isinstance(task, WaitingTask | ResumeTask):
            await self.composition.make_waiting_runs(task.tenant).handle(task, deadline)
        elif isinstance(task, WebhookTask):
            await self.composition.make_webhook_deliveries(task.tenant).handle(task)
        elif isinstance(task, AutomationTask):
            await make_automation_runs(self.composition, task.tenant).handle(task, deadline)
        else:
            await self.composition.deletions.continue_deletion(task, TASK_SECONDS)


class Stack:
    """Context manager that serves the API. The environment of this process must have the engine's variables."""

    def __init__(self, engine: Engine, environment: Mapping[str, str]) -> None:
        defaults = {
            "STINT_AUTH": "authorizer",
            "STINT_EVENT_BUS": "default",
            "STINT_SCRIPTED_MODELS": "true",
            "STINT_SCRIPTED_WORD_SECONDS": "0",
            "STINT_DEFAULT_MODEL": "scripted/demo",
            "STINT_OPERATOR_TENANT": "operator",
            "STINT_CREDENTIALS_KEY_ARN": engine.running.hold_credentials_key(),
        }
        variables = engine.running.variables() | defaults | dict(environment)
        self.settings: Settings = read_settings({**os.environ, **variables})
        self.composition = OpenAIComposition(lambda: self.settings)
        self.queue = InlineQueue(self.composition)
        vars(self.composition)["queue"] = self.queue
        vars(self.composition.adapters)["schedules"] = FakeSchedules()
        self.operator = OperatorComposition(lambda: self.settings)
        self.access = ThreadPoolExecutor(1)
        self.system = read_system()
        self.app = create_app(
            "all",
            *SERVED,
            make_services=self.make_services,  # type: ignore[arg-type]  # the services of all functions in one
            read_settings=lambda: self.settings,
            buffered=False,
        )
        self.served = Served(Gateway(self.app, self.system, self.access, time.monotonic))  # type: ignore[arg-type]
        self._authorizer = mock.patch.dict(vars(authorizer.composition), settings=self.settings)

    def make_services(self, tenant: str) -> SimpleNamespace:
        """Return one object with the services of all functions."""
        parts = self.composition
        agents = parts.make_services(tenant)
        services = (
            agents,
            compose_october(tenant, parts.adapters, agents, parts.knowledge_parts),
            compose_openai_agents(agents, self.settings, vaults_of(parts, tenant), automations_of(parts, tenant)),
            parts.make_openai_services(tenant),
            parts.make_knowledge_services(tenant),
            self.operator.make_services(tenant),
        )
        return SimpleNamespace(**{name: part for each in services for name, part in vars_of(each).items()})  # type: ignore[arg-type]

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the event loop of the authorizer, to which its connections belong."""
        return self.access.submit(lambda: authorizer.make_runner().run(make())).result()

    def create_key(self, tenant: str, clock: Callable[[], float] = time.time, **fields: object) -> ApiKeyWithSecret:
        """Create a key, with all scopes unless `fields` has some."""
        request = CreateApiKeyRequest.model_validate({"tenant": tenant, "scopes": list(SCOPES), **fields})
        return self.run(lambda: self.keys(clock).create(request))

    def revoke(self, key: ApiKeyWithSecret) -> None:
        self.run(lambda: self.keys(time.time).revoke(None, key.id))

    def keys(self, clock: Callable[[], float]) -> ApiKeys:
        return ApiKeys(ApiKeyStore(Table(make_dynamodb(), self.settings.keys_table)), clock)

    def client(self, key: str = "") -> httpx.Client:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.served.url, headers=headers, trust_env=False, timeout=60)

    def __enter__(self) -> Self:
        self._authorizer.start()
        for name in ("authentication", "api_keys"):
            vars(authorizer.composition).pop(name, None)
        self.served.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.served.settle()
        self.served.__exit__(kind, error, at)
        self._authorizer.stop()
        for name in ("authentication", "api_keys"):
            vars(authorizer.composition).pop(name, None)
        self.access.shutdown()
