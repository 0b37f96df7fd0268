"""The providers that the API lists are those that adapters are made for."""

from stint.adapters import make_router, make_shield_providers, make_tool_providers
from stint.bootstrap import providers
from stint.models.routing import HINTS
from stint.settings import Settings


def listed(api: str) -> list[str]:
    return [provider.provider_id for provider in providers(Settings()).data if provider.api == api]


def test_the_providers_of_tools_and_shields_are_listed_as_they_are_made() -> None:
    assert sorted(listed("tool_runtime")) == sorted(make_tool_providers())
    assert sorted(listed("safety")) == sorted(make_shield_providers())


def test_every_listed_provider_of_models_has_an_adapter() -> None:
    router = make_router()

    assert [router.route(f"{name}/m") for name in listed("inference")] == [(name, "m") for name in listed("inference")]
    assert set(listed("inference")) == set(HINTS)
