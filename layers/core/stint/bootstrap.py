"""Composition: the one place that picks concrete adapters. Nothing is made before the first request."""

import logging
from collections.abc import Mapping
from functools import cache

from pydantic import ValidationError

from stint.adapters import DEMO_MODEL, check_url, fetch, make_router, make_shield_providers, make_tool_providers
from stint.domain.llama_stack.registrations import Configured, ModelRegisterRequest, ToolGroupRegisterRequest
from stint.domain.llama_stack.registry import Model, Provider, ProviderHealth, ProviderList
from stint.domain.redaction import SHORTEST
from stint.domain.validation import describe_faults
from stint.models.routing import Router
from stint.services.agents.agents import Agents
from stint.services.agents.sessions import Sessions
from stint.services.agents_api import Services
from stint.services.deletions import Deletions
from stint.services.document_reader import Reader
from stint.services.registry.catalogue import Catalogue, model_of, shield_of, toolgroup_of
from stint.services.registry.registry import Registry
from stint.services.registry.shields import Shields
from stint.services.registry.toolgroups import Toolgroups
from stint.services.registry.tools import Tools
from stint.services.turns.planner import Planner
from stint.services.turns.session_opener import Opener
from stint.services.turns.turns import Turns
from stint.settings import Settings, load_settings
from stint.store.clients import make_dynamodb, make_s3, make_sqs
from stint.store.queue import Queue
from stint.store.store import Store
from stint.tools.masking import mask_url
from stint.tools.port import ToolProvider
from stint.tools.redaction import NEVER_REPLACED, RedactedProviders, warn_of_short_secrets

logger = logging.getLogger(__name__)

WEB_SEARCH = "builtin::websearch"
WOLFRAM_ALPHA = "builtin::wolfram_alpha"


@cache
def make_store() -> Store:
    settings = load_settings()
    return Store.open(make_dynamodb(), settings.table, make_s3, settings.bucket)


@cache
def make_queue() -> Queue:
    """Compose the queue of work for the worker; nothing is sent."""
    return Queue(make_sqs, load_settings().queue_url)


def make_deletions() -> Deletions:
    return Deletions(make_store().deletion, make_queue().send)


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


def configured(settings: Settings, router: Router) -> Catalogue:
    """Gather what is there from the start: the named models, the tools that need no address, and STINT_REGISTRY."""
    given = read_registry(settings.registry)
    models = [describe_model(ModelRegisterRequest(model_id=name), router) for name in settings.model_ids]
    models += [describe_model(request, router) for request in given.models]
    builtin = {WEB_SEARCH: f"{settings.web_search}-search", WOLFRAM_ALPHA: "wolfram-alpha"}
    requests = [ToolGroupRegisterRequest(toolgroup_id=name, provider_id=builtin[name]) for name in builtin]
    toolgroups = [toolgroup_of(request, None) for request in (*requests, *given.toolgroups)]
    shields = [shield_of(request, None) for request in given.shields]
    return Catalogue(
        {model.identifier: model for model in models},
        {toolgroup.identifier: toolgroup for toolgroup in toolgroups},
        {shield.identifier: shield for shield in shields},
        frozenset(builtin) - {group.toolgroup_id for group in given.toolgroups},
        frozenset({DEMO_MODEL} if settings.scripted_models else ()),
    )


def read_registry(text: str) -> Configured:
    """Read STINT_REGISTRY.

    Raises:
        ValueError: it is malformed; the message says where, without its values, since the log shows it.
    """
    try:
        return Configured.model_validate_json(text) if text else Configured()
    except ValidationError as error:
        raise ValueError(f"STINT_REGISTRY is malformed: {describe_faults(error)}") from None


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


def describe_model(request: ModelRegisterRequest, router: Router) -> Model:
    """Describe a configured model; without a provider of its own its id says which one it is."""
    provider_id, provider_model_id = router.route(request.provider_model_id or request.model_id)
    return model_of(request, request.provider_id or provider_id, provider_model_id).model_copy(update={"owner": None})


def providers(settings: Settings) -> ProviderList:
    """Describe who answers for models, tools and shields; what works inside the process is well by definition."""
    inside = ProviderHealth(status="OK")
    outside = ProviderHealth(status="Not Implemented", message="Provider does not implement health check")
    url = {"url": mask_url(settings.openai_base_url)}
    rows = [
        *([("inference", "scripted", "inline::scripted", {}, inside)] if settings.scripted_models else []),
        ("inference", "openai", "remote::openai-compatible", url, outside),
        ("inference", "bedrock", "remote::bedrock", {}, outside),
        ("safety", "deny-list", "inline::deny-list", {}, inside),
        ("safety", "llama-guard", "remote::llama-guard", {}, outside),
        ("safety", "bedrock-guardrails", "remote::bedrock-guardrails", {}, outside),
        ("tool_runtime", "model-context-protocol", "remote::model-context-protocol", {}, outside),
        ("tool_runtime", "tavily-search", "remote::tavily-search", {}, outside),
        ("tool_runtime", "brave-search", "remote::brave-search", {}, outside),
        ("tool_runtime", "wolfram-alpha", "remote::wolfram-alpha", {}, outside),
        ("tool_runtime", "remote-execution", "remote::http-endpoint", {}, outside),
        ("tool_runtime", "lambda-function", "remote::lambda-function", {}, outside),
    ]
    return ProviderList(
        data=[
            Provider(api=api, provider_id=name, provider_type=kind, config=config, health=health)
            for api, name, kind, config, health in rows
        ]
    )
