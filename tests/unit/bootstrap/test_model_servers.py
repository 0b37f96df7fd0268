"""Named model servers: each has its own models, embedding models and key."""

import json
from typing import Any

import pytest
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.embeddings import EmbeddingsServer, error

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.defaults import providers
from stint.domain.errors import ModelUnauthorized
from stint.domain.inference import InferenceRequest, UserInput
from stint.models.openai.model import OpenAICompatible
from stint.retrieval.embedders.openai import OpenAIEmbeddings
from stint.settings import Settings, read_settings


def with_servers(*servers: dict[str, Any], **variables: str) -> Settings:
    return read_settings({"STINT_PROVIDERS": json.dumps(servers), **variables})


async def ask(adapters: Adapters, model_id: str) -> None:
    model, name = adapters.router.resolve(model_id)
    async for _ in model.stream(InferenceRequest(name, (UserInput("Hello"),))):
        pass
    for part in (model, getattr(model, "_model", None), getattr(getattr(model, "_model", None), "_model", None)):
        if isinstance(part, OpenAICompatible):
            await part.aclose()


async def test_each_model_goes_to_its_own_server_with_its_own_key() -> None:
    with ChatCompletionsServer() as one, ChatCompletionsServer() as other:
        settings = with_servers(
            {"id": "one", "base_url": one.base_url, "key_variable": "STINT_KEY_ONE"},
            {"id": "other", "base_url": other.base_url, "key_variable": "STINT_KEY_OTHER"},
            STINT_KEY_ONE="sk-of-one",
            STINT_KEY_OTHER="sk-of-other",
        )
        adapters = Adapters(settings)
        await ask(adapters, "one/llama")
        await ask(adapters, "other/qwen/qwen3")

    assert [(body["model"]) for body in one.bodies + other.bodies] == ["llama", "qwen/qwen3"]
    assert one.requests[0].headers["authorization"] == "Bearer sk-of-one"
    assert other.requests[0].headers["authorization"] == "Bearer sk-of-other"


async def test_an_embedding_model_names_a_server_likewise() -> None:
    with EmbeddingsServer() as server:
        server.script(error(401, "no"))
        settings = with_servers(
            {"id": "tei", "base_url": server.base_url, "key_variable": "STINT_KEY"}, STINT_KEY="sk-tei"
        )
        found = Adapters(settings).embedders.resolve("tei/words")
        with pytest.raises(ModelUnauthorized, match="the key of provider 'tei' in STINT_PROVIDERS"):
            await found.embedder.embed(found.provider_model_id, ["red"])
        assert isinstance(found.embedder, OpenAIEmbeddings)
        await found.embedder.aclose()

    assert server.requests[0].headers["authorization"] == "Bearer sk-tei"


def test_servers_are_listed_without_credentials() -> None:
    settings = with_servers(
        {"id": "one", "base_url": "https://user:hunter2@one.example/v1"},
        {"id": "eu", "kind": "bedrock", "region": "eu-west-1"},
    )

    listed = {each.provider_id: each for each in providers(settings).data}

    assert "hunter2" not in repr(listed)
    assert (listed["one"].provider_type, listed["eu"].provider_type) == ("remote::openai-compatible", "remote::bedrock")
    assert listed["eu"].config == {"region": "eu-west-1"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hunter2", "not JSON"),
        ('[{"base_url": "https://hunter2/v1"}]', "id"),
        ('[{"id": "hunter 2", "base_url": "https://hunter2/v1"}]', "id"),
        ('[{"id": "openai", "base_url": "https://hunter2/v1"}]', "built-in provider"),
        ('[{"id": "x"}]', "needs a base_url"),
        ('[{"id": "x", "base_url": "ftp://hunter2"}]', "base_url"),
        ('[{"id": "x", "kind": "hunter2"}]', "kind"),
        ('[{"id": "x", "base_url": "http://a/v1", "key_variable": "HUNTER2"}]', "key_variable"),
        ('[{"id": "x", "kind": "bedrock"}, {"id": "x", "kind": "bedrock"}]', "same id"),
    ],
)
def test_a_malformed_list_is_refused_with_the_field_and_without_values(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        _ = Adapters(Settings(providers=text)).model_servers

    assert "STINT_PROVIDERS" in str(caught.value)
    assert "hunter" not in str(caught.value).lower()


def test_keys_of_servers_are_not_shown() -> None:
    settings = with_servers({"id": "x", "base_url": "http://a/v1", "key_variable": "STINT_KEY"}, STINT_KEY="sk-hunter2")

    assert "hunter2" not in f"{settings!r} {settings}"
