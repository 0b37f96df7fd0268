"""Embeddings of Bedrock's models, with boto3 and a real HTTP server."""

from collections.abc import Iterator

import pytest
from tests.servers.bedrock_embeddings import BedrockEmbeddingsServer, document, error, model_of
from tests.servers.scripted_http import Reply

from stint.domain.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelUnauthorized,
    RateLimited,
    StintError,
)
from stint.providers.bedrock.client import connect
from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.embedders.bedrock import BedrockEmbeddings
from stint.retrieval.embedders.hashed import embed_words
from stint.retrieval.port import TextTooLong
from stint.services.knowledge.embedding_models import EmbeddingModels

TITAN, COHERE_3, COHERE_4 = "amazon.titan-embed-text-v2:0", "cohere.embed-multilingual-v3", "us.cohere.embed-v4:0"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[BedrockEmbeddingsServer]:
    with BedrockEmbeddingsServer() as server:
        yield server


@pytest.fixture
def server(endpoint: BedrockEmbeddingsServer) -> BedrockEmbeddingsServer:
    endpoint.forget()
    return endpoint


@pytest.fixture(scope="module")
def embedder(endpoint: BedrockEmbeddingsServer) -> Iterator[BedrockEmbeddings]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", endpoint.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        client = connect("eu-central-1")
        yield BedrockEmbeddings(lambda: client)


async def test_titan_embeds_one_text_in_a_call(server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings) -> None:
    texts = [f"number {index}" for index in range(20)]

    found = await embedder.embed(TITAN, texts)

    assert found.vectors == embed_words(texts, 1024).vectors
    assert found.tokens == 40
    assert sorted(body["inputText"] for body in server.bodies) == sorted(texts)
    assert {model_of(request) for request in server.requests} == {TITAN}
    assert server.bodies[0] | {"inputText": ""} == {"inputText": "", "dimensions": 1024, "normalize": True}


async def test_cohere_embeds_96_texts_in_a_call(server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings) -> None:
    texts = [f"number {index}" for index in range(97)]

    found = await embedder.embed(COHERE_3, texts, kind="query")

    assert found.vectors == embed_words(texts, 1024).vectors
    assert found.tokens == 194
    assert sorted(len(body["texts"]) for body in server.bodies) == [1, 96]
    assert {body["input_type"] for body in server.bodies} == {"search_query"}


async def test_documents_and_queries_are_told_apart(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings
) -> None:
    await embedder.embed(COHERE_4, ["x"], kind="document")

    assert server.bodies[0]["input_type"] == "search_document"


@pytest.mark.parametrize(("model", "dimensions"), [(TITAN, 256), (COHERE_4, 512)])
async def test_the_dimensions_are_sent(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings, model: str, dimensions: int
) -> None:
    found = await embedder.embed(model, ["x"], dimensions=dimensions)

    assert len(found.vectors[0]) == dimensions


@pytest.mark.parametrize(
    ("model", "dimension"),
    [
        (TITAN, 1024),
        ("amazon.titan-embed-text-v1", 1536),
        ("amazon.titan-embed-g1-text-02", 1536),
        (COHERE_3, 1024),
        ("cohere.embed-english-v3", 1024),
        (COHERE_4, 1536),
    ],
)
async def test_the_dimension_of_a_model_is_that_of_its_vectors(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings, model: str, dimension: int
) -> None:
    found = await embedder.embed(model, ["x"])

    assert embedder.dimension(model) == len(found.vectors[0]) == dimension


async def test_no_texts_need_no_call(server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings) -> None:
    assert (await embedder.embed(TITAN, [])).vectors == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("model", "texts", "dimensions", "says", "param"),
    [
        (TITAN, ["x"], 300, "supports 1024, 512, 256", "dimensions"),
        (COHERE_3, ["x"], 512, "supports 1024", "dimensions"),
        (TITAN, ["x", " "], None, "Text 1 is blank", "input"),
        ("amazon.nova-lite-v1:0", ["x"], None, "is not supported", "model"),
    ],
)
async def test_a_request_that_a_model_does_not_support_is_not_sent(
    server: BedrockEmbeddingsServer,
    embedder: BedrockEmbeddings,
    model: str,
    texts: list[str],
    dimensions: int | None,
    says: str,
    param: str,
) -> None:
    with pytest.raises(InvalidRequest, match=says) as caught:
        await embedder.embed(model, texts, dimensions=dimensions)
    assert caught.value.param == param
    assert server.requests == []


async def test_a_text_over_a_stated_limit_is_not_sent_and_the_error_has_the_limit(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings
) -> None:
    with pytest.raises(TextTooLong, match="Text 1 has 2049 characters") as caught:
        await embedder.embed(COHERE_3, ["x", "y" * 2049])
    assert (caught.value.param, caught.value.characters) == ("input", 2048)
    assert server.requests == []


async def test_a_vector_store_embeds_the_beginning_of_a_text_that_is_too_long(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings
) -> None:
    models = EmbeddingModels(EmbedderRouter({"bedrock": lambda: embedder}, f"bedrock/{COHERE_3}"))
    choice = await models.choose()

    vectors = await models.embed(choice, ["x", "word " * 1000])

    assert [[len(text) for text in body["texts"]] for body in server.bodies] == [[1, 2048]]
    assert len(vectors) == 2


async def test_a_limit_that_only_the_provider_knows_is_approached(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings
) -> None:
    models = EmbeddingModels(EmbedderRouter({"bedrock": lambda: embedder}, f"bedrock/{TITAN}"))
    choice = await models.choose()

    await models.embed(choice, ["word " * 9000])

    accepted = server.bodies[-1]["inputText"]
    assert 8192 * 0.7 < len(accepted.split()) <= 8192


async def test_a_text_that_is_too_long_names_the_input(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings
) -> None:
    with pytest.raises(ContextLengthExceeded) as caught:
        await embedder.embed(TITAN, ["x " * 8193])
    assert caught.value.param == "input"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (error(403, "AccessDeniedException", "not allowed"), ModelUnauthorized),
        (error(404, "ResourceNotFoundException", "no such model"), InvalidRequest),
    ],
)
async def test_a_refusal_is_translated(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings, reply: Reply, expected: type[StintError]
) -> None:
    server.script(reply)

    with pytest.raises(expected):
        await embedder.embed(TITAN, ["x"])


async def test_throttling_is_retried_twice(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    server.script(*[error(429, "ThrottlingException", "slow down")] * 3)

    with pytest.raises(RateLimited):
        await embedder.embed(TITAN, ["x"])
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "reply",
    [
        Reply((b"<html>",)),
        document({"embeddings": None}),
        document([]),
        document({"embedding": [1.0]}),
        document({"embedding": ["x"] * 1024}),
        document({"embedding": [float("nan")] * 1024}),
    ],
)
async def test_an_answer_that_is_not_as_documented_is_an_error_of_the_provider(
    server: BedrockEmbeddingsServer, embedder: BedrockEmbeddings, reply: Reply
) -> None:
    server.script(reply)

    with pytest.raises(ModelError):
        await embedder.embed(TITAN, ["x"])
