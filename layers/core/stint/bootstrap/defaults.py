"""The configured models, toolgroups and shields, the table of providers, and the cache keys of models.

What is configured is the same for all tenants, and made without a read of the store. The registry of a tenant merges
the tenant's registrations into it, and the cache keys of a model are read when the model is first called.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stint.caller import ModelAccess
from stint.domain.llama_stack.registrations import Configured, ModelRegisterRequest, ToolGroupRegisterRequest
from stint.domain.llama_stack.registry import Model, Provider, ProviderHealth, ProviderList
from stint.domain.tenant_limits import limits_of, parse_tenants
from stint.domain.validation import describe_faults
from stint.models.port import ChatModel
from stint.models.routing import DEMO_MODEL, Router
from stint.services.registry.catalogue import Catalogue, shield_of, toolgroup_of
from stint.services.registry.model_ids import full_id_of, named
from stint.services.registry.model_registrations import register_request
from stint.services.registry.registry import Registry
from stint.settings import Settings
from stint.store.store import Store
from stint.tools.masking import mask_url
from stint.tools.port import CODE_GROUP, CODE_PROVIDER, IMAGE_GROUP, IMAGE_MODELS, RAG, RAG_RUNTIME, WEB_SEARCH_GROUP

if TYPE_CHECKING:
    from stint.services.runs.cache_keys import CacheKeys, FindCacheKeys

WOLFRAM_ALPHA = "builtin::wolfram_alpha"


INSIDE = ProviderHealth(status="OK")
OUTSIDE = ProviderHealth(status="Not Implemented", message="Provider does not implement health check")


def configured(settings: Settings, router: Router) -> Catalogue:
    """Return the configured entries: the models of the settings, the built-in tools, and STINT_REGISTRY."""
    given = read_registry(settings.registry)
    listed = [ModelRegisterRequest(model_id=name) for name in settings.model_ids]
    listed += [ModelRegisterRequest(model_id=settings.embedding_model, model_type="embedding"), *given.models]
    known = providers(settings).data
    described = [describe_model(request, router, known, settings.embedding_model) for request in listed]
    models = {model.identifier: model for model in described}
    for full_id, model in ((full_id_of(models[name]), models[name]) for name in settings.model_ids):
        models.setdefault(full_id, named(model, full_id))
    builtin = {WEB_SEARCH_GROUP: f"{settings.web_search}-search", WOLFRAM_ALPHA: "wolfram-alpha", RAG: RAG_RUNTIME}
    if settings.runs_code:
        builtin[CODE_GROUP] = CODE_PROVIDER
    if settings.image_model:
        builtin[IMAGE_GROUP] = IMAGE_MODELS
    requests = [ToolGroupRegisterRequest(toolgroup_id=name, provider_id=builtin[name]) for name in builtin]
    toolgroups = [toolgroup_of(request, None) for request in (*requests, *given.toolgroups)]
    shields = [shield_of(request, None) for request in given.shields]
    return Catalogue(
        models,
        {toolgroup.identifier: toolgroup for toolgroup in toolgroups},
        {shield.identifier: shield for shield in shields},
        frozenset(builtin) - {group.toolgroup_id for group in given.toolgroups},
        unlisted=frozenset({DEMO_MODEL} if settings.scripted_models else ()),
        aliases=embedding_aliases(settings, router, known),
    )


def read_registry(text: str) -> Configured:
    """Read STINT_REGISTRY.

    Raises:
        ValueError: it is malformed. The message says where, without the values, because it is logged.
    """
    try:
        # Without validation, pydantic does not build the validators of all registrations.
        return Configured.model_validate_json(text) if text else Configured.model_construct()
    except ValidationError as error:
        raise ValueError(f"STINT_REGISTRY is malformed: {describe_faults(error)}") from None


def describe_model(
    request: ModelRegisterRequest, router: Router, known: Sequence[Provider], default_embedding: str
) -> Model:
    """Return a configured model. Without an explicit provider, its id determines the provider."""
    model = register_request(request, router, known, default_embedding)
    return model.model_copy(update={"owner": None})


def embedding_aliases(settings: Settings, router: Router, known: Sequence[Provider]) -> dict[str, Model]:
    """Return the embedding models that Llama Stack's name stands for, by that name."""
    from stint.retrieval.dimensions import MINILM, minilm_model  # noqa: PLC0415 - not at the start of a function

    request = ModelRegisterRequest(model_id=minilm_model(settings.embedding_model), model_type="embedding")
    return {MINILM: describe_model(request, router, known, settings.embedding_model)}


def named_servers(settings: Settings) -> Iterator[tuple[str, str, str, dict[str, Any], ProviderHealth]]:
    """Yield the rows of STINT_PROVIDERS, with masked configurations. Shields name a server like models do."""
    if not settings.providers:
        return
    from stint.bootstrap.model_servers import read_model_servers  # noqa: PLC0415 - only with named servers

    types = {
        "openai": "remote::openai-compatible",
        "bedrock": "remote::bedrock",
        "bedrock-openai": "remote::bedrock-openai",
        "scripted": "inline::scripted",
    }
    for each in read_model_servers(settings):
        endpoint = each.endpoint if each.kind == "bedrock-openai" else ""
        shown = {"url": mask_url(each.base_url), "region": each.region, "endpoint": endpoint, "api": each.api}
        config = {name: value for name, value in shown.items() if value}
        health = INSIDE if each.kind == "scripted" else OUTSIDE
        for api in ("inference",) if each.kind == "scripted" else ("inference", "safety"):
            yield api, each.id, types[each.kind], config, health


def place_of_code(settings: Settings) -> tuple[str, dict[str, Any], ProviderHealth]:
    """Return the type, the configuration and the health of the provider that runs code."""
    if settings.agentcore_interpreter:
        return "remote::bedrock-agentcore", {"code_interpreter": settings.agentcore_interpreter}, OUTSIDE
    return "inline::code-interpreter", {}, INSIDE


def providers(settings: Settings) -> ProviderList:
    """Return the providers of models, tools and shields. Those inside the process are always healthy."""
    url = {"url": mask_url(settings.openai_base_url)}
    place = {"s3-vectors": "remote", "packed": "inline"}
    rows = [
        *([("inference", "scripted", "inline::scripted", {}, INSIDE)] if settings.scripted_models else []),
        ("inference", "openai", "remote::openai-compatible", url, OUTSIDE),
        ("inference", "bedrock", "remote::bedrock", {}, OUTSIDE),
        ("inference", "hashed", "inline::hashed", {}, INSIDE),
        *([("inference", "local", "inline::local", {}, INSIDE)] if settings.has_local_embeddings else []),
        *named_servers(settings),
        ("safety", "deny-list", "inline::deny-list", {}, INSIDE),
        ("safety", "llama-guard", "remote::llama-guard", {}, OUTSIDE),
        ("safety", "bedrock-guardrails", "remote::bedrock-guardrails", {}, OUTSIDE),
        *(("vector_io", name, f"{place[name]}::{name}", {}, INSIDE) for name in settings.vector_indexes),
        ("tool_runtime", "model-context-protocol", "remote::model-context-protocol", {}, OUTSIDE),
        ("tool_runtime", "tavily-search", "remote::tavily-search", {}, OUTSIDE),
        ("tool_runtime", "brave-search", "remote::brave-search", {}, OUTSIDE),
        ("tool_runtime", "wolfram-alpha", "remote::wolfram-alpha", {}, OUTSIDE),
        ("tool_runtime", "remote-execution", "remote::http-endpoint", {}, OUTSIDE),
        ("tool_runtime", "lambda-function", "remote::lambda-function", {}, OUTSIDE),
        *([("tool_runtime", CODE_PROVIDER, *place_of_code(settings))] if settings.runs_code else []),
        *([("tool_runtime", IMAGE_MODELS, "remote::image-generation", {}, OUTSIDE)] if settings.image_model else []),
        ("tool_runtime", RAG_RUNTIME, "inline::rag-runtime", {}, INSIDE),
    ]
    return ProviderList(
        data=[
            Provider(api=api, provider_id=name, provider_type=kind, config=config, health=health)
            for api, name, kind, config, health in rows
        ]
    )


def make_registry(tenant: str, settings: Settings, router: Router, store: Store) -> Registry:
    """Return the registry of a tenant, with the configured entries."""
    known = configured(settings, router)
    return Registry(
        tenant,
        store.registrations,
        known,
        providers(settings),
        router=router,
        cache_seconds=settings.agent_cache_seconds,
        access=model_access(tenant, settings),
    )


def model_access(tenant: str, settings: Settings) -> ModelAccess:
    """Return the models that a tenant may use."""
    return ModelAccess(limits_of(tenant, parse_tenants(settings.tenants)).models)


def defer_cache_keys(tenant: str, router: Router, store: Store) -> "FindCacheKeys":
    """Return a function that finds the cache keys for a model, whose modules it then loads."""

    @cache
    def make() -> "CacheKeys":
        from stint.services.runs.cache_keys import CacheKeys  # noqa: PLC0415 - few models take them

        return CacheKeys(tenant, lambda: store.signing_keys.get(tenant))

    async def find(model: ChatModel) -> "CacheKeys | None":
        return make() if router.takes_cache_key(model) and await make().prepare() else None

    return find
