"""Routes of the API of October 2024: memory banks and their documents."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import RootModel

from stint.domain.errors import NotFound
from stint.http.deadline import deadline_of
from stint.http.json_responses import NULL, document, null
from stint.http.scopes import OBJECT, READ, requires
from stint.october_2024.routes.dependencies import OctoberRoute, OctoberServicesDep, add_routes, read_params
from stint.october_2024.schemas.memory import (
    BankCreateRequest,
    BankDefinition,
    BankDocument,
    BankDocumentNames,
    BankId,
    BankName,
    BankRegisterRequest,
    CreatedBank,
    MemoryInsertRequest,
    MemoryQueryRequest,
    MemoryQueryResponse,
    MemoryUpdateRequest,
)

router = APIRouter(tags=["October 2024"], route_class=OctoberRoute)


class BankList(RootModel[list[BankDefinition]]):
    """The memory banks."""


class CreatedBankList(RootModel[list[CreatedBank]]):
    """The memory banks in the form of client 0.0.40."""


class BankDocumentList(RootModel[list[BankDocument]]):
    """Documents of a memory bank."""


@router.get("/memory_banks/list", response_model=BankList)
@requires("use")
async def list_memory_banks(services: OctoberServicesDep) -> Response:
    """List the memory banks."""
    return respond_with(BankList(await services.make_banks().list_banks()))


@add_routes(router, "/memory_banks/get", BankName, response_model=BankDefinition | None)
@requires("use", repeated=READ)
async def get_memory_bank(
    params: Annotated[BankName, Depends(read_params(BankName))], services: OctoberServicesDep
) -> Response:
    """Read a memory bank; null if there is none."""
    try:
        return document(await services.make_banks().get(params.identifier))
    except NotFound:
        return null()


@router.post("/memory_banks/register", response_model=None)
@requires("knowledge:write")
async def register_memory_bank(body: BankRegisterRequest, services: OctoberServicesDep) -> Response:
    """Register a memory bank. The same request may be repeated."""
    async with services.meters.request(acts=True):
        await services.make_banks().register(body.memory_bank)
    return null()


@router.post("/memory/create", response_model=CreatedBank)
@requires("knowledge:write", repeated=OBJECT)
async def create_memory_bank(body: BankCreateRequest, services: OctoberServicesDep) -> Response:
    """Create a memory bank, as client 0.0.40 does."""
    async with services.meters.request(acts=True):
        return document(await services.make_banks().create(body))


@router.get("/memory/list", response_model=CreatedBankList)
@requires("use")
async def list_created_banks(services: OctoberServicesDep) -> Response:
    """List the memory banks in the form of client 0.0.40."""
    return respond_with(CreatedBankList(await services.make_banks().list_created()))


@add_routes(router, "/memory/get", BankId, response_model=CreatedBank)
@requires("use", repeated=READ)
async def get_created_bank(
    params: Annotated[BankId, Depends(read_params(BankId))], services: OctoberServicesDep
) -> Response:
    """Read a memory bank in the form of client 0.0.40."""
    return document(await services.make_banks().get_created(params.bank_id))


@router.post("/memory/insert", response_model=None)
@requires("knowledge:write")
async def insert_into_bank(body: MemoryInsertRequest, request: Request, services: OctoberServicesDep) -> Response:
    """Insert documents into a memory bank, and wait until they can be found."""
    async with services.meters.request(acts=True, count=len(body.documents)):
        await services.make_banks().insert(body, deadline_of(request))
    return null()


@router.post("/memory/update", response_model=None)
@requires("knowledge:write")
async def update_bank(body: MemoryUpdateRequest, request: Request, services: OctoberServicesDep) -> Response:
    """Replace documents of a memory bank, or add them."""
    changed = MemoryInsertRequest(bank_id=body.bank_id, documents=body.documents)
    async with services.meters.request(acts=True, count=len(body.documents)):
        await services.make_banks().insert(changed, deadline_of(request))
    return null()


@router.post("/memory/query", response_model=MemoryQueryResponse)
@requires("use", repeated=READ)
async def query_bank(body: MemoryQueryRequest, services: OctoberServicesDep) -> Response:
    """Find the chunks of a memory bank that fit a query best."""
    async with services.meters.request():
        return document(await services.make_bank_queries().query(body))


@add_routes(router, "/memory/drop", BankId, "POST", "DELETE", response_model=None)
@requires("knowledge:write")
async def drop_bank(params: Annotated[BankId, Depends(read_params(BankId))], services: OctoberServicesDep) -> Response:
    """Delete a memory bank with its documents. The response is its id as plain text."""
    await services.make_banks().drop(params.bank_id)
    return PlainTextResponse(params.bank_id)


@add_routes(router, "/memory/documents/get", BankDocumentNames, response_model=BankDocument | BankDocumentList)
@requires("use", repeated=READ)
async def get_bank_documents(
    params: Annotated[BankDocumentNames, Depends(read_params(BankDocumentNames))], services: OctoberServicesDep
) -> Response:
    """Read documents of a memory bank: an object for one id, a list for several."""
    found = await services.make_banks().read_documents(params.bank_id, params.document_ids)
    return document(found[0]) if len(found) == 1 else respond_with(BankDocumentList(found))


@add_routes(
    router, "/memory/documents/delete", BankDocumentNames, "POST", "DELETE", response_model=None, responses=NULL
)
@requires("knowledge:write")
async def delete_bank_documents(
    params: Annotated[BankDocumentNames, Depends(read_params(BankDocumentNames))], services: OctoberServicesDep
) -> Response:
    """Delete documents of a memory bank."""
    await services.make_banks().delete_documents(params.bank_id, params.document_ids)
    return null()


def respond_with(entries: RootModel[Any]) -> Response:
    """Return a list as JSON, without an object around it."""
    return Response(entries.model_dump_json(), media_type="application/json")
