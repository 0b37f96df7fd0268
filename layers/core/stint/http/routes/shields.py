"""Routes of the registry group: shields."""

from fastapi import APIRouter, Response

from stint.domain.llama_stack.registrations import (
    RegisteredShield,
    RunShieldRequest,
    RunShieldResponse,
    ShieldEntry,
    ShieldList,
    ShieldRegisterRequest,
)
from stint.http.dependencies import AgentsServicesDep
from stint.http.json_responses import document, null
from stint.http.requests import StrictRoute
from stint.http.scopes import requires

router = APIRouter(prefix="/v1", tags=["Shields"], route_class=StrictRoute)


@router.get("/shields", response_model=ShieldList)
@requires("use")
async def list_shields(services: AgentsServicesDep) -> Response:
    """List the configured and registered shields."""
    shields = await services.registry.list_shields()
    return document(ShieldList(data=[ShieldEntry(**dict(shield)) for shield in shields]))


@router.post("/shields", response_model=RegisteredShield)
@requires("registry:write")
async def register_shield(body: ShieldRegisterRequest, services: AgentsServicesDep) -> Response:
    """Register a shield."""
    return document(await services.shields.register(body))


@router.get("/shields/{shield_id:path}", response_model=RegisteredShield)
@requires("use")
async def get_shield(shield_id: str, services: AgentsServicesDep) -> Response:
    """Read a shield."""
    return document(await services.registry.get_shield(shield_id))


@router.delete("/shields/{shield_id:path}", response_model=None)
@requires("registry:write")
async def unregister_shield(shield_id: str, services: AgentsServicesDep) -> Response:
    """Unregister a shield."""
    await services.registry.unregister("shield", shield_id)
    return null()


@router.post("/safety/run-shield", response_model=RunShieldResponse)
@requires("use")
async def run_shield(body: RunShieldRequest, services: AgentsServicesDep) -> Response:
    """Check the last of some messages with a shield."""
    async with services.meters.request(acts=True):
        return document(RunShieldResponse(violation=await services.shields.run(body.shield_id, body.messages)))
