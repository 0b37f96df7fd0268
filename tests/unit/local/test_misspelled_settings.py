"""`make run` names the setting that a variable of the shell misspells."""

import pytest
from infra.local.environment import find_misspelled

from stint.settings import Settings, variable_of


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("STINT_LEASE_SECOND", "STINT_LEASE_SECONDS"),
        ("STINT_DEFUALT_MODEL", "STINT_DEFAULT_MODEL"),
        ("OPENAI_BASEURL", "OPENAI_BASE_URL"),
    ],
)
def test_a_misspelled_setting_is_named_with_the_one_that_is_meant(name: str, meant: str) -> None:
    assert find_misspelled({name: "1"}) == [f"Warning: {name} has no effect. Did you mean {meant}?"]


def test_settings_and_other_variables_are_no_misspellings() -> None:
    settings = {variable_of(name): "1" for name in Settings.model_fields}
    others = (
        "STINT_API_KEY",
        "STINT_URL",
        "STINT_CONCURRENCY",
        "STREAM_ROUTE_TIMEOUT_SECONDS",
        "OPENAI_ORG_ID",
        "HOME",
    )

    assert find_misspelled(settings | dict.fromkeys(others, "1")) == []


def test_a_variable_that_a_model_server_names_has_an_effect() -> None:
    providers = '[{"id": "b", "base_url": "https://b.example/v1", "key_variable": "STINT_MODEL"}]'

    assert find_misspelled({"STINT_PROVIDERS": providers, "STINT_MODEL": "sk"}) == []
