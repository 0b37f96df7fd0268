"""The whole API in this process, composed like the functions except for the models and the AWS clients."""

import asyncio
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property, partial
from types import SimpleNamespace, TracebackType
from typing import Any, Self, TypeVar

import boto3
import uvicorn
from botocore.config import Config
from fastapi import APIRouter, FastAPI
from infra.local.engine import Engine
from tests.api.fakes import HEARTBEAT, FakeKnowledge, FakeSchedules, Faulty, NoRunner, Recorder
from tests.openresponses.asgi import Watched
from tests.route_rules import SAVED_AGENTS, SERVED
from tests.services.worker_fixture import FakeQueue
from tests.store.dynamodb_proxy import DynamoDBProxy

from stint.apis.agents import AgentsServices
from stint.apis.knowledge import KnowledgeServices
from stint.apis.openai import OpenAIServices
from stint.aws.dynamodb import DynamoDBClient
from stint.aws.environment import AwsEnvironment
from stint.aws.s3_reader import S3Reader
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose, delete_agent_objects
from stint.bootstrap.automation_runs import compose_automation_runs
from stint.bootstrap.chat_models import make_named, suggest
from stint.bootstrap.knowledge import compose_knowledge, delete_knowledge_objects
from stint.bootstrap.knowledge_parts import KnowledgeParts
from stint.bootstrap.openai import compose_responses, compose_worker, delete_response_objects
from stint.bootstrap.vector_stores import compose_ingestion, compose_vector_stores
from stint.domain.inference import InferenceRequest
from stint.domain.tasks import AutomationTask, IngestionTask, ResponseTask, ResumeTask, WaitingTask
from stint.http.app import create_app
from stint.http.requests import LazyRouter
from stint.http.routes import agents
from stint.models.openai_compatible import OpenAICompatible
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.models.scripted.model import Scripted
from stint.october_2024.composition import compose_october
from stint.openai_agents.composition import compose_openai_agents, make_automations, make_vaults
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.port import VectorIndex
from stint.services.access.api_keys import ApiKeys
from stint.services.access.key_administration import KeyAdministration
from stint.services.access.run_administration import RunAdministration
from stint.services.access.stop_administration import StopAdministration, Stops
from stint.services.background.waiting_runs import WaitingRuns
from stint.services.deletions import Deletions
from stint.services.knowledge.container_files import ContainerFiles
from stint.services.responses.code_runs import CodeAccess
from stint.services.responses.link_cache import LinkCache
from stint.settings import Settings, read_settings
from stint.store.api_keys import ApiKeyStore
from stint.store.bucket import Bucket
from stint.store.objects import BucketObjects
from stint.store.store import Store
from stint.store.table import Table
from stint.tools.code_interpreter.runs import CodeRunner
from stint.tools.port import ToolProvider

LEASE = 300.0

T = TypeVar("T")


class AppFixture:
    """The services of the routes. Each test has its own `tenant`, for which nothing is stored at first."""

    def __init__(
        self, engine: Engine, proxy: DynamoDBProxy | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        table, bucket = engine.outputs["TableName"], engine.outputs["BucketName"]
        keys_table = engine.outputs["KeysTableName"]
        own = {
            "table": table,
            "bucket": bucket,
            "keys_table": keys_table,
            "default_model": "scripted/demo",
            "scripted_models": True,
            "image_model": "scripted/drawing",
        }
        self.own = own | {"lease_seconds": LEASE, "heartbeat_seconds": HEARTBEAT, "auth": "none"}
        self.settings = self.read_settings(environment or {})
        config = Config(max_pool_connections=32, retries={"total_max_attempts": 1})
        self.dynamodb: Any = boto3.client("dynamodb", config=config)
        self._proxy = proxy
        variables = {**os.environ, **(proxy.environment() if proxy else {})}
        self.client = DynamoDBClient(AwsEnvironment(variables))
        self.s3 = boto3.client("s3", config=config)
        self.bucket = Bucket(bucket, lambda: self.s3, lambda: S3Reader(AwsEnvironment(variables), bucket))
        self.store = Store(self.client, self.settings.table, self.bucket)
        self.index = PackedIndex(BucketObjects(self.bucket), self.settings.packed_bytes)
        self.recorder = Recorder()
        self.faulty = Faulty()
        self.chat_url = ""
        self.tenant = ""
        self.models: dict[str, Callable[[], ChatModel]] = {}
        self.tool_providers: Mapping[str, ToolProvider] | None = None
        self.knowledge = FakeKnowledge()
        self.runner: CodeRunner = NoRunner()
        self.made: dict[str, Any] = {}
        self.queue = FakeQueue()
        self.schedules = FakeSchedules()

    def read_settings(self, environment: Mapping[str, str]) -> Settings:
        """Return the settings of an environment, with this engine's table and bucket."""
        return read_settings(environment).model_copy(update=self.own)

    @property
    def proxy(self) -> DynamoDBProxy:
        """Return the proxy that all calls of DynamoDB pass."""
        assert self._proxy is not None
        return self._proxy

    def make_services(self, _: str) -> Any:
        """Return one object with the services of all functions."""
        if self.tenant not in self.made:
            self.made[self.tenant] = SimpleNamespace(**self.compose(self.tenant))
        return self.made[self.tenant]

    def compose(self, tenant: str) -> dict[str, Any]:
        settings, store = self.settings, self.store
        named = Adapters(settings)
        models: dict[str, Callable[[], ChatModel]] = {
            "scripted": lambda: Scripted(word_delay=0),
            "recorded": lambda: self.recorder,
            "faulty": lambda: self.faulty,
            **{server.id: partial(make_named, server, settings, named.fetch) for server in named.model_servers},
            **self.models,
        }
        if self.chat_url:
            models["openai"] = lambda: OpenAICompatible(self.chat_url, repeats=0, stall_timeout=120)
        router = Router(models, settings.default_model, suggest=lambda model_id: suggest(model_id, settings, router))
        kinds = delete_agent_objects(store, self.queue.send, self.schedules.delete) | delete_knowledge_objects(
            store, self.get_index
        )
        deletions = Deletions(kinds, self.queue.send)
        all_deletions = Deletions(kinds | delete_response_objects(store), self.queue.send)
        adapters = Adapters(settings, router=router, tool_providers=self.tool_providers, make_index=self.get_index)
        vars(adapters)["schedules"] = self.schedules
        services = compose(tenant, adapters, store, deletions)
        containers = ContainerFiles(tenant, store.containers, store.files, self.queue.send)
        responses = compose_responses(
            tenant,
            adapters,
            self.store,
            services,
            self.queue,
            LinkCache(),
            lambda: self.knowledge,
            all_deletions,
            lambda: CodeAccess(self.runner, containers),
        )
        worker = compose_worker(tenant, settings, self.store, responses, self.queue)
        registry = services.registry
        parts = KnowledgeParts(
            adapters,
            store,
            self.get_index,
            deletions,
            self.queue.send,
            lambda _: services.meters,
            lambda _: registry,
        )
        self.ingestion = compose_ingestion(tenant, parts)
        knowledge = compose_knowledge(tenant, parts, compose_vector_stores(tenant, parts))
        keys = ApiKeys(ApiKeyStore(Table(self.client, settings.keys_table)))
        administration = KeyAdministration(keys, settings.operator_tenant, self.store.stops, settings.max_key_days)
        stops = StopAdministration(Stops(self.store.stops, keys), administration)
        runs = RunAdministration(self.store.running_runs, administration)
        own = {"worker": worker, "keys": administration, "stops": stops, "runs": runs}
        own |= vars_of(compose_october(tenant, adapters, services, parts))
        place = tenant, adapters, store, deletions
        agents_api = compose_openai_agents(services, settings, make_vaults(*place), partial(make_automations, *place))
        own |= vars_of(agents_api)
        self.automation_runs = compose_automation_runs(
            tenant, adapters, store, self.queue.send, lambda: agents_api.automation_targets
        )
        return vars_of(services) | vars_of(responses) | vars_of(knowledge) | own

    def get_index(self) -> VectorIndex:
        return self.index

    def ingest(self) -> None:
        """Ingest the documents of the queue's tasks like the worker."""

        async def run(task: IngestionTask) -> None:
            await self.ingestion.handle_task(task, asyncio.get_running_loop().time() + 900, last=True)

        while self.queue.ingestions:
            asyncio.run(run(self.queue.ingestions.pop(0)))

    def work_off(self) -> None:
        """Wait for tasks in the queue, and process all of them like the worker."""

        async def run(task: ResponseTask) -> None:
            deadline = asyncio.get_running_loop().time() + 900
            await self.make_services("").worker.handle(task.response_id, deadline)

        wait_until(lambda: bool(self.queue.tasks))
        while self.queue.tasks:
            asyncio.run(run(self.queue.tasks.pop(0)))

    def run_waiting(self) -> None:
        """Handle the tasks of waiting messages once, like the worker after their delay."""
        services = self.make_services("")
        runs = WaitingRuns(services.turn_requests, services.response_requests)

        async def run(task: WaitingTask | ResumeTask) -> None:
            await runs.handle(task, asyncio.get_running_loop().time() + 900)

        tasks, self.queue.waiting = self.queue.waiting, []
        for task in tasks:
            asyncio.run(run(task))

    def fire_schedules(self) -> None:
        """Send the tasks of all schedules for the current minute."""
        self.queue.automations += self.schedules.fire(time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(time.time())))

    def run_automations(self) -> None:
        """Handle the tasks of automations, once each, like the worker."""

        async def run(task: AutomationTask) -> None:
            await self.automation_runs.handle(task, asyncio.get_running_loop().time() + 900)

        tasks, self.queue.automations = self.queue.automations, []
        for task in tasks:
            asyncio.run(run(task))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Process the queue's tasks in another thread."""
        worker = threading.Thread(target=self.work_off)
        worker.start()
        yield
        worker.join()

    def app(self, *, buffered: bool = False, everything: bool = False) -> FastAPI:
        """Return the app of all routers, or only of the buffered agents. `everything` is a buffered app of all."""
        parts: tuple[APIRouter | LazyRouter, ...] = (SAVED_AGENTS, agents.router) if buffered else SERVED
        app = create_app(
            "all",
            *parts,
            make_services=self.make_services,
            read_settings=lambda: self.settings,
            buffered=buffered or everything,
        )
        app.add_middleware(Watched)
        return app

    @property
    def last_request(self) -> InferenceRequest:
        """Return the last request to a `recorded/` model."""
        return self.recorder.requests[-1]

    def close(self) -> None:
        self.dynamodb.close()
        self.s3.close()


def run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in another thread: the event loop of the main thread is Mangum's."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def vars_of(services: AgentsServices | OpenAIServices | KnowledgeServices) -> dict[str, Any]:
    """Return the parts of services by their names, also those that are made by the first request for them."""
    classes = type(services).__mro__
    made = [
        name for each in classes for name, part in vars(each).items() if isinstance(part, property | cached_property)
    ]
    return {name: getattr(services, name) for name in [*(field.name for field in fields(services)), *made]}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "waited a minute in vain"
        time.sleep(0.002)


class Served:
    """An app that uvicorn serves in a thread. `posts` counts the POSTs by the last part of their path."""

    def __init__(self, app: FastAPI) -> None:
        self.posts: dict[str, int] = defaultdict(int)
        self.running = 0
        options: dict[str, Any] = {"log_level": "critical", "lifespan": "off", "access_log": False}
        # uvicorn would choose uvloop, whose clock tests cannot move.
        config = uvicorn.Config(self.counted(app), port=0, loop="asyncio", **options)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def counted(self, app: FastAPI) -> Callable[..., Any]:
        async def count(scope: Any, receive: Any, send: Any) -> None:
            if scope.get("method") == "POST":
                self.posts[scope["path"].rsplit("/", 1)[-1]] += 1
            self.running += 1
            try:
                await app(scope, receive, send)
            finally:
                self.running -= 1

        return count

    def settle(self) -> None:
        """Wait until every request has ended and its log lines are written."""
        wait_until(lambda: self.running == 0)

    @property
    def url(self) -> str:
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def __enter__(self) -> Self:
        self.thread.start()
        wait_until(lambda: self.server.started)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.server.should_exit = True
        self.thread.join(10)
