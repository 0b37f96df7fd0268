"""Routes of vector dbs: registrations, chunks and the rag-tool of Llama Stack."""

from fastapi import APIRouter, Request, Response

from stint.domain.llama_stack.rag import RAGInsertRequest, RAGQueryRequest, RAGQueryResult
from stint.domain.llama_stack.vector_dbs import VectorDB, VectorDBEntry, VectorDBList, VectorDBRegisterRequest
from stint.domain.llama_stack.vector_io import ChunkInsertRequest, ChunkQueryRequest, ChunkQueryResponse
from stint.http.deadline import deadline_of
from stint.http.json_responses import document, null
from stint.http.knowledge_dependencies import KnowledgeServicesDep
from stint.http.requests import StrictRoute
from stint.http.scopes import READ, requires

router = APIRouter(prefix="/v1", tags=["Vector DBs"], route_class=StrictRoute)


@router.get("/vector-dbs", response_model=VectorDBList)
@requires("use")
async def list_vector_dbs(services: KnowledgeServicesDep) -> Response:
    """List the registered vector dbs."""
    listed = await services.vector_dbs.list()
    return document(VectorDBList(data=[VectorDBEntry(**dict(each)) for each in listed]))


@router.post("/vector-dbs", response_model=VectorDB)
@requires("knowledge:write")
async def register_vector_db(body: VectorDBRegisterRequest, services: KnowledgeServicesDep) -> Response:
    """Register a vector db: a vector store with a name."""
    async with services.meters.request():
        return document(await services.vector_dbs.register(body))


@router.get("/vector-dbs/{vector_db_id:path}", response_model=VectorDB)
@requires("use")
async def get_vector_db(vector_db_id: str, services: KnowledgeServicesDep) -> Response:
    """Read a vector db. Names may contain slashes."""
    return document(await services.vector_dbs.get(vector_db_id))


@router.delete("/vector-dbs/{vector_db_id:path}", response_model=None)
@requires("knowledge:write")
async def unregister_vector_db(vector_db_id: str, services: KnowledgeServicesDep) -> Response:
    """Delete a vector db with its documents."""
    await services.vector_dbs.unregister(vector_db_id)
    return null()


@router.post("/vector-io/insert", response_model=None)
@requires("knowledge:write")
async def insert_chunks(body: ChunkInsertRequest, request: Request, services: KnowledgeServicesDep) -> Response:
    """Insert chunks as they are. When this returns, they can be found."""
    async with services.meters.request(acts=True):
        await services.rag_insertion.insert_chunks(body, deadline_of(request))
    return null()


@router.post("/vector-io/query", response_model=ChunkQueryResponse)
@requires("use", repeated=READ)
async def query_chunks(body: ChunkQueryRequest, services: KnowledgeServicesDep) -> Response:
    """Return the chunks that fit a query best."""
    async with services.meters.request():
        return document(await services.vector_io.query(body))


@router.post("/tool-runtime/rag-tool/insert", response_model=None)
@requires("knowledge:write")
async def insert_documents(body: RAGInsertRequest, request: Request, services: KnowledgeServicesDep) -> Response:
    """Insert documents in chunks. When this returns, they can be found."""
    async with services.meters.request(acts=True, count=len(body.documents)):
        await services.rag_insertion.insert_documents(body, deadline_of(request))
    return null()


@router.post("/tool-runtime/rag-tool/query", response_model=RAGQueryResult)
@requires("use", repeated=READ)
async def query_context(body: RAGQueryRequest, services: KnowledgeServicesDep) -> Response:
    """Return context for a question from vector dbs."""
    async with services.meters.request():
        return document(await services.rag.query(body.content, body.vector_db_ids, body.query_config))
