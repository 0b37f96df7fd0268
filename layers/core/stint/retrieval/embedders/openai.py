"""Embeddings over HTTP: OpenAI, vLLM, Ollama, and other servers with the same API."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Unpack

from stint.domain.errors import ContextLengthExceeded, ModelError
from stint.providers.openai.server import OpenAIServer, ReadKey, ServerOptions
from stint.retrieval.dimensions import OPENAI
from stint.retrieval.embedders.answers import check_vectors, read_vector
from stint.retrieval.port import Embeddings, Vector

MOST_INPUTS, MOST_TOKENS = 2048, 300_000
BYTES_PER_TOKEN = 3
"""English has four or more, other languages and code have fewer."""


class OpenAIEmbeddings:
    """The models of `POST {base_url}/embeddings`. See `OpenAIServer` for the key, the `options` and retries."""

    def __init__(self, base_url: str, api_key: str | ReadKey | None = None, **options: Unpack[ServerOptions]) -> None:
        self.server = OpenAIServer(base_url, api_key, **options)

    def dimension(self, model_id: str) -> int | None:
        """Return the dimension of one of OpenAI's own models; see the port."""
        return OPENAI.get(model_id)

    async def embed(
        self,
        model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",  # noqa: ARG002 - the API has no such field
        dimensions: int | None = None,
    ) -> Embeddings:
        """Embed texts, in calls of up to 2,048 texts and about 300,000 tokens; see the port."""
        vectors: list[Vector] = []
        tokens: int | None = 0
        for batch in batches(texts):
            found = await self._embed_batch(model_id, batch, dimensions)
            vectors += found.vectors
            tokens = None if tokens is None or found.tokens is None else tokens + found.tokens
        check_vectors(vectors, len(texts), dimensions)
        return Embeddings(vectors, tokens)

    async def aclose(self) -> None:
        """Close the idle connections, also those of others that share the client."""
        await self.server.client.close()

    async def _embed_batch(self, model_id: str, texts: list[str], dimensions: int | None) -> Embeddings:
        body: dict[str, Any] = {"model": model_id, "input": texts, "encoding_format": "base64"}
        if dimensions is not None:
            body["dimensions"] = dimensions
        try:
            answer = await self.server.post("embeddings", body)
        except ContextLengthExceeded as error:
            error.param = "input"
            raise
        return read_answer(answer, len(texts))


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts of each call."""
    batch: list[str] = []
    tokens = 0
    for text in texts:
        # A cautious estimate. A batch that is too small costs a call, and one that is too large is refused.
        size = len(text.encode(errors="replace")) // BYTES_PER_TOKEN + 1
        if batch and (len(batch) == MOST_INPUTS or tokens + size > MOST_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += size
    if batch:
        yield batch


def read_answer(answer: Any, count: int) -> Embeddings:
    """Read the answer of a call. Its vectors may be in any order. Raises ModelError if one is missing."""
    try:
        # By their index, because the order is not promised.
        numbered = {int(each["index"]): each["embedding"] for each in answer["data"]}
        usage = answer.get("usage") or {}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError("The embedding model's provider sent JSON that is not a list of embeddings.") from error
    if sorted(numbered) != list(range(count)) or len(answer["data"]) != count:
        raise ModelError(f"The embedding model's provider sent {len(answer['data'])} vectors for {count} texts.")
    tokens = usage.get("prompt_tokens")
    known = isinstance(tokens, int) and tokens >= 0
    return Embeddings([read_vector(numbered[index]) for index in range(count)], tokens if known else None)
