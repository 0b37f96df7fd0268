"""Embeddings of Amazon Bedrock's models: Titan and Cohere.

The families differ in what a call takes (`dimensions.py`): Titan one text, Cohere 96. boto3 blocks, so each call has a
thread, with eight for all requests of the process. Threads have no context of their own: each call runs in a copy of
the caller's, whose tenant and trace it needs. If one call fails, those that wait for a thread are cancelled, and those
that run end by themselves.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError
from stint.providers.bedrock.client import connect
from stint.providers.bedrock.errors import ERRORS, explain
from stint.retrieval.dimensions import BedrockFamily, bedrock_family
from stint.retrieval.embedders.answers import check_vectors, read_vector
from stint.retrieval.port import Embeddings, TextTooLong, Vector

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

Kind = Literal["document", "query"]

CONCURRENT_CALLS = 8
TOKENS_HEADER = "x-amzn-bedrock-input-token-count"


class BedrockEmbeddings:
    """The embedding models of InvokeModel, with up to 8 calls at once, each in a thread, because boto3 blocks.

    The client is made when first used, in the thread of that call.
    """

    def __init__(self, client: "Callable[[], BedrockRuntimeClient]" = connect) -> None:
        self._make_client = client
        self._made_client: BedrockRuntimeClient | None = None
        self._lock = threading.Lock()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=CONCURRENT_CALLS, thread_name_prefix="embeddings")

    def dimension(self, model_id: str) -> int:
        """Return the default dimension of a model; see the port."""
        return bedrock_family(model_id).dimensions[0]

    async def embed(
        self, model_id: str, texts: Sequence[str], *, kind: Kind = "document", dimensions: int | None = None
    ) -> Embeddings:
        """Embed texts: with Titan one in a call, with Cohere 96; see the port."""
        family = bedrock_family(model_id)
        check_request(family, model_id, texts, dimensions)
        bodies = list(write_bodies(family, texts, kind, dimensions))
        loop = asyncio.get_running_loop()
        calls = [
            loop.run_in_executor(self._threads, copy_context().run, self._invoke, model_id, body) for body in bodies
        ]
        try:
            answers = await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.cancel()
        vectors = [vector for found, _ in answers for vector in found]
        check_vectors(vectors, len(texts), dimensions or family.dimensions[0])
        counts = [tokens for _, tokens in answers if tokens is not None]
        # A sum without one of the counts would be too low, and it is charged.
        return Embeddings(vectors, sum(counts) if len(counts) == len(answers) else None)

    def _invoke(self, model_id: str, body: dict[str, Any]) -> tuple[list[Vector], int | None]:
        try:
            answer = self._client().invoke_model(
                modelId=model_id, body=json.dumps(body), accept="application/json", contentType="application/json"
            )
            raw = answer["body"].read()
        except ERRORS as error:
            explained = explain(error, {})
            if isinstance(explained, ContextLengthExceeded):
                explained.param = "input"
            raise explained from error
        headers = answer["ResponseMetadata"]["HTTPHeaders"]
        return read_answer(raw, headers.get(TOKENS_HEADER))

    def _client(self) -> "BedrockRuntimeClient":
        with self._lock:
            if self._made_client is None:
                self._made_client = self._make_client()
            return self._made_client


def check_request(family: BedrockFamily, model_id: str, texts: Sequence[str], dimensions: int | None) -> None:
    """Raise InvalidRequest or TextTooLong for texts and dimensions that the model does not support."""
    if dimensions is not None and dimensions not in family.dimensions:
        raise InvalidRequest(
            f"Embedding model {model_id!r} has no {dimensions} dimensions. It supports "
            f"{', '.join(map(str, family.dimensions))}.",
            param="dimensions",
        )
    for index, text in enumerate(texts):
        # Refused here, because Bedrock's own message does not name the text.
        if not text.strip():
            raise InvalidRequest(f"Text {index} is blank, which Bedrock's models do not embed.", param="input")
        if family.characters is not None and len(text) > family.characters:
            raise TextTooLong(
                f"Text {index} has {len(text)} characters; embedding model {model_id!r} accepts {family.characters}. "
                "Use smaller chunks, or another model.",
                family.characters,
            )


def write_bodies(
    family: BedrockFamily, texts: Sequence[str], kind: Kind, dimensions: int | None
) -> Iterator[dict[str, Any]]:
    """Yield the body of each call."""
    if family.texts == 1:
        options = {"dimensions": dimensions or family.dimensions[0], "normalize": True}
        yield from ({"inputText": text, **(options if family.takes_dimensions else {})} for text in texts)
        return
    options = {"output_dimension": dimensions} if family.takes_dimensions and dimensions is not None else {}
    for start in range(0, len(texts), family.texts):
        batch = list(texts[start : start + family.texts])
        yield {"texts": batch, "input_type": f"search_{kind}", "truncate": "NONE", **options}


def read_answer(raw: bytes, header: str | None) -> tuple[list[Vector], int | None]:
    """Return the vectors and the number of tokens of an answer of either family. Raises ModelError."""
    try:
        answer = json.loads(raw)
        found = [answer["embedding"]] if "embedding" in answer else answer["embeddings"]
        vectors = found["float"] if isinstance(found, dict) else found
        tokens = answer.get("inputTextTokenCount", header)
        return [read_vector(vector) for vector in vectors], None if tokens is None else int(tokens)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelError("Bedrock sent an answer without embeddings.") from error
