"""Routes of end users: list, export, erase.

An id may contain slashes, so `{id}/export` could mean two things: the export of an end user, or the objects of one
whose id ends in `/export`. The parameter `export` says which; the whole rest of the path is then the id. So it is if
nothing comes before `/export`, since no id is empty.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse

from stint.domain.end_users import EndUserObjects, ErasureReceipt
from stint.domain.limits import MAX_END_USER
from stint.http.end_user_dependencies import EndUserServicesDep
from stint.http.json_responses import document
from stint.http.requests import StrictRoute
from stint.http.scopes import requires

USER = "/v1/admin/users/{user:path}"
JSON_LINES = "application/jsonl"

router = APIRouter(tags=["End users"], route_class=StrictRoute)

EXPORT = "/export"

UserPath = Annotated[str, Path(min_length=1, max_length=MAX_END_USER)]
MaybeExport = Annotated[str, Path(max_length=MAX_END_USER, json_schema_extra={"minLength": 1})]
"""The part before `/export`. It is empty if the id is `/export`, which the route of the list would otherwise have."""
ExportParam = Annotated[
    bool | None,
    Query(description="Export (true) or list (false) the end user whose id is the whole rest of the path."),
]
After = Annotated[str | None, Query(description="`next` of the previous page.")]
PageLimit = Annotated[int, Query(ge=1, le=1_000)]


@router.get(
    USER + EXPORT,
    response_class=Response,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}, "description": "An object per line."}},
)
@requires("admin")
async def export_end_user(
    user: MaybeExport,
    services: EndUserServicesDep,
    export: ExportParam = None,
    after: After = None,
    limit: PageLimit = 100,
) -> Response:
    """Export everything of an end user as JSON lines. The last line has the kind `end` and the number of objects."""
    if export is None and user:
        return StreamingResponse(services.export.lines(user), media_type=JSON_LINES)
    return await list_end_user_objects(user + EXPORT, services, export, after, limit=limit)


@router.get(USER, response_model=EndUserObjects)
@requires("admin")
async def list_end_user_objects(
    user: UserPath,
    services: EndUserServicesDep,
    export: ExportParam = None,
    after: After = None,
    limit: PageLimit = 100,
) -> Response:
    """List the objects of an end user."""
    if export:
        return StreamingResponse(services.export.lines(user), media_type=JSON_LINES)
    return document(await services.users.list(user, after, limit))


@router.delete(USER, response_model=ErasureReceipt)
@requires("admin")
async def erase_end_user(user: UserPath, services: EndUserServicesDep) -> Response:
    """Erase everything of an end user. Repeat the request until `complete` is true."""
    return document(await services.users.erase(user))
