"""Routes of vector stores, their files and file batches.

Ingestion is work of the worker: a route stores the request, and answers with an object whose `status` the client
follows. Searches and chunks are read from the index while the client waits.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from stint.domain.openai.vector_stores import (
    CreateFileBatch,
    CreateVectorStore,
    CreateVectorStoreFile,
    DeletedVectorStore,
    DeletedVectorStoreFile,
    FileBatch,
    FileContentPage,
    SearchResultsPage,
    SearchVectorStore,
    UpdateVectorStore,
    UpdateVectorStoreFile,
    VectorStore,
    VectorStoreFile,
    VectorStoreFileChunkList,
    VectorStoreFileList,
    VectorStoreList,
)
from stint.domain.schema import Schema
from stint.domain.vector_stores import DocumentStatus
from stint.http.dependencies import is_llama_stack_address
from stint.http.json_responses import document
from stint.http.knowledge_dependencies import KnowledgeServicesDep
from stint.http.list_params import Order
from stint.http.requests import StrictRoute
from stint.http.scopes import OBJECT, READ, requires

STORES = "/v1/vector_stores"
STORE = STORES + "/{vector_store_id}"
FILES = STORE + "/files"
FILE = FILES + "/{file_id}"
BATCHES = STORE + "/file_batches"
BATCH = BATCHES + "/{batch_id}"

POLL_AFTER_MS = 500
"""The pause that OpenAI's clients make between two requests while something is in progress, in milliseconds."""

DEFAULT_PAGE, MAX_PAGE = 20, 100

router = APIRouter(tags=["Vector stores"], route_class=StrictRoute)


async def limit_of(
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum entries of the page")] = DEFAULT_PAGE,
) -> int:
    """Return the maximum number of entries."""
    return limit


PageLimit = Annotated[int, Depends(limit_of)]
StatusFilter = Annotated[DocumentStatus | None, Query(alias="filter")]


def in_form_of(request: Request, file: VectorStoreFile) -> VectorStoreFile:
    """Return a file in the form of the address that was called."""
    return file if is_llama_stack_address(request) else file.with_chunk_sizes()


def respond_with_files(request: Request, listed: VectorStoreFileList) -> Response:
    """Return a response with a page of files, in the form of the address that was called."""
    return document(listed.model_copy(update={"data": [in_form_of(request, each) for each in listed.data]}))


def respond_with_progress(schema: Schema, status: str) -> Response:
    """Return a response with an object that clients read again while it is in progress."""
    response = document(schema)
    if status == "in_progress":
        response.headers["openai-poll-after-ms"] = str(POLL_AFTER_MS)
    return response


@router.post(STORES, response_model=VectorStore)
@requires("knowledge:write", repeated=OBJECT)
async def create_vector_store(services: KnowledgeServicesDep, body: CreateVectorStore | None = None) -> Response:
    """Create a vector store, with its first files."""
    wanted = body or CreateVectorStore()
    async with services.meters.request(count=len(wanted.file_ids)):
        created = await services.vector_stores.create(wanted)
    return respond_with_progress(created, created.status)


@router.get(STORES, response_model=VectorStoreList)
@requires("use")
async def list_vector_stores(
    services: KnowledgeServicesDep,
    limit: PageLimit,
    after: str | None = None,
    before: str | None = None,
    order: Order = "desc",
) -> Response:
    """List vector stores, the newest first."""
    return document(await services.vector_stores.list(after, before, limit, order))


@router.get(STORE, response_model=VectorStore)
@requires("use")
async def get_vector_store(vector_store_id: str, services: KnowledgeServicesDep) -> Response:
    """Read a vector store, and count its files."""
    found = await services.vector_stores.get(vector_store_id)
    return respond_with_progress(found, found.status)


@router.post(STORE, response_model=VectorStore)
@requires("knowledge:write")
async def update_vector_store(
    vector_store_id: str, body: UpdateVectorStore, services: KnowledgeServicesDep
) -> Response:
    """Change the name, metadata or expiry of a vector store."""
    return document(await services.vector_stores.update(vector_store_id, body))


@router.delete(STORE, response_model=DeletedVectorStore)
@requires("knowledge:write")
async def delete_vector_store(vector_store_id: str, services: KnowledgeServicesDep) -> Response:
    """Delete a vector store. Its files stay."""
    return document(await services.vector_stores.delete(vector_store_id))


@router.post(STORE + "/search", response_model=SearchResultsPage)
@requires("use", repeated=READ)
async def search_vector_store(
    vector_store_id: str, body: SearchVectorStore, request: Request, services: KnowledgeServicesDep
) -> Response:
    """Search a vector store. Scores are from 0 to 1."""
    async with services.meters.request():
        found = await services.vector_stores.search(vector_store_id, body)
    return document(found.with_text_query() if is_llama_stack_address(request) else found)


@router.post(FILES, response_model=VectorStoreFile)
@requires("knowledge:write")
async def create_vector_store_file(
    vector_store_id: str, body: CreateVectorStoreFile, request: Request, services: KnowledgeServicesDep
) -> Response:
    """Add a file to a vector store. The worker ingests it."""
    async with services.meters.request(acts=True):
        created = await services.store_documents.create(vector_store_id, body)
    return respond_with_progress(in_form_of(request, created), created.status)


@router.get(FILES, response_model=VectorStoreFileList)
@requires("use")
async def list_vector_store_files(
    vector_store_id: str,
    request: Request,
    services: KnowledgeServicesDep,
    limit: PageLimit,
    status: StatusFilter = None,
    after: str | None = None,
    before: str | None = None,
    order: Order = "desc",
) -> Response:
    """List the files of a vector store, all or those with a status."""
    listed = await services.store_documents.list(vector_store_id, after, before, limit, order=order, status=status)
    return respond_with_files(request, listed)


@router.get(FILE, response_model=VectorStoreFile)
@requires("use")
async def get_vector_store_file(
    vector_store_id: str, file_id: str, request: Request, services: KnowledgeServicesDep
) -> Response:
    """Read a file of a vector store."""
    found = await services.store_documents.get(vector_store_id, file_id)
    return respond_with_progress(in_form_of(request, found), found.status)


@router.post(FILE, response_model=VectorStoreFile)
@requires("knowledge:write")
async def update_vector_store_file(
    vector_store_id: str, file_id: str, body: UpdateVectorStoreFile, request: Request, services: KnowledgeServicesDep
) -> Response:
    """Replace the attributes of a file in a vector store."""
    updated = await services.store_documents.update(vector_store_id, file_id, body)
    return respond_with_progress(in_form_of(request, updated), updated.status)


@router.delete(FILE, response_model=DeletedVectorStoreFile)
@requires("knowledge:write")
async def delete_vector_store_file(vector_store_id: str, file_id: str, services: KnowledgeServicesDep) -> Response:
    """Remove a file from a vector store. The file itself stays."""
    return document(await services.store_documents.delete(vector_store_id, file_id))


@router.get(FILE + "/content", response_model=FileContentPage)
@requires("use")
async def get_vector_store_file_content(vector_store_id: str, file_id: str, services: KnowledgeServicesDep) -> Response:
    """Read the text of a file as it was ingested."""
    return document(await services.store_documents.read_content(vector_store_id, file_id))


@router.get(FILE + "/chunks", response_model=VectorStoreFileChunkList)
@requires("use")
async def list_vector_store_file_chunks(
    vector_store_id: str,
    file_id: str,
    services: KnowledgeServicesDep,
    limit: PageLimit,
    after: str | None = None,
    order: Order = "asc",
) -> Response:
    """List the chunks of a file that searches find, by their numbers, without their vectors."""
    return document(await services.store_documents.list_chunks(vector_store_id, file_id, after, limit, order))


@router.post(BATCHES, response_model=FileBatch)
@requires("knowledge:write", repeated=OBJECT)
async def create_file_batch(vector_store_id: str, body: CreateFileBatch, services: KnowledgeServicesDep) -> Response:
    """Add up to 2,000 files to a vector store."""
    async with services.meters.request(acts=True, count=len(body.file_ids) or len(body.files)):
        created = await services.file_batches.create(vector_store_id, body)
    return respond_with_progress(created, created.status)


@router.get(BATCH, response_model=FileBatch)
@requires("use")
async def get_file_batch(vector_store_id: str, batch_id: str, services: KnowledgeServicesDep) -> Response:
    """Read a file batch, and count its files."""
    found = await services.file_batches.get(vector_store_id, batch_id)
    return respond_with_progress(found, found.status)


@router.post(BATCH + "/cancel", response_model=FileBatch)
@requires("knowledge:write")
async def cancel_file_batch(vector_store_id: str, batch_id: str, services: KnowledgeServicesDep) -> Response:
    """Cancel the files of a batch that are in progress."""
    return document(await services.file_batches.cancel(vector_store_id, batch_id))


@router.get(BATCH + "/files", response_model=VectorStoreFileList)
@requires("use")
async def list_file_batch_files(
    vector_store_id: str,
    batch_id: str,
    request: Request,
    services: KnowledgeServicesDep,
    limit: PageLimit,
    status: StatusFilter = None,
    after: str | None = None,
    before: str | None = None,
    order: Order = "desc",
) -> Response:
    """List the files of a batch, all or those with a status."""
    listed = await services.file_batches.list_files(
        vector_store_id, batch_id, after, before, limit=limit, order=order, status=status
    )
    return respond_with_files(request, listed)
