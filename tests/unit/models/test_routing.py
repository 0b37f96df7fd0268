from collections.abc import Callable

import pytest

from stint.domain.errors import InvalidRequest
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.models.scripted.model import Scripted


def factories(*names: str) -> dict[str, Callable[[], ChatModel]]:
    return dict.fromkeys(names, Scripted)


@pytest.mark.parametrize(
    ("model_id", "provider", "provider_model_id"),
    [
        ("scripted/demo", "scripted", "demo"),
        ("openai/gpt-5", "openai", "gpt-5"),
        ("openai/openai/gpt-oss-20b", "openai", "openai/gpt-oss-20b"),
        ("bedrock/us.anthropic.claude-sonnet-4-5-v1:0", "bedrock", "us.anthropic.claude-sonnet-4-5-v1:0"),
        (
            "bedrock/arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc",
            "bedrock",
            "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc",
        ),
        ("meta-llama/Llama-3.2-3B-Instruct", "openai", "meta-llama/Llama-3.2-3B-Instruct"),
        ("llama3.2:3b", "openai", "llama3.2:3b"),
    ],
)
def test_prefix_chooses_the_provider(model_id: str, provider: str, provider_model_id: str) -> None:
    router = Router(factories("scripted", "openai", "bedrock"), default_model="openai/gpt-5")

    assert router.route(model_id) == (provider, provider_model_id)
    assert router.resolve(model_id)[1] == provider_model_id


def test_adapters_are_made_when_first_asked_for_and_kept() -> None:
    made: list[ChatModel] = []

    def make() -> ChatModel:
        made.append(Scripted())
        return made[-1]

    router = Router({"scripted": make}, default_model="scripted/demo")
    assert made == []

    models = [router.resolve(model_id)[0] for model_id in ("scripted/a", "b")]

    assert models[0] is models[1]
    assert len(made) == 1


@pytest.mark.parametrize(
    ("model_id", "default_model", "hint"),
    [
        ("openai/gpt-5", "scripted/demo", "set OPENAI_BASE_URL"),
        ("bedrock/nova", "scripted/demo", "AWS credentials"),
        ("gpt-5", "openai/gpt-5", "set OPENAI_BASE_URL"),
        ("gpt-5", "gpt-5", "set STINT_DEFAULT_MODEL"),
        ("scripted/", "scripted/demo", "write scripted/ID"),
    ],
)
def test_what_cannot_be_routed_says_what_to_configure(model_id: str, default_model: str, hint: str) -> None:
    router = Router(factories("scripted"), default_model)

    with pytest.raises(InvalidRequest, match=hint) as caught:
        router.resolve(model_id)

    assert caught.value.code == "model_not_found"
    assert caught.value.param == "model"
