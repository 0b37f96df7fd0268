"""The gaps of the engine: a test fails if its entry is no longer needed. And replacements, which it must make."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from infra.local.engine import DATA_TEMPLATE, apply_stack
from infra.local.errors import LocalCloudError
from infra.local.intrinsics import STACK
from infra.local.invoke import EVENTS
from samtranslator.yaml_helper import yaml_parse
from tests.deploy.account import Account
from tests.deploy.conftest import Update
from tests.deploy.engine_gaps import ANY_METHOD, EXEC_WRAPPER, METRIC_MATH, QUEUE_POLLER, UNKNOWN_TYPES

TABLES = ("Table", "KeysTable")


@pytest.mark.parametrize("kind", UNKNOWN_TYPES)
def test_the_engine_does_not_know_the_type(account: Account, kind: str) -> None:
    template = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"Only": {"Type": kind, "Properties": {}}}}

    with pytest.raises(ClientError, match="Unrecognized resource types"):
        account.cloudformation.create_stack(StackName="unknown", TemplateBody=json.dumps(template))


def test_the_engine_refuses_alarms_of_more_than_one_metric(account: Account) -> None:
    metric = {"Id": "errors", "Expression": "TIME_SERIES(1)", "ReturnData": True}
    alarm = {"ComparisonOperator": "GreaterThanThreshold", "EvaluationPeriods": 1, "Threshold": 0, "Metrics": [metric]}
    resources = {"Only": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm}}

    with pytest.raises(LocalCloudError, match="ROLLBACK_COMPLETE"):
        apply_stack(account.cloudformation, "alarms", json.dumps({"Resources": resources}))

    assert "metric math" in account.failures()[0], METRIC_MATH
    account.delete("alarms")


def test_the_engine_ignores_routes_for_any_method(stacks: Update, account: Account) -> None:
    api = stacks.updated_resources["Api"].physical_id
    client = account.engine.running.client("apigateway")

    resources = client.get_resources(restApiId=api, limit=500)["items"]

    client.close()
    methods = {each["path"]: each.get("resourceMethods", {}).keys() for each in resources}
    assert "OPTIONS" in methods["/v1/agents"]
    assert methods["/v1/agents"] & {"ANY", "POST"} == set(), ANY_METHOD


def test_the_engine_ignores_the_wrapper_of_streaming_functions(stacks: Update, account: Account) -> None:
    answer, error = account.invoke(f"{STACK}-turns", (EVENTS / "turns" / "get_turn.json").read_bytes())

    assert error == "Unhandled", EXEC_WRAPPER
    assert "FastAPI" in json.loads(answer)["errorMessage"]


def test_the_engine_does_not_poll_the_work_queue(stacks: Update, account: Account) -> None:
    deadline = time.monotonic() + 20
    while "ESM SQS poller error" not in account.engine.log and time.monotonic() < deadline:
        time.sleep(0.2)

    assert "ESM SQS poller error" in account.engine.log, QUEUE_POLLER


@pytest.fixture
def control(account: Account) -> Iterator[Any]:
    """Create the data resources in a stack of their own."""
    template = yaml_parse(DATA_TEMPLATE.read_text())
    apply_stack(account.cloudformation, "control", json.dumps(template))
    yield template
    account.delete("control")


@pytest.mark.parametrize("table", TABLES)
def test_the_engine_replaces_a_table_whose_key_changes(account: Account, control: Any, table: str) -> None:
    """The new table has the name of the old one, so only its items show that it is another."""
    name = account.resources("control")[table].physical_id
    account.dynamodb.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    properties = control["Resources"][table]["Properties"]
    properties["KeySchema"] = properties["KeySchema"][:1]
    properties["AttributeDefinitions"] = properties["AttributeDefinitions"][:1]

    apply_stack(account.cloudformation, "control", json.dumps(control))

    assert account.resources("control")[table].physical_id == name
    assert account.items(name) == []


def test_the_engine_replaces_a_bucket_whose_name_changes(account: Account, control: Any) -> None:
    before = account.resources("control")
    control["Resources"]["Bucket"]["Properties"]["BucketName"] = "another"

    apply_stack(account.cloudformation, "control", json.dumps(control))

    after = account.resources("control")
    assert "Bucket" in {name for name, one in before.items() if after[name] != one}
