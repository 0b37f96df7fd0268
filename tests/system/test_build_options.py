"""The templates that `make build START=... SCALE=...` builds."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from infra.local.engine import ROOT
from infra.local.translation import translate
from infra.scripts.lint_templates import VARIANTS
from infra.scripts.options import SCALES, STARTS, VARIANT, Options, Refused, choose_template

FUNCTIONS = {"Authorizer", "Agents", "Turns", "Responses", "Knowledge", "October", "Registry", "Admin", "Worker"}
FUNCTIONS |= {"Console", "OpenAIAgents", "Protocols"}
UNSUPPORTED = "is not one of: "
STREAMING = {"Turns", "Responses", "Knowledge", "October", "OpenAIAgents", "Protocols"}

Resources = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the template alone, in which variants are written."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "template.yaml").write_text((ROOT / "template.yaml").read_text())
    (folder / "infra").symlink_to(ROOT / "infra")
    return folder


def translate_options(root: Path, **environment: str) -> Resources:
    translated = translate(choose_template(Options.of(environment), root), "us-east-1")
    resources: Resources = translated["Resources"]
    return resources


@pytest.fixture(scope="module")
def snapstart(root: Path) -> Resources:
    return translate_options(root, START="snapstart", RUNTIME="python3.13")


@pytest.fixture(scope="module")
def managed(root: Path) -> Resources:
    return translate_options(root, SCALE="managed", RUNTIME="python3.13")


def properties(resources: Resources, kind: str) -> dict[str, Any]:
    return {name: each.get("Properties", {}) for name, each in resources.items() if each["Type"] == kind}


@pytest.mark.parametrize("environment", [{}, {"START": "", "SCALE": ""}, {"START": "plain", "SCALE": "ondemand"}])
def test_without_options_the_template_itself_is_built(environment: Mapping[str, str]) -> None:
    assert choose_template(Options.of(environment)) == ROOT / "template.yaml"


def test_a_variant_is_beside_the_template_whose_relative_paths_it_has(root: Path) -> None:
    variant = choose_template(Options.of({"START": "snapstart"}), root)

    original = yaml.load((ROOT / "template.yaml").read_text(), yaml.BaseLoader)["Resources"]
    code = {name: each["Properties"]["CodeUri"] for name, each in original.items() if "CodeUri" in each["Properties"]}
    built = json.loads(variant.read_text())["Resources"]
    assert variant == root / VARIANT
    assert {name: built[name]["Properties"]["CodeUri"] for name in code} == code


def test_with_snapstart_every_function_is_published_with_a_snapshot(snapstart: Resources) -> None:
    functions = properties(snapstart, "AWS::Lambda::Function")
    aliases = properties(snapstart, "AWS::Lambda::Alias")
    versions = [each for each in snapstart.values() if each["Type"] == "AWS::Lambda::Version"]

    assert set(functions) == FUNCTIONS | {"Sandbox"}
    assert {name for name, each in functions.items() if "SnapStart" in each} == FUNCTIONS
    assert all(functions[name]["SnapStart"] == {"ApplyOn": "PublishedVersions"} for name in FUNCTIONS)
    assert {alias["FunctionName"]["Ref"] for alias in aliases.values()} == FUNCTIONS
    assert {each["DeletionPolicy"] for each in versions} == {"Delete"}
    assert len(versions) == len(FUNCTIONS)


def test_with_snapstart_routes_and_event_sources_call_the_alias(snapstart: Resources) -> None:
    api = json.dumps(properties(snapstart, "AWS::ApiGateway::RestApi"))
    [source] = properties(snapstart, "AWS::Lambda::EventSourceMapping").values()
    rules = properties(snapstart, "AWS::Events::Rule").values()
    targets = [target["Arn"] for rule in rules for target in rule["Targets"]]
    [invoked] = properties(snapstart, "AWS::Lambda::EventInvokeConfig").values()
    permissions = properties(snapstart, "AWS::Lambda::Permission").values()

    assert all(f"${{{name}Aliaslive}}" in api for name in FUNCTIONS - {"Worker", "Authorizer"})
    assert not any(f"${{{name}.Arn}}" in api for name in FUNCTIONS)
    assert source["FunctionName"] == {"Ref": "WorkerAliaslive"}
    assert targets == [{"Ref": "WorkerAliaslive"}] * len(rules)
    assert len(rules) == 2
    assert invoked["Qualifier"] == "live"
    assert {each["FunctionName"]["Ref"] for each in permissions} == {f"{name}Aliaslive" for name in FUNCTIONS}


def test_with_snapstart_all_routes_of_streaming_functions_still_stream(snapstart: Resources) -> None:
    [api] = properties(snapstart, "AWS::ApiGateway::RestApi").values()
    integrations = [
        method["x-amazon-apigateway-integration"]
        for path in api["Body"]["paths"].values()
        for method in path.values()
        if "x-amazon-apigateway-integration" in method
    ]

    modes = {
        (name, each.get("responseTransferMode"))
        for each in integrations
        for name in FUNCTIONS
        if f"{{{name}Alias" in json.dumps(each.get("uri", ""))
    }
    streams = {(name, "STREAM") for name in (*STREAMING, "Console")}
    assert modes == streams | {("Agents", None), ("Registry", None), ("Admin", None)}


def test_on_managed_instances_the_streaming_functions_use_the_capacity(managed: Resources) -> None:
    functions = properties(managed, "AWS::Lambda::Function")
    [(capacity, provider)] = properties(managed, "AWS::Lambda::CapacityProvider").items()

    assert {name for name, each in functions.items() if "CapacityProviderConfig" in each} == STREAMING
    for name in STREAMING:
        [config] = functions[name]["CapacityProviderConfig"].values()
        assert config["CapacityProviderArn"] == {"Fn::GetAtt": [capacity, "Arn"]}
        assert config["PerExecutionEnvironmentMaxConcurrency"] == {"Ref": f"{name}Concurrency"}
        assert functions[name]["MemorySize"] == 2048
        assert "ReservedConcurrentExecutions" not in functions[name]
        assert functions[name]["LoggingConfig"]["LogFormat"] == "JSON"
    assert provider["VpcConfig"]["SubnetIds"] == {"Ref": "SubnetIds"}
    assert provider["CapacityProviderScalingConfig"]["MaxVCpuCount"] == {"Ref": "MaxVCpuCount"}


def test_on_managed_instances_the_routes_of_these_functions_call_the_alias(managed: Resources) -> None:
    api = json.dumps(properties(managed, "AWS::ApiGateway::RestApi"))

    assert {name for name in FUNCTIONS if f"${{{name}Aliaslive}}" in api} == STREAMING
    assert {name for name in FUNCTIONS if f"${{{name}.Arn}}" in api} == {"Agents", "Registry", "Admin", "Console"}


def test_every_variant_is_linted_by_make_validate() -> None:
    assert {each.start for each in VARIANTS} == set(STARTS)
    assert {each.scale for each in VARIANTS} == set(SCALES)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"START": "snap"}, "START=snap is not one of: plain, snapstart"),
        ({"SCALE": "up"}, "SCALE=up is not one of: ondemand, managed"),
        ({"START": "snapstart", "SCALE": "managed"}, "START=snapstart and SCALE=managed exclude each other"),
        ({"START": "snapstart", "RUNTIME": "python3.11"}, "START=snapstart needs Python 3.12 or newer.*python3.11"),
        ({"SCALE": "managed", "RUNTIME": "python3.12"}, "SCALE=managed needs Python 3.13 or newer.*python3.12"),
        ({"START": "snapstart", "RUNTIME": "python3.9"}, "START=snapstart needs Python 3.12 or newer.*python3.9"),
        ({"START": "snapstart", "RUNTIME": "python3.15"}, f"^RUNTIME=python3.15 {UNSUPPORTED}python3.12, python3.13"),
        ({"RUNTIME": "python3.9"}, f"^RUNTIME=python3.9 {UNSUPPORTED}python3.11, python3.12, python3.13, python3.14$"),
        ({"RUNTIME": "pypy"}, f"^RUNTIME=pypy {UNSUPPORTED}"),
        ({"RUNTIME": "python3.15"}, f"^RUNTIME=python3.15 {UNSUPPORTED}"),
        ({"AUTH": "iam", "RUNTIME": "python3.9"}, f"^RUNTIME=python3.9 {UNSUPPORTED}python3.11"),
        ({"START": "snapstart", "RUNTIME": "pypy"}, "START=snapstart needs Python 3.12 or newer.*pypy"),
    ],
)
def test_what_lambda_does_not_support_is_refused_by_name(
    root: Path, environment: Mapping[str, str], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        choose_template(Options.of(environment), root)


@pytest.mark.parametrize("version", ["3.11", "3.14"])
def test_the_template_itself_is_built_for_a_supported_runtime(version: str) -> None:
    assert choose_template(Options.of({"RUNTIME": f"python{version}"})) == ROOT / "template.yaml"


def test_a_refusal_ends_make_build_with_its_message() -> None:
    command = [sys.executable, "-m", "infra.scripts.options"]
    environment = {"START": "snapstart", "RUNTIME": "python3.11", "PYTHONPATH": str(ROOT)}

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("stint: START=snapstart needs Python 3.12 or newer")


@pytest.mark.parametrize(("start", "scale", "oldest"), [("snapstart", "", "3.12"), ("", "managed", "3.13")])
def test_a_variant_cannot_be_deployed_for_an_older_runtime(root: Path, start: str, scale: str, oldest: str) -> None:
    variant = choose_template(Options.of({"START": start, "SCALE": scale}), root)

    allowed = json.loads(variant.read_text())["Parameters"]["Runtime"]["AllowedValues"]
    assert allowed[0] == f"python{oldest}"
