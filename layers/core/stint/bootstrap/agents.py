"""Composition of the services with concrete adapters. Nothing is made before the first request.

`AgentsComposition` is a process: it reads the settings when the first request arrives, and has the parts that all
tenants share. `compose` makes the use cases of one tenant from them. A use case receives its parts as arguments, so
tests compose it with others, and nothing below this package chooses an adapter.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from stint.apis.agents import AgentsServices
from stint.aws.dynamodb import DynamoDBClient
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.defaults import defer_cache_keys, make_registry
from stint.bootstrap.restore import Composition, per_tenant
from stint.documents.document_reader import DocumentReader
from stint.domain.ids import TENANT
from stint.domain.llama_stack.registry import Provider
from stint.domain.prices import parse_prices
from stint.domain.redaction import SHORTEST
from stint.domain.tasks import DeletionTask, ObjectKind, SendTask
from stint.domain.tenant_limits import limits_of, parse_tenants
from stint.services.agents.agents import Agents
from stint.services.agents.sessions import Sessions
from stint.services.deletions import DeleteObject, Deletions, delete_store_of_session
from stint.services.registry.catalogue import Catalogue
from stint.services.registry.shields import Shields
from stint.services.registry.toolgroups import Toolgroups
from stint.services.registry.tools import Tools
from stint.services.runs.webhook_events import WebhookEvents
from stint.services.turns.planner import Planner
from stint.services.turns.session_documents import SessionDocuments
from stint.services.turns.session_opener import SessionOpener
from stint.services.turns.session_transcript import TranscriptCache
from stint.services.turns.turns import Turns
from stint.settings import Settings
from stint.spending.meters import Meters
from stint.store.clients import make_bucket, make_dynamodb, make_sqs
from stint.store.messaging import SqsQueue
from stint.store.store import Store
from stint.tools.encrypted_credentials import EncryptedCredentials
from stint.tools.port import RAG_RUNTIME, ToolProvider
from stint.tools.redaction import NEVER_REPLACED, RedactedProviders, warn_of_short_secrets
from stint.tools.secret_references import ResolvedProviders, SecretReferences

if TYPE_CHECKING:
    from stint.bootstrap.model_servers import ModelServer
    from stint.bootstrap.rag import RAGServices
    from stint.services.registry.provider_health import ProviderHealthChecks
    from stint.services.vaults.bound_credentials import BoundCredentials
    from stint.services.webhooks.webhook_endpoints import WebhookEndpoints

logger = logging.getLogger(__name__)


class AgentsComposition(Composition):
    """The parts of one process, each made when first used."""

    calls_at_once: ClassVar[int] = 5
    """Calls of DynamoDB that the first run of a process makes at once."""

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        super().__init__(read_settings)
        self.make_services: Callable[[str], AgentsServices] = per_tenant(self.compose_services)

    @cached_property
    def adapters(self) -> Adapters:
        return Adapters(self.settings)

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        return make_dynamodb(self.adapters.data_credentials)

    @cached_property
    def store(self) -> Store:
        bucket = make_bucket(self.settings.bucket, self.adapters.data_credentials)
        return Store(self.dynamodb, self.settings.table, bucket, self.settings.key_layout)

    @cached_property
    def transcripts(self) -> TranscriptCache:
        return TranscriptCache(self.settings.transcript_bytes)

    @cached_property
    def queue(self) -> SqsQueue:
        return SqsQueue(make_sqs, self.settings.queue_url)

    @cached_property
    def deletions(self) -> Deletions:
        return Deletions(self.deletion_kinds(), self.queue.send)

    def deletion_kinds(self) -> dict[ObjectKind, DeleteObject]:
        """Return the functions that delete the objects of this composition, by their kind."""

        async def delete_schedule(name: str) -> None:
            await self.adapters.schedules.delete(name)

        return delete_agent_objects(self.store, self.queue.send, delete_schedule)

    async def open_ahead(self) -> None:
        """Load and open what the first run needs; see `first_run`."""
        from stint.bootstrap.first_run import open_ahead  # noqa: PLC0415 - for streaming functions only

        await open_ahead(self.load_ahead, self.dynamodb, self.adapters, at_once=self.calls_at_once)

    def load_ahead(self) -> None:
        """Load what a run needs from its submission on."""
        services = self.make_services(TENANT)
        _ = services.turn_requests, self.store.run_signals

    def compose_services(self, tenant: str) -> AgentsServices:
        return compose(tenant, self.adapters, self.store, self.deletions, transcripts=self.transcripts)


def delete_agent_objects(
    store: Store, send: SendTask, delete_schedule: Callable[[str], Awaitable[None]] | None = None
) -> dict[ObjectKind, DeleteObject]:
    """Return the functions that delete agents, sessions, vaults and automations.

    The worker deletes the sessions' own vector dbs. `delete_schedule` deletes that of an automation, by its
    name; without it, an automation with a schedule is left to the worker.
    """
    delete_vector_db = delete_store_of_session(store, send)

    async def delete_agent(task: DeletionTask, deadline: float) -> bool:
        if task.orphan:
            return await store.deletion.delete_orphan(task.tenant, task.ids[0])
        return await store.deletion.delete_agent(task.tenant, task.ids[0], deadline, delete_vector_db)

    async def delete_session(task: DeletionTask, deadline: float) -> bool:
        place = task.tenant, task.ids[0], task.ids[1]
        if task.orphan:
            return await store.deletion.delete_orphaned_session(*place, deadline, delete_vector_db)
        return await store.deletion.delete_session(*place, deadline, delete_vector_db=delete_vector_db)

    async def delete_vault(task: DeletionTask, _: float) -> bool:
        return await store.vaults.delete(task.tenant, task.ids[0])

    async def delete_automation(task: DeletionTask, deadline: float) -> bool:
        from stint.domain.schedules import NoSchedules  # noqa: PLC0415 - few tenants have automations

        delete = delete_schedule or NoSchedules().delete
        return await store.automations.delete(task.tenant, task.ids[0], deadline, delete)

    return {
        "agent": delete_agent,
        "session": delete_session,
        "vault": delete_vault,
        "automation": delete_automation,
    }


def compose(
    tenant: str, adapters: Adapters, store: Store, deletions: Deletions, transcripts: TranscriptCache | None = None
) -> AgentsServices:
    """Make the use cases of a tenant. `transcripts` is the cache that all tenants of a process share."""
    settings, router, check_url = adapters.settings, adapters.router, adapters.check_url
    registry = make_registry(tenant, settings, router, store)
    warn_of_short_keys(settings, registry.configured, adapters.model_servers)
    credentials = EncryptedCredentials(tenant, adapters.credential_cipher)
    agents = Agents(
        tenant, store.agents, registry, deletions, cache_seconds=settings.agent_cache_seconds, credentials=credentials
    )
    transcripts = transcripts or TranscriptCache(settings.transcript_bytes)
    webhooks = WebhookEvents(
        tenant, registry.knows_no_webhook_endpoints, registry.find_webhook_endpoints, deletions.send
    )
    opener = SessionOpener(
        tenant,
        store,
        agents,
        transcripts,
        lease_seconds=settings.lease_seconds,
        history_bytes=settings.history_bytes,
        webhooks=webhooks,
    )
    reader = DocumentReader(adapters.fetch, check_url, adapters.document_limits)

    def get_tools() -> Tools:  # a circle: retrieval is one of the tools, and its queries may call the others
        return tools

    make_rag = cache(lambda: compose_rag(tenant, adapters, store, deletions.send, get_tools=get_tools))
    redacted = RedactedProviders(with_knowledge(adapters.tool_providers, make_rag))
    references = SecretReferences(tenant, read_secret_of_toolgroup)
    providers_of_tenant = ResolvedProviders(
        redacted, references, credentials, cache(lambda: compose_bound_credentials(tenant, adapters, store))
    )
    tools = Tools(registry, providers_of_tenant, settings.tool_result_bytes)
    shields = Shields(registry, adapters.shield_providers, settings.output_shield_window or None)
    keys = defer_cache_keys(tenant, router, store)
    planner = Planner(router, registry, tools, shields, find_cache_keys=keys)
    meters = make_meters(tenant, settings, store)
    documents = SessionDocuments(reader, lambda: make_rag().session_stores)
    turns = Turns(
        tenant,
        store,
        agents,
        opener,
        planner=planner,
        reader=reader,
        documents=documents,
        meters=meters,
        traces=adapters.trace_sender,
    )
    return AgentsServices(
        tenant=tenant,
        store=store,
        lease_seconds=settings.lease_seconds,
        agents=agents,
        sessions=Sessions(
            tenant,
            store,
            agents,
            deletions,
            expiry_days=settings.session_expiry_days,
            retention_days=settings.retention_days,
            history_bytes=settings.history_bytes,
            webhooks=webhooks,
        ),
        turns=turns,
        registry=registry,
        toolgroups=Toolgroups(tools, check_url, credentials),
        shields=shields,
        meters=meters,
        heartbeat_seconds=settings.heartbeat_seconds,
        check_providers=make_check(adapters),
        find_cache_keys=keys,
        send=deletions.send,
        service_name=settings.service_name,
        webhooks=webhooks,
        make_webhook_endpoints=cache(partial(compose_webhook_endpoints, tenant, adapters, store)),
    )


def compose_webhook_endpoints(tenant: str, adapters: Adapters, store: Store) -> "WebhookEndpoints":
    """Make the use case of webhook endpoints, whose modules are loaded now."""
    from stint.services.webhooks.signing_secrets import SigningSecrets  # noqa: PLC0415
    from stint.services.webhooks.webhook_endpoints import WebhookEndpoints  # noqa: PLC0415 - few requests need it

    secrets = SigningSecrets(tenant, adapters.credential_cipher)
    return WebhookEndpoints(tenant, store.webhook_endpoints, secrets, adapters.guard)


def make_meters(tenant: str, settings: Settings, store: Store) -> Meters:
    """Return the meters of a tenant's runs."""
    prices, budgets = parse_prices(settings.prices), limits_of(tenant, parse_tenants(settings.tenants)).budgets
    choices = {"sums_usage": settings.usage_sums, "hides_cache": settings.hide_cached_tokens}
    return Meters(tenant, store, prices, budgets, memory_mb=settings.memory_mb, **choices)


def compose_rag(
    tenant: str, adapters: Adapters, store: Store, send: SendTask, get_tools: Callable[[], Tools]
) -> "RAGServices":
    """Make the use cases of vector dbs, whose modules are loaded now."""
    from stint.bootstrap import rag  # noqa: PLC0415

    return rag.compose_rag(tenant, adapters, store, send, get_tools=get_tools)


def compose_bound_credentials(tenant: str, adapters: Adapters, store: Store) -> "BoundCredentials":
    """Make the binder of credentials in vaults, whose modules are loaded now."""
    from stint.bootstrap import vaults  # noqa: PLC0415 - few sessions have vaults

    return vaults.compose_bound_credentials(tenant, adapters, store)


async def read_secret_of_toolgroup(arn: str, name: str) -> str:
    """Read a secret that a registration names. Raises ToolUnavailable."""
    from stint.bootstrap.registered_secrets import read_registered_secret  # noqa: PLC0415 - few toolgroups name one

    return await read_registered_secret(arn, name)


def with_knowledge(
    providers: Mapping[str, ToolProvider], make_rag: "Callable[[], RAGServices]"
) -> Mapping[str, ToolProvider]:
    """Return the providers of tools with that of a tenant's vector dbs."""

    from stint.bootstrap.lazy_mapping import LazyMapping  # noqa: PLC0415 - not at the start of a function

    def make_knowledge_tools() -> ToolProvider:
        from stint.tools.knowledge.provider import KnowledgeTools  # noqa: PLC0415

        return KnowledgeTools(lambda: make_rag().rag.search_knowledge)

    given = {name: partial(providers.__getitem__, name) for name in providers}
    return LazyMapping({RAG_RUNTIME: make_knowledge_tools, **given})


def make_check(adapters: Adapters) -> Callable[[Sequence[Provider]], Awaitable[list[Provider]]]:
    """Return a function that looks at the health of providers. The clients that this needs are loaded by a call."""

    @cache
    def make_checks() -> "ProviderHealthChecks":
        from stint.bootstrap.provider_health import make_health_checks  # noqa: PLC0415

        return make_health_checks(adapters)

    async def check(shown: Sequence[Provider]) -> list[Provider]:
        return await make_checks().check(shown)

    return check


def warn_of_short_keys(settings: Settings, known: Catalogue, servers: "Sequence[ModelServer]" = ()) -> None:
    """Log the configured keys that are too short to be redacted."""
    keys = {
        "OPENAI_API_KEY": settings.openai_api_key,
        "TAVILY_SEARCH_API_KEY": settings.tavily_api_key,
        "BRAVE_SEARCH_API_KEY": settings.brave_api_key,
        "WOLFRAM_ALPHA_API_KEY": settings.wolfram_api_key,
    }
    values = {name: key.get_secret_value() for name, key in keys.items()}
    values |= {each.key_variable: settings.key_in(each.key_variable) for each in servers}
    short = [name for name, key in values.items() if 0 < len(key) < SHORTEST]
    if short:
        logger.warning(f"{', '.join(short)} has fewer than {SHORTEST} characters: {NEVER_REPLACED}")
    for toolgroup in known.toolgroups.values():
        warn_of_short_secrets(toolgroup.identifier, toolgroup.args)
