"""Routes of the API of October 2024: models, shields, providers, health, telemetry."""

import logging
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from stint.domain.errors import NotFound, NotSupported, shorten
from stint.domain.llama_stack.registrations import RunShieldResponse
from stint.domain.llama_stack.registry import Health
from stint.http.json_responses import document, null
from stint.http.scopes import READ, requires
from stint.october_2024.inference import to_safety_messages
from stint.october_2024.registry import by_api, from_model, from_shield, to_model, to_shield
from stint.october_2024.routes.dependencies import OctoberRoute, OctoberServicesDep, add_routes, read_params
from stint.october_2024.schemas.inference import LogEventRequest, TraceName
from stint.october_2024.schemas.registry import (
    ModelIdentifier,
    OctoberModel,
    OctoberModelRegisterRequest,
    OctoberModels,
    OctoberRunShieldRequest,
    OctoberShield,
    OctoberShieldRegisterRequest,
    OctoberShields,
    ProvidersByAPI,
    ShieldType,
)

logger = logging.getLogger(__name__)
router = APIRouter(tags=["October 2024"], route_class=OctoberRoute)
LONGEST_MESSAGE = 1_000


@router.get("/health", response_model=Health)
@requires(None)
async def check_october_health() -> Response:
    """Return that the function runs."""
    return document(Health())


@router.get("/models/list", response_model=OctoberModels)
@requires("use")
async def list_october_models(services: OctoberServicesDep) -> Response:
    """List the configured and registered models of language. Embedding models are not listed."""
    models = await services.registry.list_models()
    return respond(OctoberModels([from_model(model) for model in models if model.model_type == "llm"]))


@add_routes(router, "/models/get", ModelIdentifier, response_model=OctoberModel | None)
@requires("use", repeated=READ)
async def get_october_model(
    params: Annotated[ModelIdentifier, Depends(read_params(ModelIdentifier))], services: OctoberServicesDep
) -> Response:
    """Read a model; null if there is none."""
    try:
        return document(from_model(await services.registry.get_model(params.identifier)))
    except NotFound:
        return null()


@router.post("/models/register", response_model=None)
@requires("registry:write")
async def register_october_model(body: OctoberModelRegisterRequest, services: OctoberServicesDep) -> Response:
    """Register another name for a provider's model."""
    await services.registry.register_model(to_model(body.model))
    return null()


@router.get("/shields/list", response_model=OctoberShields)
@requires("use")
async def list_october_shields(services: OctoberServicesDep) -> Response:
    """List the configured and registered shields."""
    return respond(OctoberShields([from_shield(shield) for shield in await services.registry.list_shields()]))


@add_routes(router, "/shields/get", ShieldType, response_model=OctoberShield | None)
@requires("use", repeated=READ)
async def get_october_shield(
    params: Annotated[ShieldType, Depends(read_params(ShieldType))], services: OctoberServicesDep
) -> Response:
    """Read a shield; null if there is none."""
    try:
        return document(from_shield(await services.registry.get_shield(params.shield_type)))
    except NotFound:
        return null()


@router.post("/shields/register", response_model=None)
@requires("registry:write")
async def register_october_shield(body: OctoberShieldRegisterRequest, services: OctoberServicesDep) -> Response:
    """Register a shield."""
    await services.shields.register(to_shield(body.shield, services.registry.providers.data))
    return null()


@router.post("/safety/run_shield", response_model=RunShieldResponse)
@requires("use")
async def run_october_shield(body: OctoberRunShieldRequest, services: OctoberServicesDep) -> Response:
    """Check the last of some messages with a shield."""
    async with services.meters.request(acts=True):
        violation = await services.shields.run(body.shield_type, to_safety_messages(body.messages))
    return document(RunShieldResponse(violation=violation))


@router.get("/providers/list", response_model=ProvidersByAPI)
@requires("use")
async def list_october_providers(services: OctoberServicesDep) -> Response:
    """List the configured providers by their APIs."""
    return respond(ProvidersByAPI(by_api(services.registry.providers.data)))


@router.post("/telemetry/log_event", response_model=None)
@requires("use")
async def log_october_event(body: LogEventRequest) -> Response:
    """Write an event of the caller to the log, with at most 1,000 characters of its message."""
    event = {name: body.event.get(name) for name in ("type", "severity", "trace_id", "span_id", "metric", "value")}
    known = {name: shorten(str(value), 100) for name, value in event.items() if value is not None}
    known["message"] = shorten(str(body.event.get("message", "")), LONGEST_MESSAGE)
    logger.info("An event of the caller", extra={"caller_event": known})
    return null()


@add_routes(router, "/telemetry/get_trace", TraceName, response_model=None)
@requires("use", repeated=READ)
async def get_october_trace(params: Annotated[TraceName, Depends(read_params(TraceName))]) -> Response:
    """Refuse the request. Traces are in AWS X-Ray and CloudWatch, not in this API."""
    trace_id = shorten(params.trace_id, 100)
    raise NotSupported(f"Trace {trace_id!r} cannot be read here: traces and logs are in X-Ray and CloudWatch.")


def respond(entries: OctoberModels | OctoberShields | ProvidersByAPI) -> Response:
    """Return a list or a map as JSON, without an object around it."""
    return Response(entries.model_dump_json(), media_type="application/json")
