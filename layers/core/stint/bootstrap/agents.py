"""Composition: the one place that picks concrete adapters. Nothing is made before the first request."""

import logging
from collections.abc import Mapping
from functools import cache

from stint.bootstrap.adapters import (
    check_url,
    fetch,
    make_router,
    make_shield_providers,
    make_tool_providers,
)
from stint.bootstrap.defaults import configured, providers
from stint.domain.redaction import SHORTEST
from stint.domain.tasks import ObjectKind
from stint.models.routing import Router
from stint.services.agents.agents import Agents
from stint.services.agents.sessions import Sessions
from stint.services.agents_api import Services
from stint.services.deletions import DeleteObject, Deletions
from stint.services.document_reader import Reader
from stint.services.registry.catalogue import Catalogue
from stint.services.registry.registry import Registry
from stint.services.registry.shields import Shields
from stint.services.registry.toolgroups import Toolgroups
from stint.services.registry.tools import Tools
from stint.services.turns.planner import Planner
from stint.services.turns.session_opener import Opener
from stint.services.turns.turns import Turns
from stint.settings import Settings, load_settings
from stint.store.clients import make_dynamodb, make_s3, make_sqs
from stint.store.messaging import SqsQueue
from stint.store.store import Store
from stint.tools.port import ToolProvider
from stint.tools.redaction import NEVER_REPLACED, RedactedProviders, warn_of_short_secrets

logger = logging.getLogger(__name__)


@cache
def make_store() -> Store:
    settings = load_settings()
    return Store.open(make_dynamodb(), settings.table, make_s3, settings.bucket)


@cache
def make_queue() -> SqsQueue:
    """Compose the queue of work for the worker; nothing is sent."""
    return SqsQueue(make_sqs, load_settings().queue_url)


def make_deletions() -> Deletions:
    return Deletions(delete_agent_objects(make_store()), make_queue().send)


def delete_agent_objects(store: Store) -> dict[ObjectKind, DeleteObject]:
    """Return the functions that delete agents and sessions."""
    deletion = store.deletion
    return {
        "agent": lambda task, deadline: deletion.delete_agent(task.tenant, task.ids[0], deadline),
        "session": lambda task, deadline: deletion.delete_session(task.tenant, task.ids[0], task.ids[1], deadline),
    }


@cache
def make_services(tenant: str) -> Services:
    """Compose the use cases of a tenant, once a process."""
    return compose(tenant, load_settings(), make_store(), make_router(), make_deletions())


def compose(
    tenant: str,
    settings: Settings,
    store: Store,
    router: Router,
    deletions: Deletions,
    tool_providers: Mapping[str, ToolProvider] | None = None,
) -> Services:
    """Put the use cases of a tenant together."""
    known = configured(settings, router)
    warn_of_short_keys(settings, known)
    registry = Registry(tenant, store.registrations, known, providers(settings), router, settings.agent_cache_seconds)
    agents = Agents(tenant, store.agents, deletions, settings.agent_cache_seconds)
    opener = Opener(tenant, store, agents, settings.lease_seconds, settings.history_bytes)
    tools = Tools(registry, RedactedProviders(tool_providers or make_tool_providers()), settings.tool_result_bytes)
    shields = Shields(registry, make_shield_providers(), settings.output_shield_window or None)
    planner = Planner(router, registry, tools, shields)
    return Services(
        agents=agents,
        sessions=Sessions(tenant, store, agents, deletions, settings.session_expiry_days),
        turns=Turns(tenant, store, agents, opener, planner, Reader(fetch, check_url)),
        registry=registry,
        toolgroups=Toolgroups(tools, check_url),
        shields=shields,
        heartbeat_seconds=settings.heartbeat_seconds,
    )


def warn_of_short_keys(settings: Settings, known: Catalogue) -> None:
    """Log which of the configured keys are too short to be replaced where something repeats them."""
    keys = {
        "OPENAI_API_KEY": settings.openai_api_key,
        "TAVILY_SEARCH_API_KEY": settings.tavily_api_key,
        "BRAVE_SEARCH_API_KEY": settings.brave_api_key,
        "WOLFRAM_ALPHA_API_KEY": settings.wolfram_api_key,
    }
    short = [name for name, key in keys.items() if 0 < len(key.get_secret_value()) < SHORTEST]
    if short:
        logger.warning(f"{', '.join(short)} has less than {SHORTEST} characters: {NEVER_REPLACED}")
    for toolgroup in known.toolgroups.values():
        warn_of_short_secrets(toolgroup.identifier, toolgroup.args)
