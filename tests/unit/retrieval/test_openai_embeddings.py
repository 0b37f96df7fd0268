"""Embeddings of an OpenAI-compatible server, over real HTTP."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.servers.embeddings import EmbeddingsServer, document, embeddings, error
from tests.servers.scripted_http import Reply

from stint.domain.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelUnauthorized,
    RateLimited,
    StintError,
)
from stint.retrieval.embedders.hashed import embed_words
from stint.retrieval.embedders.openai import MOST_TOKENS, OpenAIEmbeddings

TEXTS = ["red", "green", "blue"]


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as running:
        yield running


@pytest.fixture
async def embedder(server: EmbeddingsServer) -> AsyncIterator[OpenAIEmbeddings]:
    made = OpenAIEmbeddings(server.base_url, "sk-test", backoff=0.001)
    yield made
    await made.aclose()


def rounded(vectors: Any) -> list[list[float]]:
    return [[round(each, 5) for each in vector] for vector in vectors]


async def test_vectors_are_in_the_order_of_the_texts(server: EmbeddingsServer, embedder: OpenAIEmbeddings) -> None:
    found = await embedder.embed("words", TEXTS)

    assert rounded(found.vectors) == rounded(embed_words(TEXTS, 8).vectors)
    assert found.tokens == 7
    assert server.bodies == [{"model": "words", "input": TEXTS, "encoding_format": "base64"}]
    assert server.requests[0].headers["authorization"] == "Bearer sk-test"


async def test_a_server_that_ignores_base64_is_read(server: EmbeddingsServer, embedder: OpenAIEmbeddings) -> None:
    server.script(embeddings([[1, 0.5], [0, 1]]))

    assert (await embedder.embed("words", TEXTS[:2])).vectors == [[1, 0.5], [0, 1]]


async def test_the_dimensions_are_sent(server: EmbeddingsServer, embedder: OpenAIEmbeddings) -> None:
    found = await embedder.embed("words", ["red"], dimensions=4)

    assert [len(vector) for vector in found.vectors] == [4]
    assert server.bodies[0]["dimensions"] == 4


async def test_no_texts_need_no_call(server: EmbeddingsServer, embedder: OpenAIEmbeddings) -> None:
    assert (await embedder.embed("words", [])).vectors == []
    assert server.requests == []


async def test_more_than_2048_texts_are_several_calls(server: EmbeddingsServer, embedder: OpenAIEmbeddings) -> None:
    found = await embedder.embed("words", ["red"] * 2049)

    assert [len(body["input"]) for body in server.bodies] == [2048, 1]
    assert (len(found.vectors), found.tokens) == (2049, 14)


async def test_long_texts_are_several_calls(server: EmbeddingsServer, embedder: OpenAIEmbeddings) -> None:
    await embedder.embed("words", ["x" * MOST_TOKENS] * 4)

    assert [len(body["input"]) for body in server.bodies] == [2, 2]


def test_the_dimensions_of_openais_models_are_known(embedder: OpenAIEmbeddings) -> None:
    names = ["text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002", "nomic-embed-text"]

    assert [embedder.dimension(name) for name in names] == [1536, 3072, 1536, None]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (embeddings([[1, 0]]), "1 vectors for 2 texts"),
        (embeddings([[1, 0]] * 3), "3 vectors for 2 texts"),
        (embeddings([[1, 0], [1]]), "different or no dimensions"),
        (embeddings([[], []]), "different or no dimensions"),
        (embeddings([[1, 0], [float("nan"), 0]]), "not a finite number"),
        (embeddings([[1, 0], [float("inf"), 0]], encoding="base64"), "not a finite number"),
        (document({"data": [{"index": 0, "embedding": "?"}, {"index": 1, "embedding": "AAAA"}]}), "float32 in base64"),
        (document({"data": [{"index": 0, "embedding": ["a"]}, {"index": 1, "embedding": [1]}]}), "neither a list"),
        (document({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}), "2 vectors for 2"),
        (document({"data": None}), "not a list of embeddings"),
        (document([]), "not a list of embeddings"),
        (Reply((b"<html>",)), "no valid JSON"),
    ],
)
async def test_an_answer_that_is_not_as_documented_is_an_error_of_the_provider(
    server: EmbeddingsServer, embedder: OpenAIEmbeddings, reply: Reply, says: str
) -> None:
    server.script(reply)

    with pytest.raises(ModelError, match=says):
        await embedder.embed("words", TEXTS[:2])


async def test_another_dimension_than_requested_is_an_error(
    server: EmbeddingsServer, embedder: OpenAIEmbeddings
) -> None:
    server.script(embeddings([[1, 0]]))

    with pytest.raises(ModelError, match="2 dimensions where 3 were requested"):
        await embedder.embed("words", ["red"], dimensions=3)


@pytest.mark.parametrize(
    ("reply", "expected", "param"),
    [
        (error(401, "Incorrect API key"), ModelUnauthorized, None),
        (error(404, "The model `x` does not exist", code="model_not_found"), InvalidRequest, "model"),
        (error(400, "Bad dimensions", param="dimensions"), InvalidRequest, "dimensions"),
    ],
)
async def test_a_refusal_is_translated(
    server: EmbeddingsServer, embedder: OpenAIEmbeddings, reply: Reply, expected: type[StintError], param: str | None
) -> None:
    server.script(reply)

    with pytest.raises(expected) as caught:
        await embedder.embed("words", ["red"])
    assert type(caught.value) is expected
    assert caught.value.param == param
    assert len(server.requests) == 1


async def test_a_text_that_is_too_long_names_the_input(embedder: OpenAIEmbeddings) -> None:
    with pytest.raises(ContextLengthExceeded, match="maximum context length") as caught:
        await embedder.embed("words", ["red " * 1001])
    assert caught.value.param == "input"


async def test_a_rate_limit_is_retried_twice(server: EmbeddingsServer, embedder: OpenAIEmbeddings) -> None:
    server.script(*[error(429, "Slow down")] * 3)

    with pytest.raises(RateLimited):
        await embedder.embed("words", ["red"])
    assert len(server.requests) == 3


async def test_a_server_that_recovers_is_used(server: EmbeddingsServer, embedder: OpenAIEmbeddings) -> None:
    server.script(error(503, "Busy"), Reply(status=0))

    assert len((await embedder.embed("words", ["red"])).vectors) == 1


async def test_a_missing_server_is_an_error_that_names_the_setting() -> None:
    embedder = OpenAIEmbeddings("http://127.0.0.1:1/v1", repeats=0)

    with pytest.raises(ModelError, match=r"127.0.0.1:1.*OPENAI_BASE_URL"):
        await embedder.embed("words", ["red"])
