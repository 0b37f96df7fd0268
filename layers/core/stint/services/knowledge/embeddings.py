"""Embeddings of the texts of a request."""

import base64
import struct
from collections.abc import Sequence

from stint.dataclasses import dataclass
from stint.domain.content import ImageContentItem, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.embeddings import InferenceEmbeddings, InferenceEmbeddingsRequest
from stint.domain.openai.embeddings import EmbeddingObject, EmbeddingsList, EmbeddingsRequest, EmbeddingsUsage
from stint.domain.vector_stores import EmbeddingChoice
from stint.retrieval.port import Embeddings, Vector
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.truncation import embed_cut


@dataclass(frozen=True, slots=True)
class TextEmbeddings:
    """Embeds the texts of requests. Nothing is stored."""

    models: EmbeddingModels

    async def create(self, request: EmbeddingsRequest) -> EmbeddingsList:
        """Embed texts as OpenAI's API does.

        Raises:
            InvalidRequest: the model does not exist, or refuses the request.
            ModelError: the provider failed.
        """
        choice = await self.models.choose(request.model, request.dimensions)
        requested = request.dimensions is not None
        found = await self.models.embed_texts(choice, request.input, requested=requested)
        write = encode_vector if request.encoding_format == "base64" else list[float]
        data = [EmbeddingObject(index=index, embedding=write(vector)) for index, vector in enumerate(found.vectors)]
        # The field is required and a number, and 0 would claim that nothing was used.
        tokens = -1 if found.tokens is None else found.tokens
        usage = EmbeddingsUsage(prompt_tokens=tokens, total_tokens=tokens)
        return EmbeddingsList(data=data, model=request.model, usage=usage)

    async def embed_contents(self, request: InferenceEmbeddingsRequest) -> InferenceEmbeddings:
        """Embed contents as Llama Stack's inference does. Raises as `create` does."""
        texts = [text_in(content, index) for index, content in enumerate(request.contents)]
        choice = await self.models.choose(request.model_id, request.output_dimension)
        requested = request.output_dimension is not None
        found = await self._embed(choice, texts, request, requested=requested)
        return InferenceEmbeddings(embeddings=[list(vector) for vector in found.vectors])

    async def _embed(
        self, choice: EmbeddingChoice, texts: list[str], request: InferenceEmbeddingsRequest, *, requested: bool
    ) -> Embeddings:
        """Embed texts. With truncation, they are cut until the provider accepts them."""

        async def embed(given: Sequence[str]) -> Embeddings:
            return await self.models.embed_texts(choice, given, request.task_type, requested=requested)

        if request.text_truncation == "none":
            return await embed(texts)
        return await embed_cut(embed, texts, request.text_truncation)


def text_in(content: str | TextContentItem | ImageContentItem, index: int) -> str:
    """Return the text of a content. Raises InvalidRequest for an image."""
    if isinstance(content, ImageContentItem):
        raise InvalidRequest(
            f"Content {index} is an image. Embedding models of this server embed texts only.", param="contents"
        )
    return content if isinstance(content, str) else content.text


def encode_vector(vector: Vector) -> str:
    """Return a vector as little-endian float32 in base64."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
