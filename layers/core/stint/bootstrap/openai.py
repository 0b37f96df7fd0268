"""Composition of the OpenAI API's services. Only the functions that serve it load this module.

It extends the composition of agents, because responses use their registry, tools, shields and meters. Use cases that
few requests need are functions with a cache, whose modules are loaded by the first request that calls them.
"""

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, ClassVar, NoReturn

from stint.apis.agents import AgentsServices
from stint.apis.openai import OpenAIServices
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.knowledge import KnowledgeComposition
from stint.bootstrap.restore import per_tenant
from stint.documents.document_reader import DocumentReader, StoredFileContent
from stint.domain.errors import InvalidRequest
from stint.domain.ids import TENANT
from stint.domain.tasks import ObjectKind
from stint.services.background.background import Background
from stint.services.background.notifications import CompletionEvents, EventBus
from stint.services.background.tail import StreamTail
from stint.services.background.waiting import LOCKED_SECONDS
from stint.services.conversations.conversations import Conversations
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.deletions import DeleteObject, Deletions
from stint.services.inference.chat.chat import Chat
from stint.services.responses.compaction import Compaction, TokenCounts
from stint.services.responses.context import Contexts
from stint.services.responses.link_cache import LinkCache
from stint.services.responses.model_input import InputReader
from stint.services.responses.planner import ResponsePlanner
from stint.services.responses.read import ResponseReader
from stint.services.responses.recovery import Recovery, WorkQueue
from stint.services.responses.responses import Responses
from stint.settings import Settings
from stint.store.clients import make_events
from stint.store.messaging import EventBridgeBus
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.apis.end_users import EndUserServices
    from stint.apis.inference import InferenceServices
    from stint.services.background.event_requests import EventRequests
    from stint.services.background.waiting_runs import WaitingRuns
    from stint.services.background.worker import Worker
    from stint.services.responses.code_runs import CodeAccess
    from stint.services.webhooks.webhook_deliveries import WebhookDeliveries
    from stint.tools.knowledge.file_search import KnowledgeSearch


class OpenAIComposition(KnowledgeComposition):
    """The parts of a process that serves the Responses API or runs its worker."""

    calls_at_once: ClassVar[int] = 3

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        super().__init__(read_settings)
        self.make_openai_services: Callable[[str], OpenAIServices] = per_tenant(self.compose_openai_services)
        self.make_worker: Callable[[str], Worker] = per_tenant(self.compose_worker)
        self.make_event_requests: Callable[[str], EventRequests] = per_tenant(self.compose_event_requests)
        self.make_webhook_deliveries: Callable[[str], WebhookDeliveries] = per_tenant(self.compose_webhook_deliveries)

    def deletion_kinds(self) -> dict[ObjectKind, DeleteObject]:
        return super().deletion_kinds() | delete_response_objects(self.store)

    @cached_property
    def links(self) -> LinkCache:
        return LinkCache(self.settings.cache_bytes)

    def load_ahead(self) -> None:
        _ = self.make_openai_services(TENANT).response_requests, self.store.run_signals

    def compose_openai_services(self, tenant: str) -> OpenAIServices:
        services = self.make_services(tenant)
        make_search, make_code = partial(self.compose_search, tenant), partial(self.compose_code, tenant)
        return compose_responses(
            tenant,
            self.adapters,
            self.store,
            services,
            queue=self.queue,
            links=self.links,
            make_knowledge=make_search,
            deletions=self.deletions,
            make_code=make_code,
        )

    def compose_code(self, tenant: str) -> "CodeAccess":
        from stint.bootstrap.code_interpreter import compose_code  # noqa: PLC0415 - few responses run code

        return compose_code(tenant, self.settings, self.store, self.deletions)

    def compose_worker(self, tenant: str) -> "Worker":
        services, bus = self.make_openai_services(tenant), EventBridgeBus(make_events, self.settings.event_bus)
        return compose_worker(tenant, self.settings, self.store, services, bus=bus)

    def compose_webhook_deliveries(self, tenant: str) -> "WebhookDeliveries":
        from stint.services.webhooks.signing_secrets import SigningSecrets  # noqa: PLC0415 - as below
        from stint.services.webhooks.webhook_deliveries import WebhookDeliveries  # noqa: PLC0415 - few have endpoints

        secrets = SigningSecrets(tenant, self.adapters.credential_cipher)
        return WebhookDeliveries(tenant, self.store.webhook_endpoints, secrets, self.adapters.guard, self.queue.send)

    def make_waiting_runs(self, tenant: str) -> "WaitingRuns":
        """Make the use case that runs messages whose request died, whose modules are loaded now."""
        from stint.services.background.waiting_runs import WaitingRuns  # noqa: PLC0415 - few messages wait

        agents, openai = self.make_services(tenant), self.make_openai_services(tenant)
        return WaitingRuns(agents.turn_requests, openai.response_requests)

    def compose_event_requests(self, tenant: str) -> "EventRequests":
        services, responses = self.make_services(tenant), self.make_openai_services(tenant)
        worker = self.make_worker(tenant)
        return compose_event_requests(tenant, self.settings, self.store, services, responses=responses, worker=worker)


def delete_response_objects(store: Store) -> dict[ObjectKind, DeleteObject]:
    """Return the functions that delete responses, conversations and stored chat completions."""
    return {
        "response": lambda task, deadline: store.responses.delete(task.tenant, task.ids[0], deadline),
        "conversation": lambda task, deadline: store.conversations.delete(task.tenant, task.ids[0], deadline),
        "chat_completion": lambda task, deadline: store.chat_completions.delete(task.tenant, task.ids[0], deadline),
    }


async def read_stored_file(tenant: str, store: Store, file_id: str, most_bytes: int) -> StoredFileContent:
    """Read a file of a tenant for a model."""
    from stint.services.knowledge.input_files import read_file  # noqa: PLC0415 - few requests name a file

    return await read_file(tenant, store.files, file_id, most_bytes)


def not_composed() -> NoReturn:
    """Raise InvalidRequest, for compositions without vector stores and code."""
    raise InvalidRequest(
        "This function has neither vector stores nor a code interpreter. Remove the tool.", code="not_supported"
    )


def make_document_reader(tenant: str, adapters: Adapters, store: Store) -> DocumentReader:
    """Return the reader of a tenant's documents, which may be its stored files."""
    read_file = partial(read_stored_file, tenant, store)
    return DocumentReader(adapters.fetch, adapters.check_url, adapters.document_limits, read_file)


def compose_responses(
    tenant: str,
    adapters: Adapters,
    store: Store,
    services: AgentsServices,
    queue: WorkQueue,
    links: LinkCache,
    make_knowledge: Callable[[], "KnowledgeSearch"] = not_composed,
    deletions: Deletions | None = None,
    make_code: "Callable[[], CodeAccess]" = not_composed,
) -> OpenAIServices:
    """Make the use cases of a tenant. `make_knowledge` and `make_code` are called when a response has such a tool."""
    settings, router, keys = adapters.settings, adapters.router, services.find_cache_keys
    opaque, days = OpaqueTexts(tenant, store.signing_keys, settings.unsigned_content_until), settings.retention_days
    deletions = deletions or Deletions(delete_response_objects(store), queue.send)
    recovery = Recovery(tenant, store, queue, opaque, services.webhooks)
    contexts = Contexts(
        tenant,
        store,
        recovery,
        opaque,
        lease_seconds=settings.lease_seconds,
        history_bytes=settings.history_bytes,
        links=links,
    )
    planner = ResponsePlanner(
        router, services.registry, services.toolgroups.tools, make_knowledge, make_code=make_code, find_cache_keys=keys
    )
    reader = make_document_reader(tenant, adapters, store)
    responses = Responses(
        tenant,
        store,
        contexts,
        planner,
        reader=reader,
        default_model=settings.default_model,
        meters=services.meters,
        retention_days=days,
        traces=adapters.trace_sender,
    )
    make_inference = cache(
        lambda: compose_inference(tenant, adapters, store, services, deletions=deletions, reader=reader)
    )
    stored = ResponseReader(tenant, store, recovery, deletions, links=links)
    reconcile = contexts.conversations.reconcile
    conversations = Conversations(
        tenant,
        store.conversations,
        reader,
        deletions,
        opaque=opaque,
        reconcile=reconcile,
        cache=links,
        retention_days=days,
    )
    make_end_users = cache(partial(compose_end_users, tenant, store, deletions, services, stored, conversations))
    inputs, kept_bytes = InputReader(contexts, reader), settings.max_request_bytes // 2
    return OpenAIServices(
        tenant=tenant,
        store=store,
        lease_seconds=settings.lease_seconds,
        responses=responses,
        background=Background(tenant, store, responses, recovery, queue=queue, deletions=deletions),
        tail=StreamTail(tenant, store, recovery),
        stored_responses=stored,
        conversations=conversations,
        chat=Chat(
            router,
            services.registry,
            reader,
            lambda: make_inference().stored_chats,
            meters=services.meters,
            find_cache_keys=keys,
        ),
        compaction=Compaction(
            router, services.registry, inputs, services.meters, kept_bytes=kept_bytes, find_cache_keys=keys
        ),
        token_counts=TokenCounts(planner, inputs, settings.default_model, services.meters),
        heartbeat_seconds=settings.heartbeat_seconds,
        make_inference=make_inference,
        make_end_users=make_end_users,
        service_name=settings.service_name,
    )


def compose_inference(
    tenant: str,
    adapters: Adapters,
    store: Store,
    services: AgentsServices,
    deletions: Deletions,
    reader: DocumentReader,
) -> "InferenceServices":
    """Make the use cases of inference, whose modules are loaded now."""
    from stint.apis.inference import InferenceServices  # noqa: PLC0415
    from stint.services.inference.chat.stored import StoredChats  # noqa: PLC0415 - see OpenAIServices
    from stint.services.inference.completions import TextCompletions  # noqa: PLC0415
    from stint.services.inference.inference import ModelInference  # noqa: PLC0415

    return InferenceServices(
        inference=ModelInference(adapters.router, services.registry, reader, services.meters),
        completions=TextCompletions(adapters.router, services.registry, services.meters),
        stored_chats=StoredChats(tenant, store, deletions, adapters.settings.retention_days),
        heartbeat_seconds=adapters.settings.heartbeat_seconds,
    )


def compose_end_users(
    tenant: str,
    store: Store,
    deletions: Deletions,
    services: AgentsServices,
    responses: ResponseReader,
    conversations: Conversations,
) -> "EndUserServices":
    """Make the use cases of end users, whose modules are loaded now."""
    from stint.apis.end_users import EndUserServices  # noqa: PLC0415
    from stint.services.end_users.end_users import EndUsers  # noqa: PLC0415 - see OpenAIServices
    from stint.services.end_users.export import EndUserExport  # noqa: PLC0415

    users = EndUsers(tenant, store, deletions)
    return EndUserServices(users, EndUserExport(users, services.sessions, responses, conversations))


def compose_worker(tenant: str, settings: Settings, store: Store, services: OpenAIServices, bus: EventBus) -> "Worker":
    """Make the worker of a tenant, whose modules are loaded now."""
    from stint.services.background.resume import Resumer  # noqa: PLC0415
    from stint.services.background.worker import Worker  # noqa: PLC0415 - only one function needs it

    resumer = Resumer(services.responses, lock_wait_seconds(settings))
    completion_events = CompletionEvents(bus)
    return Worker(
        tenant,
        store,
        resumer,
        services.background.recovery,
        completion_events=completion_events,
        lease_seconds=settings.lease_seconds,
    )


def compose_event_requests(
    tenant: str,
    settings: Settings,
    store: Store,
    services: AgentsServices,
    responses: OpenAIServices,
    worker: "Worker",
) -> "EventRequests":
    """Make the worker's handler of events, whose modules are loaded now."""
    from stint.services.background.event_requests import EventRequests  # noqa: PLC0415 - only the worker needs it

    return EventRequests(
        tenant=tenant,
        records=store.idempotency,
        turns=services.turn_requests,
        background=responses.background,
        worker=worker,
        completion_events=worker.completion_events,
        lease_seconds=settings.lease_seconds,
        lock_wait_seconds=lock_wait_seconds(settings),
    )


def lock_wait_seconds(settings: Settings) -> float:
    """Return the seconds to wait for a session or conversation in use, whose holder may have died."""
    return max(LOCKED_SECONDS, 2 * settings.lease_seconds)
