"""Routes of administration: API keys, stops, and running runs.

All need the scope `admin`, and are about the caller's tenant unless they name another one. Whether the caller may do
that is decided by the use cases (`stint.services.access`), which have the caller as their first argument.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from stint.domain.api_keys import ApiKeyObject, ApiKeyWithSecret, NewApiKey, RotateApiKeyRequest, TenantId
from stint.domain.openai.lists import ListObject
from stint.domain.running_runs import RunningRun
from stint.domain.stop_requests import StopObject, StopRequest
from stint.domain.stops import StopKind
from stint.http.admin_dependencies import AdminServicesDep, CallerDep
from stint.http.json_responses import document
from stint.http.list_params import Limit
from stint.http.requests import StrictRoute
from stint.http.scopes import OBJECT, requires
from stint.services.access.run_administration import RunFilter

KEYS = "/v1/admin/keys"
KEY = KEYS + "/{key_id}"
STOP = "/v1/admin/stop"
RUNS = "/v1/admin/runs"

TenantParam = Annotated[TenantId | None, Query(description="Tenant of the stops; by default the caller's.")]

OfId = Annotated[str | None, Query(max_length=64)]

router = APIRouter(tags=["Administration"], route_class=StrictRoute)


@router.post(KEYS, response_model=ApiKeyWithSecret)
@requires("admin", repeated=OBJECT, has_secret=True)
async def create_key(body: NewApiKey, services: AdminServicesDep, caller: CallerDep) -> Response:
    """Create an API key. Only this response has the key itself."""
    return document(await services.keys.create(caller, body))


@router.get(KEYS, response_model=ListObject[ApiKeyObject])
@requires("admin")
async def list_keys(
    services: AdminServicesDep,
    caller: CallerDep,
    limit: Limit,
    tenant: Annotated[TenantId | None, Query(description="Tenant of the keys; by default the caller's.")] = None,
    after: Annotated[str | None, Query(description="Id of the last key of the previous page.")] = None,
) -> Response:
    """List API keys without their secrets, the newest first, also those that ended in the last 30 days."""
    page = await services.keys.list(caller, tenant, after, limit)
    return document(ListObject[ApiKeyObject].of(page.data, page.has_more))


@router.get(KEY, response_model=ApiKeyObject)
@requires("admin")
async def get_key(key_id: str, services: AdminServicesDep, caller: CallerDep) -> Response:
    """Read an API key without its secret."""
    return document(await services.keys.get(caller, key_id))


@router.post(KEY + "/rotate", response_model=ApiKeyWithSecret)
@requires("admin", has_secret=True)
async def rotate_key(
    key_id: str, services: AdminServicesDep, caller: CallerDep, body: RotateApiKeyRequest | None = None
) -> Response:
    """Replace the secret of an API key. Only this response has the new key."""
    overlap = body.overlap_seconds if body else 0
    return document(await services.keys.rotate(caller, key_id, overlap))


@router.delete(KEY, response_model=ApiKeyObject)
@requires("admin")
async def revoke_key(key_id: str, services: AdminServicesDep, caller: CallerDep) -> Response:
    """Revoke an API key. Requests with it are refused once the authorizer's cached answer ends, after a minute."""
    return document(await services.keys.revoke(caller, key_id))


@router.post(STOP, response_model=StopObject)
@requires("admin")
async def stop_work(body: StopRequest, services: AdminServicesDep, caller: CallerDep) -> Response:
    """Stop an object, an API key or a tenant: new work is 403, and running work ends within two seconds."""
    return document(await services.stops.add(caller, body))


@router.get(STOP, response_model=ListObject[StopObject])
@requires("admin")
async def list_stops(services: AdminServicesDep, caller: CallerDep, tenant: TenantParam = None) -> Response:
    """List the stops of a tenant, the newest first."""
    return document(ListObject[StopObject].of(await services.stops.list(caller, tenant), has_more=False))


@router.delete(STOP + "/{kind}/{stop_id}", response_model=StopObject)
@requires("admin")
async def lift_stop(
    kind: StopKind, stop_id: str, services: AdminServicesDep, caller: CallerDep, tenant: TenantParam = None
) -> Response:
    """Lift a stop. The id of a stop of a whole tenant is the tenant."""
    return document(await services.stops.lift(caller, kind, stop_id, tenant))


async def filter_of(agent_id: OfId = None, session_id: OfId = None, key_id: OfId = None) -> RunFilter:
    """Return what the listed runs have in common."""
    return RunFilter(agent_id, session_id, key_id)


@router.get(RUNS, response_model=ListObject[RunningRun])
@requires("admin")
async def list_runs(
    services: AdminServicesDep,
    caller: CallerDep,
    limit: Limit,
    wanted: Annotated[RunFilter, Depends(filter_of)],
    tenant: Annotated[TenantId | None, Query(description="Tenant of the runs; by default the caller's.")] = None,
    after: Annotated[str | None, Query(description="Id of the last run of the previous page.")] = None,
) -> Response:
    """List turns and responses that run and have lasted 10 seconds, the newest first, without their content.

    A run that has ended is not listed, and neither is one that waits for its client's tools, because nothing runs then.
    """
    page = await services.runs.list(caller, tenant, wanted, after=after, limit=limit)
    return document(ListObject[RunningRun].of(page.data, page.has_more))
