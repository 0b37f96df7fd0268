"""Embeddings in both APIs, with the real clients, and embedding models in the registry."""

import base64
import struct
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from openai import OpenAI
from tests.api.api_client import assert_error
from tests.api.app_fixture import Served
from tests.api.responses_client import openai_client

from stint.retrieval.embedders.hashed import embed_words

HASHED = "hashed/words-384"
TEXTS = ["Llamas hum.", "Alpacas are smaller."]


def expected(*texts: str, dimension: int = 384) -> Any:
    return [pytest.approx(list(vector), abs=1e-6) for vector in embed_words(texts, dimension).vectors]


def embed(http: httpx.Client, **fields: Any) -> httpx.Response:
    return http.post("/v1/embeddings", json={"model": HASHED, "input": "Llamas hum."} | fields)


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
@pytest.mark.parametrize("encoding", [{}, {"encoding_format": "float"}])
def test_the_client_of_openai_embeds_texts(server: Served, base: str, encoding: Any) -> None:
    with openai_client(server, base) as client:
        found = client.embeddings.create(model=HASHED, input=TEXTS, **encoding)

    assert [each.embedding for each in found.data] == expected(*TEXTS)
    assert [(each.object, each.index) for each in found.data] == [("embedding", 0), ("embedding", 1)]
    assert (found.object, found.model) == ("list", HASHED)
    assert (found.usage.prompt_tokens, found.usage.total_tokens) == (5, 5)


def test_base64_is_little_endian_float32(http: httpx.Client) -> None:
    text = embed(http, encoding_format="base64").json()["data"][0]["embedding"]

    assert struct.unpack("<384f", base64.b64decode(text)) == expected("Llamas hum.")[0]


def test_the_dimensions_can_be_requested(http: httpx.Client) -> None:
    assert embed(http, dimensions=4).json()["data"][0]["embedding"] == expected("Llamas hum.", dimension=4)[0]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"input": [1, 2, 3]}, "Lists of tokens are not supported"),
        ({"input": [[1, 2], [3]]}, "Lists of tokens are not supported"),
        ({"input": []}, "at least 1 item"),
        ({"input": ["a", ""]}, "Text 1 is empty"),
        ({"input": ""}, "Text 0 is empty"),
        ({"input": ["a"] * 2049}, "at most 2048 items"),
        ({"input": {"text": "a"}}, "valid list"),
        ({"input": None}, "valid list"),
        ({"encoding_format": "int8"}, "'float' or 'base64'"),
        ({"dimensions": 0}, "greater than or equal to 1"),
        ({"dimensions": 4097}, "less than or equal to 4096"),
    ],
)
def test_invalid_requests_are_refused_with_the_field(http: httpx.Client, fields: dict[str, Any], says: str) -> None:
    error = assert_error(embed(http, **fields), 400, "invalid_request")

    assert says in error["message"]
    assert error["param"].startswith(next(iter(fields)))


def test_an_unknown_model_is_told_the_nearest_one_that_embeds(http: httpx.Client) -> None:
    for wrong in ("hashd/words-384", "words-348"):
        error = assert_error(embed(http, model=wrong), 400, "model_not_found")
        assert error["message"].endswith(" Did you mean 'hashed/words-384'?")
    error = assert_error(embed(http, model="dmo"), 400, "model_not_found")
    assert "Did you mean" not in error["message"]


@pytest.mark.parametrize("model", ["nope", "hashed/none", "scripted/words"])
def test_an_unknown_model_is_refused(http: httpx.Client, model: str) -> None:
    assert_error(embed(http, model=model), 400, "model_not_found")
    body = {"model_id": model, "contents": ["a"]}
    assert_error(http.post("/v1/inference/embeddings", json=body), 400, "model_not_found")


def test_a_model_that_writes_answers_embeds_nothing(http: httpx.Client) -> None:
    error = assert_error(embed(http, model="scripted/demo"), 400, "model_not_supported")

    assert "Model 'scripted/demo' is not an embedding model" in error["message"]


def test_the_client_of_llama_stack_embeds_contents(client: LlamaStackClient) -> None:
    texts = client.inference.embeddings(model_id="all-MiniLM-L6-v2", contents=TEXTS)
    contents: Any = [{"type": "text", "text": text} for text in TEXTS]
    items = client.inference.embeddings(
        model_id=HASHED,
        contents=contents,
        task_type="query",
        text_truncation="end",
    )
    few = client.inference.embeddings(model_id=HASHED, contents=["a"], output_dimension=4)
    none = client.inference.embeddings(model_id=HASHED, contents=[])

    assert texts.embeddings == items.embeddings == expected(*TEXTS)
    assert [len(each) for each in few.embeddings] == [4]
    assert none.embeddings == []


def test_images_are_refused_with_their_place(http: httpx.Client) -> None:
    image = {"type": "image", "image": {"url": {"uri": "https://example.com/a.png"}}}
    body = {"model_id": HASHED, "contents": ["a", image]}

    error = assert_error(http.post("/v1/inference/embeddings", json=body), 400, "invalid_request")

    assert "Content 1 is an image" in error["message"]


def test_the_configured_embedding_model_is_listed_with_its_dimension(client: LlamaStackClient) -> None:
    found = {model.identifier: model for model in client.models.list() if model.api_model_type == "embedding"}

    assert found[HASHED].metadata == {"embedding_dimension": 384}
    assert found[HASHED].provider_id == "hashed"


def test_a_registered_embedding_model_embeds_with_its_dimension(http: httpx.Client, server: Served) -> None:
    body = {
        "model_id": "small",
        "model_type": "embedding",
        "provider_id": "hashed",
        "provider_model_id": "words-64",
        "metadata": {"embedding_dimension": 16},
    }
    registered = http.post("/v1/models", json=body)

    assert registered.status_code == 200, registered.text
    with openai_client(server) as client:
        found = client.embeddings.create(model="small", input="Llamas hum.")
    assert found.data[0].embedding == expected("Llamas hum.", dimension=16)[0]


def test_the_dimension_of_a_registration_is_filled_in(http: httpx.Client) -> None:
    body = {"model_id": "hashed/words-64", "model_type": "embedding"}

    assert http.post("/v1/models", json=body).json()["metadata"] == {"embedding_dimension": 64}


def test_a_model_of_sentence_transformers_stands_for_the_default_one(http: httpx.Client) -> None:
    body = {"model_id": "minilm", "model_type": "embedding", "provider_id": "sentence-transformers"}
    http.post("/v1/models", json=body | {"metadata": {"embedding_dimension": 384}})

    assert embed(http, model="minilm").json()["data"][0]["embedding"] == expected("Llamas hum.")[0]


@pytest.mark.parametrize(
    ("model_type", "provider"), [("embedding", "none"), ("embedding", "scripted"), ("llm", "hashed")]
)
def test_a_registration_names_a_provider_of_its_type(http: httpx.Client, model_type: str, provider: str) -> None:
    body = {"model_id": "x", "model_type": model_type, "provider_id": provider}

    error = assert_error(http.post("/v1/models", json=body), 400, "provider_not_found")

    assert error["param"] == "provider_id"


def test_a_short_id_of_the_configured_model_embeds(server: Served) -> None:
    with openai_client(server) as client:
        assert isinstance(client, OpenAI)
        assert client.embeddings.create(model="words-384", input="a").model == "words-384"
