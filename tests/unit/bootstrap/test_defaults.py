"""The providers that the API lists are those that adapters are made for."""

import json
import traceback

import pytest
from moto import mock_aws
from pydantic import SecretStr

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import warn_of_short_keys
from stint.bootstrap.chat_models import image_bytes, make_openai
from stint.bootstrap.defaults import configured, providers
from stint.bootstrap.tool_providers import tool_key
from stint.documents.limits import Limits
from stint.domain.errors import InvalidRequest, ToolUnavailable
from stint.models.fetched_images import FetchedImages
from stint.models.metered import MeteredModel
from stint.models.openai_compatible import OpenAICompatible
from stint.models.port import ChatModel
from stint.models.routing import HINTS
from stint.models.tool_names import SanitizedToolNames
from stint.services.registry.model_registrations import find_unlisted_models
from stint.settings import Settings, read_settings

DEFAULTS = Settings()


def listed(api: str, settings: Settings = DEFAULTS) -> list[str]:
    return [provider.provider_id for provider in providers(settings).data if provider.api == api]


def test_the_providers_of_tools_and_shields_are_listed_as_they_are_made() -> None:
    of_tenants = {"rag-runtime"}  # is made for each tenant, with its vector stores
    assert sorted(listed("tool_runtime")) == sorted({*Adapters(Settings()).tool_providers, *of_tenants})
    assert sorted(listed("safety")) == sorted(Adapters(Settings()).shield_providers)


@pytest.mark.parametrize(("scripted", "others"), [("true", set()), ("false", {"scripted"}), ("", {"scripted"})])
def test_every_listed_provider_of_models_has_an_adapter(scripted: str, others: set[str]) -> None:
    settings = read_settings({"STINT_SCRIPTED_MODELS": scripted})
    router = Adapters(settings).router
    names = [name for name in listed("inference", settings) if name != "hashed"]

    assert [router.route(f"{name}/m") for name in names] == [(name, "m") for name in names]
    assert set(names) == set(router.providers) == set(HINTS) - others
    for name in others:
        with pytest.raises(InvalidRequest, match="parameter ScriptedModels") as refused:
            router.route(f"{name}/demo")
        assert refused.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/gpt-unlisted", [("openai", "gpt-unlisted", "llm")]),
        ("openai/org/name", [("openai", "org/name", "llm")]),
        ("openai/text-embedding-3-small", [("openai", "text-embedding-3-small", "embedding")]),
        ("bedrock/us.anthropic.claude-x", [("bedrock", "us.anthropic.claude-x", "llm")]),
        ("bedrock/cohere.embed-v4:0", [("bedrock", "cohere.embed-v4:0", "embedding")]),
        ("openai/", []),
        ("scripted/demo", []),
        ("local/wordllama-256", []),
        ("nobody/x", []),
    ],
)
def test_unlisted_models_of_configured_providers_are_found(model: str, expected: list[tuple[str, str, str]]) -> None:
    settings = read_settings({"STINT_SCRIPTED_MODELS": "false"})
    router = Adapters(settings).router

    found = find_unlisted_models(model, router, providers(settings).data, configured(settings, router))

    assert [(each.provider_id, each.provider_resource_id, each.model_type) for each in found] == expected


@pytest.mark.parametrize("name", ["openai", "bedrock"])
def test_providers_that_take_plain_names_of_tools_only_get_no_others(name: str) -> None:
    model, _ = Adapters(Settings()).router.resolve(f"{name}/m")

    assert isinstance(model, MeteredModel)
    assert type(model.wrapped) is SanitizedToolNames


def test_a_tools_secret_that_cannot_be_read_names_its_own_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:nothing"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    key = tool_key(Settings(tools_secret_arn=missing), "BRAVE_SEARCH_API_KEY", SecretStr(""))

    with mock_aws(), pytest.raises(ToolUnavailable, match=r"BRAVE_SEARCH_API_KEY.*ToolsSecretArn") as failed:
        key()

    assert "model" not in failed.value.message.lower()


@pytest.mark.parametrize(
    ("base_url", "adapter"),
    [
        ("https://api.openai.com/v1", OpenAICompatible),
        ("https://eu.api.openai.com/v1", OpenAICompatible),
        ("http://vllm.internal:8000/v1", FetchedImages),
        ("https://api.openai.com.example/v1", FetchedImages),
    ],
)
def test_no_server_but_openais_own_is_sent_the_address_of_an_image(base_url: str, adapter: type[ChatModel]) -> None:
    settings = Settings(openai_base_url=base_url)
    model = make_openai(settings, Adapters(settings).fetch)

    assert type(model) is adapter


def test_keys_that_are_too_short_to_be_replaced_are_warned_of_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    group = {"toolgroup_id": "own", "provider_id": "brave-search", "args": {"api_key": "short"}}
    registry = json.dumps({"toolgroups": [group]})
    settings = Settings.model_validate({"openai_api_key": "none", "brave_api_key": "12345678", "registry": registry})

    warn_of_short_keys(settings, configured(settings, Adapters(Settings()).router))

    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert told[0].startswith("OPENAI_API_KEY has fewer than 8 characters")
    assert (caplog.records[1].__dict__["toolgroup_id"], "short" in caplog.text) == ("own", False)


@pytest.mark.parametrize("registry", ['{"toolgroups": [{"api_key": "sk-1234567890"}]}', '{"key": "sk-1234567890", '])
def test_a_malformed_registry_is_reported_without_its_values(registry: str) -> None:
    with pytest.raises(ValueError, match="STINT_REGISTRY is malformed") as caught:
        configured(Settings.model_validate({"registry": registry}), Adapters(Settings()).router)

    assert "sk-1234567890" not in "".join(traceback.format_exception(caught.value))


def test_a_malformed_setting_is_reported_without_its_value() -> None:
    with pytest.raises(ValueError) as caught:
        Settings.model_validate({"lease_seconds": "sk-1234567890"})

    assert "sk-1234567890" not in str(caught.value)


def test_a_small_function_fetches_and_reads_less() -> None:
    usual, small = Adapters(Settings()), Adapters(Settings(max_fetched_bytes=1_000_000))

    assert (image_bytes(usual.settings), usual.document_limits) == (12_000_000, Limits())
    assert (image_bytes(small.settings), small.document_limits) == (2_000_000, Limits(memory_bytes=20_000_000))
