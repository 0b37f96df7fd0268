"""Stage throttling, and the names of two stacks in one account."""

import json
from typing import Any

import pytest
from infra.local.engine import ROOT
from infra.local.translation import translate
from samtranslator.yaml_helper import yaml_parse

NESTED = sorted((ROOT / "infra" / "aws").glob("*.yaml"))
NAMES = ["FunctionName", "LayerName", "LogGroupName", "DashboardName", "AlarmName", "TableName", "BucketName"]
NAMES += ["QueueName", "RoleName", "ManagedPolicyName", "PolicyName", "VectorBucketName", "RuleName", "Name"]
"""Properties that name a resource in its account and region."""

NAMED = {
    "AWS::Lambda::Function",
    "AWS::Lambda::LayerVersion",
    "AWS::Logs::LogGroup",
    "AWS::CloudWatch::Dashboard",
    "AWS::CloudWatch::Alarm",
    "AWS::DynamoDB::Table",
    "AWS::S3::Bucket",
    "AWS::S3Vectors::VectorBucket",
    "AWS::SQS::Queue",
    "AWS::IAM::Role",
    "AWS::IAM::ManagedPolicy",
    "AWS::Events::EventBus",
    "AWS::Events::Rule",
    "AWS::ApiGateway::RestApi",
    "AWS::SecretsManager::Secret",
    "AWS::KMS::Alias",
}
OF_THE_STACK = ("${AWS::StackName}", "${ApiName}", '{"Ref": "AWS::StackName"}')
"""The name of the stack, which is the parameter ApiName of nested stacks."""


@pytest.fixture(scope="module")
def translated() -> dict[str, Any]:
    return translate(ROOT / "template.yaml", "us-east-1")


@pytest.mark.parametrize(
    ("parameter", "condition"), [("ThrottlingRateLimit", "LimitsRate"), ("ThrottlingBurstLimit", "LimitsBurst")]
)
def test_a_parameter_limits_all_requests_of_the_stage(
    translated: dict[str, Any], parameter: str, condition: str
) -> None:
    (stage,) = [each for each in translated["Resources"].values() if each["Type"] == "AWS::ApiGateway::Stage"]
    settings, *of_pages = stage["Properties"]["MethodSettings"]

    assert (settings["HttpMethod"], settings["ResourcePath"]) == ("*", "/*")
    assert {each["ResourcePath"] for each in of_pages} == {"/", "/console", "/console/{proxy+}"}
    assert settings[parameter] == {"Fn::If": [condition, {"Ref": parameter}, {"Ref": "AWS::NoValue"}]}
    assert translated["Conditions"][condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]}
    assert translated["Parameters"][parameter]["Default"] == ""


def test_two_stacks_of_an_account_share_no_name(translated: dict[str, Any]) -> None:
    """A resource without a name gets one of CloudFormation, which is unique."""
    templates = [translated, *(yaml_parse(path.read_text()) for path in NESTED)]
    resources = [each for template in templates for each in template["Resources"].values() if each["Type"] in NAMED]
    names = [json.dumps(each["Properties"][name]) for each in resources for name in NAMES if name in each["Properties"]]

    assert len(names) > 20
    assert [name for name in names if not any(part in name for part in OF_THE_STACK)] == []


def test_two_stacks_of_an_account_share_no_metrics(translated: dict[str, Any]) -> None:
    functions = {
        name: each for name, each in translated["Resources"].items() if each["Type"] == "AWS::Lambda::Function"
    }
    variables = {name: each["Properties"]["Environment"]["Variables"] for name, each in functions.items()}
    del variables["Sandbox"], variables["Console"]  # they have no metrics of their own

    for each in variables.values():
        assert each["POWERTOOLS_METRICS_NAMESPACE"] == {"Fn::Sub": "Stint/${AWS::StackName}"}
