"""One process with the composition of the functions, which serves several tenants behind a gateway of the tests."""

import asyncio
import os
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from types import SimpleNamespace

import httpx
from infra.local.engine import ROOT, Engine
from infra.local.routing import Router
from infra.local.system import Invoke, System
from infra.local.translation import translate
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.api.app_fixture import Served, vars_of
from tests.api.fakes import FakeSchedules
from tests.route_rules import SERVED
from tests.system.data_outputs import OUTPUTS

from stint.bootstrap.openai import OpenAIComposition
from stint.bootstrap.operator import OperatorComposition
from stint.caller import set_principal, set_tenant
from stint.domain.principals import SCOPES, Principal
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
from stint.settings import Settings, read_settings

TENANT_HEADER = "x-test-tenant"
TASK_SECONDS = 60.0
FUNCTION: ContextVar[str] = ContextVar("FUNCTION", default="")
"""The logical id of the function that would run the current code; empty for code of a test."""


@cache
def read_system() -> System:
    """Return the system of the template, with the defaults of its parameters."""
    return System(ROOT / "template.yaml", translate(ROOT / "template.yaml", "us-east-1"), outputs=OUTPUTS)


@cache
def read_router() -> Router:
    return Router(read_system().routes)


def find_function(method: str, path: str) -> str:
    """Return the logical id of the function that API Gateway invokes for a request."""
    found = read_router().match(method, path)
    assert found is not None, path
    assert isinstance(found.route.integration, Invoke), path
    [function] = [each for each in read_system().functions if each.name == found.route.integration.function]
    return function.logical_id


class Gateway:
    """Sets the caller in the request context, as API Gateway does with the authorizer's answer, and FUNCTION."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        FUNCTION.set(find_function(scope["method"], scope["path"]))
        headers = dict(scope.get("headers", ()))
        if tenant := headers.get(TENANT_HEADER.encode()):
            # Automations need a key. Administration would look for its record, and there is none.
            key_id = "a-key" if scope["path"].startswith("/v1/agents/automations") else ""
            caller = Principal(tenant.decode(), "a test", frozenset(SCOPES), key_id)
            scope["aws.event"] = {"requestContext": {"authorizer": caller.to_context()}}
        await self.app(scope, receive, send)


class WorkerQueue:
    """The work queue, whose worker is this process. It handles tasks at once, unless they are delayed."""

    def __init__(self, composition: OpenAIComposition) -> None:
        self.composition = composition
        self.sent: list[AnyTask] = []
        self._running: set[asyncio.Task[None]] = set()

    async def send(self, task: AnyTask) -> None:
        self.sent.append(task)
        if task.delay_seconds:
            return
        running = asyncio.get_running_loop().create_task(run_task(self.composition, task))
        self._running.add(running)
        running.add_done_callback(self._running.discard)


async def run_task(composition: OpenAIComposition, task: AnyTask) -> None:
    """Handle a task like the worker, which has no caller."""
    FUNCTION.set("Worker")
    set_principal(None)
    set_tenant(task.tenant)
    deadline = asyncio.get_running_loop().time() + TASK_SECONDS
    if isinstance(task, ResponseTask):
        await composition.make_worker(task.tenant).handle(task.response_id, deadline)
    elif isinstance(task, IngestionTask):
        await composition.make_ingestion(task.tenant).handle_task(task, deadline, last=True)
    elif isinstance(task, WaitingTask | ResumeTask):
        await composition.make_waiting_runs(task.tenant).handle(task, deadline)
    elif isinstance(task, WebhookTask):
        await composition.make_webhook_deliveries(task.tenant).handle(task)
    elif isinstance(task, AutomationTask):
        await make_automation_runs(composition, task.tenant).handle(task, deadline)
    else:
        await composition.deletions.continue_deletion(task, TASK_SECONDS)


class WarmProcess:
    """Context manager that serves the whole API. The environment must have the engine's variables."""

    def __init__(self, engine: Engine, environment: Mapping[str, str] | None = None) -> None:
        variables = engine.running.variables() | {
            "STINT_AUTH": "authorizer",
            "STINT_EVENT_BUS": "default",
            "STINT_SCRIPTED_MODELS": "true",
            "STINT_SCRIPTED_WORD_SECONDS": "0",
            "STINT_DEFAULT_MODEL": "scripted/demo",
            "STINT_SANDBOX_FUNCTION": "sandbox",  # the scripted model does not call it
            "STINT_USAGE_SUMS": "true",
            "STINT_ALLOWED_HOSTS": "127.0.0.1",
            "STINT_SESSION_STREAM_SECONDS": "0.1",
            "STINT_CREDENTIALS_KEY_ARN": engine.running.hold_credentials_key(),
        }
        self.settings: Settings = read_settings({**os.environ, **variables, **(environment or {})})
        self.composition = OpenAIComposition(lambda: self.settings)
        self.operator = OperatorComposition(lambda: self.settings)
        self.queue = WorkerQueue(self.composition)
        vars(self.composition)["queue"] = self.queue
        vars(self.composition.adapters)["schedules"] = FakeSchedules()
        app = create_app(
            "all",
            *SERVED,
            make_services=self.make_services,  # type: ignore[arg-type]  # the services of all functions in one
            read_settings=lambda: self.settings,
            buffered=False,
        )
        app.add_middleware(Gateway)
        self.served = Served(app)

    def make_services(self, tenant: str) -> SimpleNamespace:
        """Return one object with the services of all functions."""
        parts = self.composition
        services = parts.make_services(tenant)
        agents, openai = vars_of(services), vars_of(parts.make_openai_services(tenant))
        knowledge = vars_of(parts.make_knowledge_services(tenant))
        october = vars_of(compose_october(tenant, parts.adapters, services, parts.knowledge_parts))
        admin = self.operator.make_services(tenant)
        made = vaults_of(parts, tenant), automations_of(parts, tenant)
        agents_api = vars_of(compose_openai_agents(services, self.settings, *made))
        own = {"keys": admin.keys, "stops": admin.stops, "runs": admin.runs}
        return SimpleNamespace(**(agents | openai | knowledge | october | agents_api | own))

    def client(self, tenant: str) -> httpx.Client:
        """Return a client of a tenant."""
        headers = {TENANT_HEADER: tenant}
        return httpx.Client(base_url=self.served.url, headers=headers, trust_env=False, timeout=60)
