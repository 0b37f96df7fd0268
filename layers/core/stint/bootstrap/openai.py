"""Composition of what answers the OpenAI API: only the functions that serve it load this."""

from functools import cache

from stint.bootstrap.adapters import check_url, fetch, make_router
from stint.bootstrap.agents import delete_agent_objects, make_queue, make_services, make_store
from stint.domain.tasks import ObjectKind
from stint.models.routing import Router
from stint.services.agents_api import Services
from stint.services.background.background import Background
from stint.services.background.event_requests import EventRequests
from stint.services.background.notifications import CompletionEvents, EventBus
from stint.services.background.resume import Resumer
from stint.services.background.tail import StreamTail
from stint.services.background.waiting import LOCKED_SECONDS
from stint.services.background.worker import Worker
from stint.services.chat.chat import Chat
from stint.services.conversations.conversations import Conversations
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.deletions import DeleteObject, Deletions
from stint.services.document_reader import Reader
from stint.services.openai_api import ResponseServices
from stint.services.responses.compaction import Compaction, TokenCounts
from stint.services.responses.context import Contexts
from stint.services.responses.model_input import Inputs
from stint.services.responses.planner import ResponsePlanner
from stint.services.responses.read import StoredResponses
from stint.services.responses.recovery import Recovery, WorkQueue
from stint.services.responses.responses import Responses
from stint.settings import Settings, load_settings
from stint.store.clients import make_dynamodb, make_events, make_s3
from stint.store.messaging import EventBridgeBus
from stint.store.response_store import ResponseStore


@cache
def make_response_store() -> ResponseStore:
    settings = load_settings()
    return ResponseStore.open(make_dynamodb(), settings.table, make_s3, settings.bucket)


@cache
def make_all_deletions() -> Deletions:
    """Compose the deletions of every kind, for the worker."""
    kinds = delete_agent_objects(make_store()) | delete_response_objects(make_response_store())
    return Deletions(kinds, make_queue().send)


def delete_response_objects(store: ResponseStore) -> dict[ObjectKind, DeleteObject]:
    """Return the functions that delete responses and conversations."""
    return {
        "response": lambda task, deadline: store.responses.delete(task.tenant, task.ids[0], deadline),
        "conversation": lambda task, deadline: store.conversations.delete(task.tenant, task.ids[0], deadline),
    }


@cache
def make_worker(tenant: str) -> Worker:
    """Compose the worker of a tenant, once a process."""
    return compose_worker(tenant, load_settings(), make_response_store(), make_response_services(tenant))


@cache
def make_event_requests(tenant: str) -> EventRequests:
    """Compose what the worker does for events, once a process."""
    responses = make_response_services(tenant)
    return compose_event_requests(
        tenant, load_settings(), make_response_store(), make_services(tenant), responses, make_worker(tenant)
    )


@cache
def make_response_services(tenant: str) -> ResponseServices:
    """Compose the use cases of a tenant, once a process."""
    return compose_responses(tenant, load_settings(), make_response_store(), make_router(), make_services(tenant))


def compose_responses(
    tenant: str,
    settings: Settings,
    store: ResponseStore,
    router: Router,
    services: Services,
    queue: WorkQueue | None = None,
) -> ResponseServices:
    """Put the use cases of a tenant together, on the registry and the tools that its agents have."""
    opaque = OpaqueTexts(tenant, store.signing_keys, settings.unsigned_content_until)
    queue = queue or make_queue()
    deletions = Deletions(delete_response_objects(store), queue.send)
    recovery = Recovery(tenant, store, queue, opaque)
    contexts = Contexts(tenant, store, recovery, opaque, settings.lease_seconds, settings.history_bytes)
    planner = ResponsePlanner(router, services.registry, services.toolgroups.tools)
    reader = Reader(fetch, check_url)
    inputs = Inputs(contexts, reader)
    responses = Responses(tenant, store, contexts, planner, reader, settings.default_model)
    return ResponseServices(
        responses=responses,
        background=Background(tenant, store, responses, recovery, queue),
        tail=StreamTail(tenant, store, recovery),
        stored_responses=StoredResponses(tenant, store, recovery, deletions),
        conversations=Conversations(tenant, store.conversations, reader, deletions, opaque),
        chat=Chat(router, services.registry, reader),
        compaction=Compaction(router, services.registry, inputs),
        token_counts=TokenCounts(planner, inputs, settings.default_model),
        heartbeat_seconds=settings.heartbeat_seconds,
    )


def compose_worker(
    tenant: str, settings: Settings, store: ResponseStore, services: ResponseServices, bus: EventBus | None = None
) -> Worker:
    """Put the worker of a tenant together."""
    resumer = Resumer(services.responses, patience(settings))
    completion_events = CompletionEvents(bus or EventBridgeBus(make_events, settings.event_bus))
    return Worker(tenant, store, resumer, services.background.recovery, completion_events, settings.lease_seconds)


def compose_event_requests(
    tenant: str,
    settings: Settings,
    store: ResponseStore,
    services: Services,
    responses: ResponseServices,
    worker: Worker,
) -> EventRequests:
    """Put together what the worker does for events."""
    return EventRequests(
        tenant=tenant,
        claims=store.claims,
        turns=services.turns,
        background=responses.background,
        worker=worker,
        completion_events=worker.completion_events,
        lease_seconds=settings.lease_seconds,
        patience=patience(settings),
    )


def patience(settings: Settings) -> float:
    """Tell how long a session or conversation in use is waited for: its holder may have died over it."""
    return max(LOCKED_SECONDS, 2 * settings.lease_seconds)
