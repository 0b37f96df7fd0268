"""Parameters of the template for operators: their groups, the key of stored data, alarms and traces."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from infra.local.intrinsics import NO_VALUE, Resolver, pseudo_parameters
from infra.scripts.options import Options
from infra.scripts.published_versions import find_functions
from samtranslator.yaml_helper import yaml_parse

from stint.observability import Observation

ROOT = Path(__file__).parents[2]
KEY = "arn:aws:kms:eu-west-1:123456789012:key/k"
VARIANTS = (
    Options(),
    *(Options(auth=auth) for auth in ("iam", "none")),
    *(Options(start="snapstart"), Options(scale="managed"), Options(rollout="canary")),
)


def raw_template() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())
    return parsed


def template(options: Options = Options()) -> dict[str, Any]:  # noqa: B008 - a constant
    parsed = raw_template()
    options.apply(parsed)
    return parsed


def nested(name: str) -> dict[str, Any]:
    parsed: dict[str, Any] = yaml_parse((ROOT / "infra" / "aws" / f"{name}.yaml").read_text())
    return parsed


def resolver(parsed: dict[str, Any], **parameters: str) -> Resolver:
    """Return a resolver of what depends on parameters alone."""
    values = {name: str(each.get("Default", "")) for name, each in parsed["Parameters"].items()}
    names = {name: f"{name}-1" for name in parsed["Resources"]}
    attributes = {f"{name}.{each}": f"{name}.{each}" for name in names for each in ("Arn", "QueueName")}
    references = {**names, **pseudo_parameters("eu-west-1"), **values, **parameters}
    return Resolver(references, attributes, parsed.get("Conditions", {}))


def test_each_parameter_of_the_template_is_in_one_group_with_a_label() -> None:
    check_groups(raw_template())


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_each_parameter_of_a_variant_is_in_one_group_with_a_label(options: Options) -> None:
    check_groups(template(options))


def check_groups(parsed: dict[str, Any]) -> None:
    groups = parsed["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]

    assert sorted(grouped) == sorted(parsed["Parameters"])
    labels = [group["Label"]["default"] for group in groups]
    assert all(labels)
    assert len(set(labels)) == len(groups)


def test_a_limit_of_spending_without_a_topic_is_refused() -> None:
    parsed = template()
    rule = parsed["Rules"]["SpendAlarmHasTopic"]
    [assertion] = rule["Assertions"]
    parsed["Conditions"] |= {"Applies": rule["RuleCondition"], "Holds": assertion["Assert"]}
    limit, topic = {"DailySpendAlarm": "50"}, {"AlarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:t"}

    refused = []
    for given in ({}, limit, topic, {**limit, **topic}):
        of_parameters = resolver(parsed, **given)
        applies, holds = (of_parameters.resolve({"Fn::If": [each, True, False]}, each) for each in ("Applies", "Holds"))
        refused += [given] if applies and not holds else []

    assert refused == [limit]
    assert assertion["AssertDescription"] == "With DailySpendAlarm, set AlarmTopicArn."
    assert "with AlarmTopicArn" in parsed["Parameters"]["DailySpendAlarm"]["Description"]


def encrypted(**parameters: str) -> Iterator[tuple[str, Any]]:
    """Yield the resources that store data, with what names their key."""
    data, main = nested("data"), template()
    of_data, of_main = resolver(data, **parameters), resolver(main, **parameters)
    places = {
        "AWS::DynamoDB::Table": "SSESpecification",
        "AWS::SQS::Queue": "KmsMasterKeyId",
        "AWS::S3::Bucket": "BucketEncryption",
    }
    for name, each in data["Resources"].items():
        if place := places.get(each["Type"]):
            yield name, of_data.resolve(each["Properties"].get(place), name)
            if each["Type"] == "AWS::SQS::Queue":
                yield f"{name} by SQS", of_data.resolve(each["Properties"]["SqsManagedSseEnabled"], name)
    for name, each in main["Resources"].items():
        if each["Type"] == "AWS::Logs::LogGroup":
            yield name, of_main.resolve(each["Properties"].get("KmsKeyId"), name)


def test_one_parameter_sets_the_key_of_tables_bucket_queues_and_logs() -> None:
    found = dict(encrypted(EncryptionKeyArn=KEY))

    assert len([name for name in found if name.endswith("Logs")]) == 14
    for name, value in found.items():
        assert value is NO_VALUE if name.endswith(" by SQS") else KEY in json.dumps(value), name
    passed = {name: template()["Resources"][name]["Properties"]["Parameters"] for name in ("Data", "Isolation")}
    assert all(each["EncryptionKeyArn"] == {"Ref": "EncryptionKeyArn"} for each in passed.values())


def test_without_a_key_everything_is_encrypted_as_before() -> None:
    found = dict(encrypted())

    bucket = [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    assert found.pop("Bucket") == {"ServerSideEncryptionConfiguration": bucket}
    assert {value for name, value in found.items() if name.endswith(" by SQS")} == {True}
    assert {value for name, value in found.items() if not name.endswith(" by SQS")} == {NO_VALUE}


def test_the_role_of_tenants_may_use_the_key_and_no_other() -> None:
    isolation = nested("isolation")
    role = isolation["Resources"]["DataRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    keys = {"EncryptionKeyArn": KEY, "TableArn": "t", "BucketArn": "b", "FunctionRoleArns": "r"}

    granted = [
        each for each in resolver(isolation, **keys).resolve(role, "DataRole") if "kms:Decrypt" in each["Action"]
    ]
    without = resolver(isolation, **{**keys, "EncryptionKeyArn": ""}).resolve(role, "DataRole")

    assert [(each["Action"], each["Resource"]) for each in granted] == [(["kms:Decrypt", "kms:GenerateDataKey"], KEY)]
    assert not [each for each in without if "kms:Decrypt" in each["Action"]]


@pytest.mark.parametrize(("value", "mode", "stage"), [("true", "Active", True), ("false", "PassThrough", False)])
def test_one_parameter_turns_traces_on_and_off(value: str, mode: str, stage: bool) -> None:
    parsed = template()
    of_parameters = resolver(parsed, Tracing=value)

    assert of_parameters.resolve(parsed["Globals"]["Function"]["Tracing"], "Tracing") == mode
    assert of_parameters.resolve(parsed["Resources"]["Api"]["Properties"]["TracingEnabled"], "Api") is stage
    assert not [name for name, each in parsed["Resources"].items() if "Tracing" in each.get("Properties", {})]


def alarms(**parameters: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the alarms that exist with some parameters."""
    parsed = nested("alarms")
    values = {"MetricsNamespace": "Stint/shop", "StreamTimeoutSeconds": "900", "WorkerTimeoutSeconds": "600"}
    of_parameters = resolver(parsed, **{**values, **parameters})
    conditions = {name: of_parameters.resolve({"Fn::If": [name, True, False]}, name) for name in parsed["Conditions"]}
    shown = {name: each for name, each in parsed["Resources"].items() if conditions.get(each.get("Condition"), True)}
    return {name: of_parameters.resolve(each["Properties"], name) for name, each in shown.items()}


def expressions(alarm: dict[str, Any]) -> dict[str, str]:
    return {each["Id"]: each["Expression"] for each in alarm["Metrics"] if "Expression" in each}


def test_durations_are_compared_with_the_timeouts_of_the_functions() -> None:
    parsed = template()
    functions = find_functions(parsed).items()
    timeouts = {folder: parsed["Resources"][name]["Properties"]["Timeout"] for folder, name in functions}
    found = expressions(alarms()["FunctionDurations"])

    assert {timeouts[name] for name in re.findall("agents|registry|admin", found["buffered"])} == {29}
    assert found["buffered"].endswith(" / 290")  # milliseconds, as percent of 29 s
    streams = re.findall("turns|responses|knowledge|october|openai_agents", found["streams"])
    assert {json.dumps(timeouts[name]) for name in streams} == {'{"Ref": "StreamTimeoutSeconds"}'}
    assert (len(streams), found["streams"].endswith(" / (900 * 10)")) == (5, True)
    assert (found["work"], timeouts["worker"]) == ("worker / (600 * 10)", {"Ref": "WorkerTimeoutSeconds"})
    assert (found["code"], timeouts["sandbox"]) == ("sandbox / 1500", 150)


def test_the_oldest_message_may_wait_for_a_worker_that_takes_its_whole_time() -> None:
    alarm = alarms()["OldestMessage"]

    assert (expressions(alarm), alarm["Threshold"]) == ({"waiting": "age - 600"}, 300)


@pytest.mark.parametrize(("alarm", "metric"), [("ModelErrors", "ModelErrors"), ("DailySpend", "Dollars")])
def test_alarms_about_models_sum_metrics_that_functions_write(alarm: str, metric: str) -> None:
    found = [
        each["MetricStat"]["Metric"] for each in alarms(DailySpendAlarm="50")[alarm]["Metrics"] if "MetricStat" in each
    ]
    observation = Observation("r", "turns")
    observation.totals.dollars, observation.totals.model_errors = 0.5, 1
    observation.count_totals()

    assert metric in observation.metrics.to_document({})
    assert {(each["Namespace"], each["MetricName"]) for each in found} == {("Stint/shop", metric)}
    services = {each["Dimensions"][0]["Value"] for each in found}
    assert services == {
        "turns",
        "responses",
        "knowledge",
        "october",
        "openai_agents",
        "protocols",
        "registry",
        "worker",
    }
    assert {each["Dimensions"][0]["Name"] for each in found} == {"service"}


def test_spending_has_an_alarm_only_with_a_limit() -> None:
    assert "DailySpend" not in alarms()
    assert alarms(DailySpendAlarm="50")["DailySpend"]["Threshold"] == "50"


@pytest.mark.parametrize("name", sorted(alarms(DailySpendAlarm="1")))
def test_an_alarm_has_no_more_metrics_than_cloudwatch_allows(name: str) -> None:
    metrics = alarms(DailySpendAlarm="1", AuthorizerName="a")[name]["Metrics"]

    assert len([each for each in metrics if "MetricStat" in each]) <= 10
    assert len(metrics) <= 20
    assert len([each for each in metrics if each["ReturnData"]]) == 1


def test_an_sqs_event_would_give_the_worker_all_queues_of_the_account() -> None:
    parsed = template()
    events = [each["Properties"].get("Events", {}) for each in parsed["Resources"].values() if "Properties" in each]
    source = parsed["Resources"]["WorkerWork"]

    assert "SQS" not in {event["Type"] for named in events for event in named.values()}
    assert (source["Type"], source["Properties"]["FunctionName"]) == (
        "AWS::Lambda::EventSourceMapping",
        {"Ref": "Worker"},
    )
    published = template(Options(start="snapstart"))["Resources"]["WorkerWork"]
    assert published["Properties"]["FunctionName"] == {"Ref": "Worker.Alias"}
