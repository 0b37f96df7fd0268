"""The templates that `make build ROLLOUT=canary` builds."""

import json
from typing import Any

import pytest
from infra.local.engine import ROOT
from infra.local.translation import translate
from infra.scripts.lint_templates import VARIANTS
from infra.scripts.options import Options, Refused
from infra.scripts.published_versions import find_functions
from samtranslator.yaml_helper import yaml_parse

FUNCTIONS = {"Authorizer", "Agents", "Turns", "Responses", "Knowledge", "October", "Registry", "Admin", "Worker"}
FUNCTIONS |= {"Console", "OpenAIAgents", "Protocols"}
ALARMS = ("VersionErrors", "ApiErrorRate")

Resources = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=[{}, {"auth": "iam"}, {"start": "snapstart"}], ids=str)
def template(request: pytest.FixtureRequest) -> dict[str, Any]:
    options = Options(rollout="canary", **request.param)
    return translate(ROOT / "template.yaml", "us-east-1", change=options.apply)


@pytest.fixture(scope="module")
def alarms() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml_parse((ROOT / "infra" / "aws" / "canary.yaml").read_text())
    return parsed


def of_type(template: dict[str, Any], kind: str) -> Resources:
    return {name: each for name, each in template["Resources"].items() if each["Type"] == kind}


def test_codedeploy_moves_the_requests_of_every_function(template: dict[str, Any]) -> None:
    functions = set(of_type(template, "AWS::Lambda::Function")) - {"Sandbox"}
    aliases = of_type(template, "AWS::Lambda::Alias")
    moves = {
        alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"]["Ref"] for alias in aliases.values()
    }

    assert functions <= FUNCTIONS
    assert {alias["Properties"]["FunctionName"]["Ref"] for alias in aliases.values()} == functions
    assert (
        moves
        == set(of_type(template, "AWS::CodeDeploy::DeploymentGroup"))
        == {f"{name}DeploymentGroup" for name in functions}
    )


def test_a_tenth_of_the_requests_moves_first(template: dict[str, Any]) -> None:
    for group in of_type(template, "AWS::CodeDeploy::DeploymentGroup").values():
        name, values = group["Properties"]["DeploymentConfigName"]["Fn::Sub"]
        assert (name, values) == ("CodeDeployDefault.Lambda${ConfigName}", {"ConfigName": "Canary10Percent5Minutes"})


def test_an_alarm_moves_the_requests_back_unless_a_parameter_says_otherwise(template: dict[str, Any]) -> None:
    names = [{"Name": {"Fn::GetAtt": ["Canary", f"Outputs.{alarm}"]}} for alarm in ALARMS]

    for group in of_type(template, "AWS::CodeDeploy::DeploymentGroup").values():
        configuration = group["Properties"]["AlarmConfiguration"]["Fn::If"]
        assert configuration == ["HasCanaryAlarms", {"Enabled": True, "Alarms": names}, {}]
        assert "DEPLOYMENT_STOP_ON_ALARM" in group["Properties"]["AutoRollbackConfiguration"]["Events"]
    assert template["Resources"]["Canary"]["Condition"] == "HasCanaryAlarms"
    assert template["Parameters"]["CanaryAlarms"]["Default"] == "true"


def test_the_alarm_watches_the_new_version_of_each_function(template: dict[str, Any], alarms: dict[str, Any]) -> None:
    functions = set(of_type(template, "AWS::Lambda::Function")) - {"Authorizer", "Console", "Sandbox"}
    versions = of_type(template, "AWS::Lambda::Version")
    given = template["Resources"]["Canary"]["Properties"]["Parameters"]
    metrics = [
        metric["Fn::If"][1] if "Fn::If" in metric else metric  # of a function that a build may leave out
        for metric in alarms["Resources"]["VersionErrors"]["Properties"]["Metrics"][1:]
    ]
    watched, names = {}, find_functions(template)
    for metric in metrics:
        dimensions = {each["Name"]: each["Value"] for each in metric["MetricStat"]["Metric"]["Dimensions"]}
        name = dimensions["FunctionName"]["Fn::Sub"].removeprefix("${ApiName}-")
        assert dimensions["Resource"] == {"Fn::Sub": f"${{ApiName}}-{name}:live"}
        watched[names[name]] = dimensions["ExecutedVersion"]["Ref"]

    assert watched == {name: f"{name}Version" for name in functions}
    assert set(given) == set(alarms["Parameters"])
    for name in functions:
        version, attribute = given[f"{name}Version"]["Fn::GetAtt"]
        assert (versions[version]["Properties"]["FunctionName"], attribute) == ({"Ref": name}, "Version")


def test_alarms_exist_for_the_outputs_that_name_them(alarms: dict[str, Any]) -> None:
    assert alarms["Outputs"] == {name: {"Value": {"Ref": name}} for name in ALARMS}
    assert set(alarms["Resources"]) == set(ALARMS)


def test_routes_call_the_alias_and_still_stream(template: dict[str, Any]) -> None:
    (api,) = of_type(template, "AWS::ApiGateway::RestApi").values()
    operations = [each for path in api["Properties"]["Body"]["paths"].values() for each in path.values()]
    integrations = [each["x-amazon-apigateway-integration"] for each in operations]
    called = {
        (name, each.get("responseTransferMode"))
        for each in integrations
        for name in FUNCTIONS
        if f"${{{name}Aliaslive}}" in json.dumps(each.get("uri", ""))
    }

    streaming = {
        (name, "STREAM") for name in ("Turns", "Responses", "Knowledge", "October", "OpenAIAgents", "Protocols")
    }
    buffered = {("Agents", None), ("Registry", None), ("Admin", None)}
    assert called - {("Console", "STREAM")} == streaming | buffered
    assert not any(f"${{{name}.Arn}}" in json.dumps(api) for name in FUNCTIONS)


def test_without_the_option_there_is_no_codedeploy() -> None:
    translated = translate(ROOT / "template.yaml", "us-east-1")

    assert [each for each in translated["Resources"].values() if "CodeDeploy" in each["Type"]] == []
    assert "Canary" not in translated["Resources"]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"ROLLOUT": "slow"}, "ROLLOUT=slow is not one of: all, canary"),
        ({"ROLLOUT": "canary", "SCALE": "managed"}, "ROLLOUT=canary and SCALE=managed exclude each other"),
    ],
)
def test_rollouts_that_lambda_does_not_support_are_refused_by_name(environment: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        Options.of(environment)


def test_make_validate_lints_it() -> None:
    assert "canary" in {each.rollout for each in VARIANTS}
