"""The settings, read from an environment."""

import re
from datetime import date

import pytest
from pydantic import ValidationError

from stint.bootstrap.openai import OpenAIComposition
from stint.bootstrap.restore import start
from stint.settings import Settings, SettingsError, read_settings, variable_of


def test_each_setting_is_read_from_its_own_variable() -> None:
    texts = {name: "x" for name, field in Settings.model_fields.items() if field.annotation is str}
    for name in ("refused_ports", "oidc_issuer", "oidc_algorithms", "oidc_tenant", "prices", "tenants"):
        texts.pop(name)
    for name in ("otlp_endpoint", "otlp_traces_endpoint", "schedule_group"):
        texts.pop(name)

    settings = read_settings({variable_of(name): f"value of {name}" for name in texts})

    assert {name: getattr(settings, name) for name in texts} == {name: f"value of {name}" for name in texts}


def test_values_are_parsed_to_their_types() -> None:
    settings = read_settings(
        {
            "STINT_SCRIPTED_MODELS": "true",
            "STINT_LEASE_SECONDS": "1.5",
            "STINT_HISTORY_BYTES": "1000",
            "STINT_UNSIGNED_CONTENT_UNTIL": "2026-11-22",
            "STINT_WEB_SEARCH": "brave",
            "OPENAI_API_KEY": "sk-test",
        }
    )

    assert (settings.scripted_models, settings.lease_seconds, settings.history_bytes) == (True, 1.5, 1000)
    assert (settings.unsigned_content_until, settings.web_search) == (date(2026, 11, 22), "brave")
    assert settings.openai_api_key.get_secret_value() == "sk-test"


def test_an_empty_variable_means_the_default() -> None:
    empty = {variable_of(name): "" for name in Settings.model_fields}

    assert read_settings(empty) == Settings()


@pytest.mark.parametrize(
    ("memory", "bound"),
    [("", 16_000_000), ("128", 4_000_000), ("256", 8_000_000), ("512", 16_000_000), ("10240", 16_000_000)],
)
def test_caches_are_bound_by_the_memory_of_the_function(memory: str, bound: int) -> None:
    environment = {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": memory}
    composition = OpenAIComposition(lambda: read_settings(environment))

    assert (composition.transcripts.max_bytes, composition.links.max_bytes) == (bound, bound)


@pytest.mark.parametrize("explicit", ["0", "9000000"])
def test_the_bound_of_transcripts_can_be_set(explicit: str) -> None:
    environment = {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128", "STINT_TRANSCRIPT_CACHE_BYTES": explicit}
    composition = OpenAIComposition(lambda: read_settings(environment))

    assert (composition.transcripts.max_bytes, composition.links.max_bytes) == (int(explicit), 4_000_000)


def test_other_variables_are_ignored() -> None:
    assert read_settings({"STINT_UNKNOWN": "1", "PATH": "/bin", "LEASE_SECONDS": "2"}) == Settings()


def test_an_error_names_all_invalid_variables_and_contains_no_value() -> None:
    environment = {
        "STINT_SCRIPTED_WORD_SECONDS": "hunter2",
        "STINT_WEB_SEARCH": "hunter2",
        "STINT_LEASE_SECONDS": "0",
        "STINT_REFUSED_PORTS": "hunter2",
        "OPENAI_API_KEY": "hunter2",
    }

    with pytest.raises(SettingsError) as caught:
        read_settings(environment)

    assert str(caught.value) == (
        "Invalid environment variables. "
        "STINT_SCRIPTED_WORD_SECONDS: Input should be a valid number, unable to parse string as a number; "
        "STINT_WEB_SEARCH: Input should be 'tavily' or 'brave'; "
        "STINT_LEASE_SECONDS: Input should be greater than 0; "
        r"STINT_REFUSED_PORTS: String should match pattern '^(\d+-\d+)?$'"
    )
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_keys_are_not_shown() -> None:
    settings = read_settings({"OPENAI_API_KEY": "sk-hunter2", "TAVILY_SEARCH_API_KEY": "tvly-hunter2"})

    assert "hunter2" not in f"{settings!r} {settings}"


def test_settings_cannot_be_changed_and_unknown_names_are_refused() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().table = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Settings.model_validate({"tabel": "x"})


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("STINT_PRICES", "nonsense", "it must be a JSON object"),
        ("STINT_PRICES", '{"openai/*": {"input": 1}}', "openai/*.output: Field required"),
        ("STINT_PRICES", '{"openai/*": {"input": Infinity, "output": 1}}', "openai/*.input"),
        ("STINT_PRICES", '{"openai/*": {"input": NaN, "output": 1}}', "openai/*.input"),
        ("STINT_TENANTS", '{"acme": {"budgets": {"dollars_per_month": -1}}}', "acme.budgets.dollars_per_month"),
    ],
)
def test_malformed_prices_and_limits_stop_the_start_with_their_reason(variable: str, value: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} is malformed.*{re.escape(reason)}"):
        start(OpenAIComposition(lambda: read_settings({variable: value})))
