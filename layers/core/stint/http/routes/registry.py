"""Routes of the registry group: models, providers, usage, health, version, and the caller.

`check_health` needs no credential, and `get_caller` accepts one with any scope. Neither reads the store.
"""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from stint.caller import find_end_user, require_principal
from stint.domain.errors import NotSupported
from stint.domain.llama_stack.registrations import ModelRegisterRequest
from stint.domain.llama_stack.registry import (
    Caller,
    Health,
    Model,
    ModelEntry,
    ModelList,
    Provider,
    ProviderList,
    Version,
)
from stint.domain.principals import SCOPES
from stint.domain.usage import UsageGroup, UsageSource, UsageSums
from stint.http.dependencies import AgentsServicesDep
from stint.http.json_responses import document, null
from stint.http.requests import StrictRoute
from stint.http.scopes import requires

router = APIRouter(prefix="/v1", tags=["Registry"], route_class=StrictRoute)


@router.get("/health", response_model=Health)
@requires(None)
async def check_health() -> Response:
    """Return that the function runs."""
    return document(Health())


@router.get("/version", response_model=Version)
@requires("use")
async def get_version() -> Response:
    """Return the release of Llama Stack that this API implements."""
    return document(Version())


@router.get("/whoami", response_model=Caller)
@requires("any")
async def get_caller(request: Request) -> Response:
    """Return who the caller is, and what the credential allows."""
    principal = require_principal()
    return document(
        Caller(
            authentication=request.app.state.read_settings().auth,
            tenant=principal.tenant,
            scopes=[scope for scope in SCOPES if scope in principal.scopes],
            key_id=principal.key_id or None,
            end_user=find_end_user(),
            expires_at=principal.expires_at,
        )
    )


@router.get("/models", response_model=ModelList)
@requires("use")
async def list_models(services: AgentsServicesDep) -> Response:
    """List the configured and registered models, also under their short ids."""
    models = await services.registry.list_models()
    return document(ModelList(data=[ModelEntry(**dict(model)) for model in models]))


@router.post("/models", response_model=Model)
@requires("registry:write")
async def register_model(body: ModelRegisterRequest, services: AgentsServicesDep) -> Response:
    """Register another name for a provider's model."""
    return document(await services.registry.register_model(body))


@router.get("/models/{model_id:path}", response_model=Model)
@requires("use")
async def get_model(model_id: str, services: AgentsServicesDep) -> Response:
    """Read a model. Ids contain slashes."""
    return document(await services.registry.get_model(model_id))


@router.delete("/models/{model_id:path}", response_model=None)
@requires("registry:write")
async def unregister_model(model_id: str, services: AgentsServicesDep) -> Response:
    """Unregister a model."""
    await services.registry.unregister("model", model_id)
    return null()


@router.get("/usage", response_model=UsageSums)
@requires("use")
async def get_usage(
    services: AgentsServicesDep,
    start: date | None = None,
    end: date | None = None,
    group_by: Annotated[list[UsageGroup] | None, Query()] = None,
    key_id: str = "",
    agent_id: str = "",
    session_id: str = "",
    subject: str = "",
    model_id: str = "",
) -> Response:
    """Sum the usage of some days (UTC), by default of today. A caller without the scope admin reads its own usage."""
    source = UsageSource(key_id, agent_id, session_id, subject, model_id)
    return document(await services.meters.usage.read(start, end, group_by or (), source))


@router.get("/providers", response_model=ProviderList)
@requires("use")
async def list_providers(services: AgentsServicesDep) -> Response:
    """List the configured providers, with their health."""
    return document(ProviderList(data=await services.check_providers(services.registry.providers.data)))


@router.get("/providers/{provider_id}", response_model=Provider)
@requires("use")
async def get_provider(provider_id: str, services: AgentsServicesDep) -> Response:
    """Read a provider, with its health."""
    [provider] = await services.check_providers([services.registry.get_provider(provider_id)])
    return document(provider)


@router.post("/telemetry/spans", response_model=None)
@requires("use")
async def query_spans() -> Response:
    """Refuse the request. Traces are in AWS X-Ray and CloudWatch, not in this API."""
    raise NotSupported("POST /v1/telemetry/spans is not supported: traces and logs are in X-Ray and CloudWatch.")
