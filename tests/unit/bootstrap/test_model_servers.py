"""Named model servers: each has its own models, embedding models and key."""

import io
import json
from typing import Any

import pytest
from tests.servers import chat_completions as chat
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.embeddings import EmbeddingsServer, error
from tests.servers.llama_guard import LlamaGuardServer

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import warn_of_short_keys
from stint.bootstrap.defaults import configured, providers
from stint.domain.errors import InvalidRequest, ModelUnauthorized
from stint.domain.inference import InferenceRequest, UserInput
from stint.models.openai_compatible import ModelRoute, OpenAICompatible
from stint.observability import make_logger
from stint.retrieval.embedder_router import MeteredEmbedder
from stint.retrieval.embedders.openai import OpenAIEmbeddings
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.settings import Settings, read_settings
from stint.shields.port import Shield

HIDDEN = "sk-hunter2-hunter2"


def with_servers(*servers: dict[str, Any], **variables: str) -> Settings:
    return read_settings({"STINT_PROVIDERS": json.dumps(servers), **variables})


async def ask(adapters: Adapters, model_id: str) -> None:
    model, name = adapters.router.resolve(model_id)
    async for _ in model.stream(InferenceRequest(name, (UserInput("Hello"),))):
        pass
    await close(adapters, model_id)


async def close(adapters: Adapters, model_id: str) -> None:
    part: Any = adapters.router.resolve(model_id)[0]
    while not isinstance(part, OpenAICompatible | None):
        part = getattr(part, "_model", None)
    if part is not None:
        await part.aclose()


def origin_of(adapters: Adapters, model_id: str) -> str:
    """Return what binds the reasoning of a model."""
    part, name = adapters.router.resolve(model_id)
    model: Any = part
    while not isinstance(model, OpenAICompatible):
        model = model.wrapped
    request = InferenceRequest(name, (UserInput("Hello"),))
    api: Any = model._api_of(ModelRoute(model.server.base_url, "responses"))
    return str(api.reader(request).origin)


def test_reasoning_is_bound_to_its_provider() -> None:
    """Servers with the same address may have keys of different accounts."""
    url = "https://api.openai.com/v1"
    servers: list[dict[str, Any]] = [{"id": "one", "base_url": url}, {"id": "other", "base_url": url}]
    servers += [
        {"id": name, "kind": "bedrock-openai", "region": "eu-west-1", "endpoint": "mantle"} for name in ("aws", "aws2")
    ]
    adapters = Adapters(with_servers(*servers, OPENAI_API_KEY=HIDDEN))

    origins = {origin_of(adapters, f"{name}/m") for name in ("openai", "one", "other", "aws", "aws2")}

    assert len(origins) == 5
    assert all(url not in origin for origin in origins)


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
        assert isinstance(found.embedder, MeteredEmbedder)
        assert isinstance(found.embedder.embedder, OpenAIEmbeddings)
        await found.embedder.embedder.aclose()

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
        ('[{"id": "x", "kind": "scripted"}]', "STINT_SCRIPTED_MODELS=true"),
        ('[{"id": "x", "kind": "bedrock", "defaults": {"temperature": "hunter2"}}]', "defaults.temperature"),
        ('[{"id": "x", "kind": "bedrock", "defaults": {"max_tokens": 0}}]', "defaults.max_tokens"),
        ('[{"id": "x", "kind": "bedrock", "defaults": {"tokens": 9}}]', "defaults.tokens"),
        ('[{"id": "x", "kind": "bedrock", "secret": "hunter2"}]', "secret"),
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


async def test_a_named_servers_key_is_redacted_in_its_errors_and_in_logs(written: io.StringIO) -> None:
    with ChatCompletionsServer() as server:
        server.script(chat.error(400, f"The key {HIDDEN} is not valid for this model"))
        adapters = Adapters(
            with_servers({"id": "lab", "base_url": server.base_url, "key_variable": "STINT_KEY"}, STINT_KEY=HIDDEN)
        )
        with pytest.raises(InvalidRequest) as caught:
            await ask(adapters, "lab/m")
        await close(adapters, "lab/m")
    make_logger().warning(f"The server said {HIDDEN}")

    assert "is not valid for this model" in caught.value.message
    assert HIDDEN not in caught.value.message + written.getvalue()
    assert "The server said" in written.getvalue()


async def test_a_llama_guard_of_a_named_server_is_asked_with_its_key() -> None:
    with LlamaGuardServer() as server:
        adapters = Adapters(
            with_servers({"id": "safe", "base_url": server.base_url, "key_variable": "STINT_KEY"}, STINT_KEY=HIDDEN)
        )
        shield = Shield("guard", "llama-guard", "safe/Llama-Guard-3-8B", {})
        found = await adapters.shield_providers["llama-guard"].check(shield, [UserInput("hello")], "user-input")
        await close(adapters, "safe/Llama-Guard-3-8B")

    assert found is None
    assert len(server.prompts) == 1
    assert server.requests[0].headers["authorization"] == f"Bearer {HIDDEN}"


async def test_a_vector_store_names_an_embedding_model_of_a_server() -> None:
    with EmbeddingsServer() as server:
        models = EmbeddingModels(Adapters(with_servers({"id": "tei", "base_url": server.base_url})).embedders)
        choice = await models.choose_for_store("tei/words")
        vectors = await models.embed(choice, ["red"])
        found = models.router.resolve("tei/words").embedder
        assert isinstance(found, MeteredEmbedder)
        assert isinstance(found.embedder, OpenAIEmbeddings)
        await found.embedder.aclose()

    assert (choice.model, choice.dimension, len(vectors[0])) == ("tei/words", 8, 8)


@pytest.mark.parametrize(("model", "logged"), [("hashed/words-384", 1), ("openai/text-embedding-3-small", 0)])
async def test_a_store_whose_model_compares_words_only_is_logged(
    model: str, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    await EmbeddingModels(Adapters(Settings()).embedders).choose_for_store(model)

    assert sum("compares words only" in record.getMessage() for record in caplog.records) == logged


def test_the_key_of_a_named_server_that_is_too_short_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    settings = with_servers({"id": "x", "base_url": "http://a/v1", "key_variable": "STINT_KEY"}, STINT_KEY="abc")
    adapters = Adapters(settings)

    warn_of_short_keys(settings, configured(settings, adapters.router), adapters.model_servers)

    assert "STINT_KEY has fewer than 8 characters" in caplog.text
    assert "abc" not in caplog.text
