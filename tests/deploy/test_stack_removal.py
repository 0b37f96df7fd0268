"""The deletion of a stack as docs/production.md describes it, and what remains."""

import re

import pytest
from botocore.exceptions import ClientError
from infra.local.engine import ROOT
from infra.local.intrinsics import STACK
from tests.deploy.account import Account
from tests.deploy.conftest import Removal, Update
from tests.deploy.contents import Contents

KEPT = {"Data", "ApiLogWriter", "ApiLogRoleSetting"}
KEPT_DATA = {"Table", "KeysTable", "Bucket"}


def test_the_deletion_of_a_stack_keeps_its_data_and_the_role_of_access_logs(removed: Removal, account: Account) -> None:
    with pytest.raises(ClientError, match="does not exist"):
        account.status(STACK)

    assert removed.kept == KEPT
    assert removed.data_status.endswith("_COMPLETE")


def test_the_deletion_of_the_nested_stack_keeps_the_tables_and_the_bucket(removed: Removal, account: Account) -> None:
    assert removed.kept_of_data == KEPT_DATA
    assert Contents.at(account, removed.contents.stores) == removed.contents


def test_nothing_else_of_the_stack_remains(removed: Removal, stacks: Update, account: Account) -> None:
    log_groups = account.names_of("logs", "describe_log_groups", "logGroups", "logGroupName")
    queues = account.names_of("sqs", "list_queues", "QueueUrls")
    functions = account.names_of("lambda", "list_functions", "Functions", "FunctionName")
    roles = account.names_of("iam", "list_roles", "Roles", "RoleName")
    apis = account.names_of("apigateway", "get_rest_apis", "items", "id")
    buses = account.names_of("events", "list_event_buses", "EventBuses", "Name")
    groups = account.names_of("scheduler", "list_schedule_groups", "ScheduleGroups", "Name")
    left = {*log_groups, *queues, *functions, *roles, *apis, *buses, *groups}

    gone = {one.physical_id for one in stacks.updated_resources.values()}
    assert left & gone == {stacks.updated_resources["ApiLogWriter"].physical_id}
    assert len(left) > 20  # those of the other stack


def test_the_documentation_names_what_remains() -> None:
    text = (ROOT / "docs" / "production.md").read_text().split("## Removal")[1]
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)

    for remaining in ("nested stack", "table and table of keys", "bucket", "role `ApiLogWriter`"):
        assert any(row.startswith(remaining) for row in rows)
