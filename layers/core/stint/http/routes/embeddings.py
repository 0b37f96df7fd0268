"""Routes of embeddings, in both APIs."""

from fastapi import APIRouter, Response

from stint.domain.llama_stack.embeddings import InferenceEmbeddings, InferenceEmbeddingsRequest
from stint.domain.openai.embeddings import EmbeddingsList, EmbeddingsRequest
from stint.http.json_responses import document
from stint.http.knowledge_dependencies import KnowledgeServicesDep
from stint.http.requests import StrictRoute
from stint.http.scopes import requires

router = APIRouter(tags=["Embeddings"], route_class=StrictRoute)


@router.post("/v1/embeddings", response_model=EmbeddingsList)
@requires("use")
async def create_embeddings(body: EmbeddingsRequest, services: KnowledgeServicesDep) -> Response:
    """Embed up to 2,048 texts. Lists of tokens are refused."""
    async with services.meters.request():
        return document(await services.embeddings.create(body))


@router.post("/v1/inference/embeddings", response_model=InferenceEmbeddings)
@requires("use")
async def embed_contents(body: InferenceEmbeddingsRequest, services: KnowledgeServicesDep) -> Response:
    """Embed texts, as Llama Stack's inference does."""
    async with services.meters.request():
        return document(await services.embeddings.embed_contents(body))
