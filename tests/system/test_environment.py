from typing import Any

import boto3
import pytest
from infra.local.engine import SERVICES, RunningEngine
from infra.local.environment import (
    check_profile,
    has_credentials,
    local_region,
    model_note,
    parameter_overrides,
    service_environment,
    shell_region,
    shell_settings,
)
from infra.local.errors import LocalCloudError

ENGINE = RunningEngine("http://127.0.0.1:1", "eu-west-1", {}).environment()
LAMBDA = "http://127.0.0.1:2"


@pytest.mark.parametrize(
    ("shell", "model"),
    [
        ({}, "scripted/demo"),
        ({"OPENAI_API_KEY": "k"}, "openai/gpt-4.1-mini"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1/v1"}, "openai/gpt-4.1-mini"),
        ({"OPENAI_API_KEY": "k", "STINT_DEFAULT_MODEL": "bedrock/x"}, "bedrock/x"),
        ({"STINT_DEFAULT_MODEL": ""}, "scripted/demo"),
        ({"OPENAI_API_KEY": "k", "STINT_DEFAULT_MODEL": ""}, "openai/gpt-4.1-mini"),
    ],
)
def test_the_model_is_one_that_can_be_reached(shell: dict[str, str], model: str) -> None:
    assert shell_settings(shell)["STINT_DEFAULT_MODEL"] == model


@pytest.mark.parametrize("model", ["llama3.2", "scripted/", "azure/gpt", "/x"])
def test_a_model_that_no_provider_serves_is_refused_at_the_start(model: str) -> None:
    with pytest.raises(
        LocalCloudError, match=r"STINT_DEFAULT_MODEL is .*: add a prefix .*: openai/, bedrock/, scripted/"
    ):
        shell_settings({"STINT_DEFAULT_MODEL": model})


def test_a_profile_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")

    with pytest.raises(LocalCloudError, match="AWS_PROFILE is 'nope', but your AWS configuration has no such profile"):
        check_profile({"AWS_PROFILE": "nope"})
    check_profile({})


def test_only_settings_reach_the_functions() -> None:
    shell = {
        "STINT_MODELS": "a",
        "AWS_PROFILE": "p",
        "HOME": "/h",
        "https_proxy": "x",
        "EDITOR": "vi",
        "PYTHONPATH": ".",
    }

    settings = shell_settings(shell)

    made = {"STINT_DEFAULT_MODEL", "STINT_EMBEDDING_MODEL", "STINT_SCRIPTED_MODELS", "STINT_ALLOWED_HOSTS"} | {
        "STINT_IMAGE_MODEL",
        "STINT_KEY_LAYOUT",
        "STINT_VECTOR_INDEX",
        "STINT_AUTH",
        "SANDBOX_NAMESPACES",
    }
    assert set(settings) == {"STINT_MODELS", "AWS_PROFILE", "HOME", "https_proxy", *made}


def test_loopback_may_be_reached_unless_the_shell_says_what_may() -> None:
    assert shell_settings({})["STINT_ALLOWED_HOSTS"] == "127.0.0.0/8,::1/128"
    assert shell_settings({"STINT_ALLOWED_HOSTS": ""})["STINT_ALLOWED_HOSTS"] == ""


def test_functions_find_the_engine_and_the_lambda_service() -> None:
    environment = service_environment(ENGINE, LAMBDA, {}, signs=False)

    for service in ("DYNAMODB", "S3", "SQS", "EVENTBRIDGE", "SECRETS_MANAGER"):
        assert environment[f"AWS_ENDPOINT_URL_{service}"] == "http://127.0.0.1:1"
    assert environment["AWS_ENDPOINT_URL_LAMBDA"] == LAMBDA
    assert environment["AWS_REGION"] == "eu-west-1"
    assert environment["AWS_ACCESS_KEY_ID"]
    assert "AWS_ENDPOINT_URL" not in environment


def test_every_client_of_a_function_finds_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in service_environment(ENGINE, LAMBDA, {}, signs=False).items():
        monkeypatch.setenv(name, value)

    for service in SERVICES:
        make: Any = boto3.client
        client = make(service)
        assert client.meta.endpoint_url == "http://127.0.0.1:1"
        client.close()


def test_an_endpoint_that_the_shell_names_wins() -> None:
    settings = {"AWS_ENDPOINT_URL_DYNAMODB": "http://other"}

    environment = service_environment(ENGINE, LAMBDA, settings, signs=False)

    assert environment["AWS_ENDPOINT_URL_DYNAMODB"] == "http://other"
    assert environment["AWS_ENDPOINT_URL_S3"] == "http://127.0.0.1:1"


def test_an_endpoint_for_every_service_replaces_the_engine_but_not_lambda() -> None:
    environment = service_environment(ENGINE, LAMBDA, {"AWS_ENDPOINT_URL": "http://other"}, signs=False)

    assert environment["AWS_ENDPOINT_URL"] == "http://other"
    assert environment["AWS_ENDPOINT_URL_LAMBDA"] == LAMBDA
    assert "AWS_ENDPOINT_URL_DYNAMODB" not in environment


def test_clients_use_the_region_of_the_engine() -> None:
    shell = {"AWS_REGION": "x", "AWS_DEFAULT_REGION": "y"}

    environment = service_environment(ENGINE, LAMBDA, shell, signs=False)

    assert environment["AWS_REGION"] == environment["AWS_DEFAULT_REGION"] == "eu-west-1"


def test_the_local_cloud_has_one_region_whatever_the_shell_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")

    assert local_region({}) == local_region({"AWS_REGION": "eu-central-1"}) == "us-east-1"
    assert shell_region({}) == "eu-west-1"


def test_a_store_that_the_shell_names_has_the_region_of_the_shell() -> None:
    shell = {"AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL_DYNAMODB": "http://other"}

    assert local_region(shell) == "eu-central-1"


@pytest.mark.parametrize(
    ("shell", "note"),
    [
        ({}, "not a language model"),
        ({"STINT_DEFAULT_MODEL": "scripted/x", "OPENAI_API_KEY": "k"}, "selects it, although OPENAI_API_KEY is set"),
        ({"OPENAI_API_KEY": "k"}, "because OPENAI_API_KEY is set"),
        ({"OPENAI_BASE_URL": "u", "OPENAI_API_KEY": "k"}, "because OPENAI_BASE_URL is set"),
        ({"STINT_DEFAULT_MODEL": "openai/x", "OPENAI_API_KEY": "k"}, ""),
    ],
)
def test_what_chose_the_default_model_is_told(shell: dict[str, str], note: str) -> None:
    assert note in model_note(shell)
    assert bool(note) == bool(model_note(shell))


def test_real_credentials_are_not_covered_by_the_engines() -> None:
    environment = service_environment(ENGINE, LAMBDA, {"AWS_PROFILE": "p"}, signs=True)

    assert environment["AWS_PROFILE"] == "p"
    assert "AWS_ACCESS_KEY_ID" not in environment


def test_loopback_never_goes_through_a_proxy() -> None:
    environment = service_environment(ENGINE, LAMBDA, {"no_proxy": "intern"}, signs=False)

    assert environment["NO_PROXY"] == environment["no_proxy"] == "intern,127.0.0.1,localhost"


def test_credentials_are_found_without_asking_the_metadata_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    without = has_credentials()
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")

    assert not without
    assert has_credentials()


def test_a_variable_of_the_shell_sets_the_parameter_behind_it() -> None:
    variables = {"STINT_CORS_ORIGIN": {"Ref": "CorsOrigin"}, "STINT_TABLE": {"Fn::GetAtt": ["Data", "Outputs.T"]}}
    function = {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": variables}}}
    translated = {"Parameters": {"CorsOrigin": {}}, "Resources": {"Agents": function}}

    overrides = parameter_overrides(translated, {"STINT_CORS_ORIGIN": "*", "STINT_TABLE": "t", "STINT_OTHER": "o"})

    assert overrides == {"CorsOrigin": "*"}


@pytest.mark.parametrize(("shell", "scripted"), [({}, "true"), ({"STINT_SCRIPTED_MODELS": "false"}, "false")])
def test_the_local_cloud_has_the_scripted_models_unless_the_shell_says_no(shell: dict[str, str], scripted: str) -> None:
    assert shell_settings(shell)["STINT_SCRIPTED_MODELS"] == scripted


def test_no_shell_opens_the_ports_of_the_local_cloud() -> None:
    environment = service_environment(ENGINE, LAMBDA, {"STINT_REFUSED_PORTS": "1-2"}, signs=False)

    assert environment["STINT_REFUSED_PORTS"] == "23100-23999"


def test_keys_of_tools_reach_the_functions_and_other_variables_do_not() -> None:
    keys = {"TAVILY_SEARCH_API_KEY": "t", "BRAVE_SEARCH_API_KEY": "b", "WOLFRAM_ALPHA_API_KEY": "w"}

    settings = shell_settings({**keys, "EDITOR": "vi"})

    assert keys.items() <= settings.items()
    assert "EDITOR" not in settings


def test_a_named_provider_serves_the_default_model() -> None:
    shell = {"STINT_DEFAULT_MODEL": "lab/llama", "STINT_PROVIDERS": '[{"id": "lab", "base_url": "http://a/v1"}]'}

    assert shell_settings(shell)["STINT_DEFAULT_MODEL"] == "lab/llama"
    with pytest.raises(LocalCloudError):
        shell_settings(shell | {"STINT_PROVIDERS": "[1]"})


def test_a_malformed_setting_stops_the_start_with_its_reason() -> None:
    with pytest.raises(LocalCloudError, match=r"STINT_PRICES is malformed: openai/\*\.output: Field required"):
        shell_settings({"STINT_PRICES": '{"openai/*": {"input": 1}}'})


def test_a_malformed_provider_stops_the_start_with_its_field() -> None:
    named = '[{"id": "lab", "base_url": "http://a/v1", "api": "completions"}]'

    with pytest.raises(LocalCloudError, match=r"STINT_PROVIDERS is malformed: 0\.api"):
        shell_settings({"STINT_PROVIDERS": named})
