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
from tests.deploy.account import NESTED, Account, Resource
from tests.deploy.conftest import Update
from tests.deploy.engine_gaps import (
    ANY_METHOD,
    CONDITIONS,
    EXEC_WRAPPER,
    METRIC_MATH,
    NESTED_ATTRIBUTES,
    NESTED_NAMES,
    NEW_API,
    QUEUE_POLLER,
    UNKNOWN_TYPES,
)
from tests.deploy.engine_process import KEPT_ATTRIBUTES, OWN_NAME, RESOLVED

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


def test_the_engine_makes_another_api_if_its_body_changes(stacks: Update) -> None:
    assert stacks.updated_resources["Api"] != stacks.resources["Api"], NEW_API


def test_the_engine_ignores_the_wrapper_of_streaming_functions(stacks: Update, account: Account) -> None:
    answer, error = account.invoke(f"{STACK}-turns", (EVENTS / "turns" / "get_turn.json").read_bytes())

    assert error == "Unhandled", EXEC_WRAPPER
    assert "FastAPI" in json.loads(answer)["errorMessage"]


def test_the_engine_does_not_resolve_the_functions_of_conditions(stacks: Update, account: Account) -> None:
    assert RESOLVED in account.engine.log, CONDITIONS


def test_the_engine_does_not_poll_the_work_queue(stacks: Update, account: Account) -> None:
    deadline = time.monotonic() + 20
    while "ESM SQS poller error" not in account.engine.log and time.monotonic() < deadline:
        time.sleep(0.2)

    assert "ESM SQS poller error" in account.engine.log, QUEUE_POLLER


class Control:
    """The data resources in a nested stack, as in the real one."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.template: Any = yaml_parse(DATA_TEMPLATE.read_text())
        account.s3.create_bucket(Bucket="templates")
        self.apply()

    def apply(self) -> None:
        """Create or update the stack with the template."""
        key = f"{time.monotonic_ns()}.json"
        self.account.s3.put_object(Bucket="templates", Key=key, Body=json.dumps(self.template).encode())
        data = {"Type": NESTED, "Properties": {"TemplateURL": f"{self.account.engine.endpoint}/templates/{key}"}}
        name = {"Value": {"Fn::GetAtt": ["Data", "Outputs.TableName"]}}
        document = {"Resources": {"Data": data}, "Outputs": {"TableName": name}}
        apply_stack(self.account.cloudformation, "control", json.dumps(document))

    @property
    def resources(self) -> dict[str, Resource]:
        return self.account.resources("control")

    def store(self, table: str) -> None:
        """Store an item in a table."""
        item = {"pk": {"S": "a"}, "sk": {"S": "b"}}
        self.account.dynamodb.put_item(TableName=self.resources[f"Data/{table}"].physical_id, Item=item)

    def stored(self, table: str) -> int:
        return len(self.account.items(self.resources[f"Data/{table}"].physical_id))


@pytest.fixture
def control(account: Account) -> Iterator[Control]:
    yield Control(account)
    account.delete("control")


def test_the_engine_forgets_the_attributes_of_unchanged_resources_of_a_nested_stack(control: Control) -> None:
    control.template["Resources"]["WorkerFailures"]["Properties"]["MessageRetentionPeriod"] = 60

    control.apply()

    assert KEPT_ATTRIBUTES in control.account.engine.log, NESTED_ATTRIBUTES


def test_the_engine_confuses_the_names_of_resources_of_a_nested_stack(control: Control) -> None:
    assert OWN_NAME in control.account.engine.log, NESTED_NAMES


@pytest.mark.parametrize(
    ("resource", "properties"),
    [
        ("Table", {"SSESpecification": {"SSEEnabled": True}}),
        ("KeysTable", {"DeletionProtectionEnabled": True}),
        ("Bucket", {"Tags": [{"Key": "a", "Value": "b"}]}),
        ("WorkQueue", {"KmsMasterKeyId": "alias/aws/sqs", "SqsManagedSseEnabled": False}),
    ],
)
def test_the_engine_updates_in_place_what_needs_no_replacement(
    control: Control, resource: str, properties: dict[str, Any]
) -> None:
    for table in TABLES:
        control.store(table)
    before = control.resources
    control.template["Resources"][resource]["Properties"] |= properties

    control.apply()

    assert control.resources == before
    assert [control.stored(table) for table in TABLES] == [1, 1]


@pytest.mark.parametrize("table", TABLES)
def test_the_engine_replaces_a_table_whose_key_changes(control: Control, table: str) -> None:
    """The new table has the name of the old one, so only its items show that it is another."""
    control.store(table)
    properties = control.template["Resources"][table]["Properties"]
    properties["KeySchema"] = properties["KeySchema"][:1]
    properties["AttributeDefinitions"] = properties["AttributeDefinitions"][:1]

    control.apply()

    assert control.stored(table) == 0


def test_the_engine_replaces_a_bucket_whose_name_changes(control: Control) -> None:
    before = control.resources["Data/Bucket"]
    control.template["Resources"]["Bucket"]["Properties"]["BucketName"] = "another"

    control.apply()

    assert control.resources["Data/Bucket"] != before
