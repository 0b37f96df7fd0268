"""The role of tenants' data: its policies allow all calls of a run for the tenant itself, and none for another one."""

import asyncio
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from infra.local.engine import ROOT
from infra.local.intrinsics import Resolver, pseudo_parameters
from infra.local.translation import translate
from samtranslator.yaml_helper import yaml_parse
from tests.api.isolation.iam import Request, as_list, is_allowed
from tests.api.isolation.operations import deletions_last
from tests.api.isolation.recording import BUCKET_ARN, TABLE_ARN, VECTOR_BUCKET_ARN, RecordedCall, recording
from tests.api.isolation.tenants import list_templates, make_tenant
from tests.api.isolation.warm_process import WarmProcess

from stint.caller import set_tenant
from stint.domain.idempotency import StoredAnswer
from stint.domain.ids import new_id, new_name
from stint.retrieval.s3_vectors.client import VectorsClient
from stint.services.idempotency.requests import IdempotentRequests, OpenRequest
from stint.store.keys import SHARDS, STOP_COPIES, agents, index_owner, registrations, running, stop_copy, vector_index
from stint.store.keys import stops as stops_of

Statements = list[dict[str, Any]]
PARAMETERS = {
    "FunctionRoleArns": ["arn:aws:iam::123456789012:role/turns"],
    "TableArn": TABLE_ARN,
    "BucketArn": BUCKET_ARN,
    "VectorBucketArn": VECTOR_BUCKET_ARN,
    "EncryptionKeyArn": "",
}
DATA_ACTIONS = ("dynamodb:", "s3:", "s3vectors:")


@pytest.fixture(scope="module")
def statements() -> Statements:
    template = yaml_parse((ROOT / "infra" / "aws" / "isolation.yaml").read_text())
    resolver = Resolver({**pseudo_parameters("us-east-1"), **PARAMETERS}, {}, template["Conditions"])
    [policy] = resolver.resolve(template["Resources"]["DataRole"]["Properties"]["Policies"], "Policies")
    resolved: Statements = policy["PolicyDocument"]["Statement"]
    return resolved


@pytest.fixture(scope="module")
def calls(warm_process: WarmProcess, mcp_server: str) -> Iterator[list[RecordedCall]]:
    """The calls of a tenant that creates objects of every kind, and sends each request of the document."""
    with recording(warm_process.settings) as recorded:
        for tenant in make_tenant(warm_process, "dora", mcp_server):
            for template in sorted(list_templates(), key=deletions_last):
                template.send(tenant.http, tenant.ids_for(template, {}))
        yield [each for each in recorded if each.request.action.startswith(DATA_ACTIONS)]


def tags_of(tenant: str) -> dict[str, str]:
    return {"tenant": tenant, "index": index_owner(tenant)}


def tags_of_others(tenant: str) -> list[Mapping[str, str]]:
    """Return the tags of other tenants, of which some have similar names, and those of no tenant."""
    return [*map(tags_of, (tenant[:-1], f"{tenant}x", "default")), {}]


def without(statements: Statements, *path: str) -> Statements:
    """Return the statements without a condition."""
    changed = copy.deepcopy(statements)
    for each in changed:
        if each["Sid"] == path[0]:
            del each["Condition"][path[1]]
    return changed


def test_a_whole_run_is_recorded(calls: list[RecordedCall]) -> None:
    assert len(calls) > 300
    assert {each.request.action.partition(":")[0] for each in calls} == {"dynamodb", "s3"}
    assert {each.tenant[:5] for each in calls} == {"dora-"}


def test_all_calls_of_a_run_are_allowed(calls: list[RecordedCall], statements: Statements) -> None:
    assert [each for each in calls if not is_allowed(statements, each.request, tags_of(each.tenant))] == []


def test_no_call_of_a_run_is_allowed_for_another_tenant(calls: list[RecordedCall], statements: Statements) -> None:
    others = [(each.request, tags) for each in calls for tags in tags_of_others(each.tenant)]

    assert [each for each in others if is_allowed(statements, *each)] == []


def test_one_foreign_key_among_own_ones_refuses_a_call(statements: Statements) -> None:
    for keys in (["a#agent", "b#agent"], ["b#agent", "a#agent"], ["ab#agent"], ["a"]):
        request = Request("dynamodb:BatchGetItem", TABLE_ARN, {"dynamodb:LeadingKeys": keys})

        assert not is_allowed(statements, request, tags_of("a"))
        assert not is_allowed(without(statements, "Records", "Null"), request, tags_of("a"))


def test_a_call_without_keys_is_refused_by_the_condition_null_alone(statements: Statements) -> None:
    request = Request("dynamodb:Query", TABLE_ARN)

    assert not is_allowed(statements, request, tags_of("a"))
    assert is_allowed(without(statements, "Records", "Null"), request, tags_of("a"))


def test_the_table_is_never_scanned(statements: Statements) -> None:
    for action in ("dynamodb:Scan", "dynamodb:PartiQLSelect", "dynamodb:ExportTableToPointInTime"):
        assert not is_allowed(without(statements, "Records", "Null"), Request(action, TABLE_ARN), tags_of("a"))


def test_keys_are_listed_below_the_tenant_only(statements: Statements) -> None:
    for prefixes in ([], [""], ["kept/"], ["kept/b/"], ["kept/ab/"], ["packed/"]):
        context = {"s3:prefix": prefixes} if prefixes else {}

        assert not is_allowed(statements, Request("s3:ListBucket", BUCKET_ARN, context), tags_of("a"))


def test_indexes_are_those_of_the_tenant(statements: Statements) -> None:
    operations = [name for name in vars(VectorsClient) if not name.startswith("_")]
    actions = [f"s3vectors:{''.join(word.title() for word in name.split('_'))}" for name in operations]
    arn = f"{VECTOR_BUCKET_ARN}/index/{vector_index('a', new_name('vs'))}"

    assert len(actions) == 7
    assert all(is_allowed(statements, Request(action, arn), tags_of("a")) for action in actions)
    assert not any(is_allowed(statements, Request(action, arn), tags_of("b")) for action in actions)


def test_the_inbox_is_that_of_the_tenant_whom_its_rule_names(statements: Statements) -> None:
    request = Request("s3:GetObject", f"{BUCKET_ARN}/inbox/a.txt")

    assert is_allowed(statements, request, tags_of("default"))
    assert not is_allowed(statements, request, tags_of("a"))


ONLY_STOPS = {
    "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["*#stop", "*#stop:?"]},
    "Null": {"dynamodb:LeadingKeys": "false"},
}
"""The condition under which admins of the operator stop any tenant."""

ONLY_REQUESTS = {
    "ForAllValues:StringLike": {"dynamodb:LeadingKeys": "*#admin-idempotency:*"},
    "Null": {"dynamodb:LeadingKeys": "false"},
}
"""The condition under which the administration runs a request with an idempotency key once."""

ONLY_RUNS = {
    "ForAllValues:StringLike": {"dynamodb:LeadingKeys": "*#running.?"},
    "Null": {"dynamodb:LeadingKeys": "false"},
}
"""The condition under which admins of the operator list the running runs of any tenant."""


def test_functions_have_no_grant_on_data_of_their_own() -> None:
    translated = translate(ROOT / "template.yaml", "us-east-1")
    roles = {name: each for name, each in translated["Resources"].items() if each["Type"] == "AWS::IAM::Role"}
    granted = {
        (role, str(statement["Resource"]))
        for role, each in roles.items()
        for policy in each["Properties"].get("Policies", ())
        for statement in in_mode(policy["PolicyDocument"]["Statement"])
        if statement["Effect"] == "Allow" and statement.get("Condition") not in (ONLY_STOPS, ONLY_REQUESTS, ONLY_RUNS)
        if any(action.startswith(DATA_ACTIONS) for action in as_list(statement["Action"]))
    }

    keys = str({"Fn::GetAtt": ["Data", "Outputs.KeysTableArn"]})
    # The worker reads the key for which an automation runs.
    assert granted == {("AuthorizerRole", keys), ("AdminRole", keys), ("WorkerRole", keys)}


def test_the_administration_reaches_no_stored_answer_of_other_functions(warm_process: WarmProcess) -> None:
    role = translate(ROOT / "template.yaml", "us-east-1")["Resources"]["AdminRole"]["Properties"]
    granted = [each for policy in role["Policies"] for each in in_mode(policy["PolicyDocument"]["Statement"])]
    data = str({"Fn::GetAtt": ["Data", "Outputs.TableArn"]})
    statements = [each | {"Resource": TABLE_ARN} for each in granted if str(each["Resource"]) == data]
    tenant = f"t{new_id()[-12:]}"
    set_tenant(tenant)

    with recording(warm_process.settings) as administration:
        asyncio.run(run_once(warm_process.operator.make_services(tenant).idempotent_requests))
    with recording(warm_process.settings) as others:
        asyncio.run(run_once(warm_process.composition.make_services(tenant).idempotent_requests))

    assert len(others) == len(administration) > 4
    assert [each for each in administration if not is_allowed(statements, each.request, {})] == []
    assert [each for each in others if is_allowed(statements, each.request, {})] == []


def test_the_administration_writes_stops_and_their_copies_alone() -> None:
    role = translate(ROOT / "template.yaml", "us-east-1")["Resources"]["AdminRole"]["Properties"]
    granted = [each for policy in role["Policies"] for each in in_mode(policy["PolicyDocument"]["Statement"])]
    statements = [each | {"Resource": TABLE_ARN} for each in granted if each.get("Condition") == ONLY_STOPS]
    stops = [stops_of("a").pk, *(stop_copy("a", number).pk for number in range(STOP_COPIES))]
    others = [*("a#stop:", "a#stop:10", "a#stop.1", "a#stops", "stop", "stop:1"), agents("a"), registrations("a")]

    assert [key for key in stops if not is_allowed(statements, put_of(key), {})] == []
    assert is_allowed(statements, put_of(*stops), {})
    assert [key for key in others if is_allowed(statements, put_of(key), {})] == []
    assert not is_allowed(statements, put_of(*stops, agents("a")), {})
    assert not is_allowed(statements, put_of(), {})
    assert not is_allowed(statements, Request("dynamodb:DeleteItem", TABLE_ARN, put_of(*stops).context), {})


def test_the_administration_reads_the_list_of_running_runs_alone_and_writes_nothing_there(
    warm_process: WarmProcess,
) -> None:
    role = translate(ROOT / "template.yaml", "us-east-1")["Resources"]["AdminRole"]["Properties"]
    granted = [each for policy in role["Policies"] for each in in_mode(policy["PolicyDocument"]["Statement"])]
    statements = [each | {"Resource": TABLE_ARN} for each in granted if each.get("Condition") == ONLY_RUNS]
    tenant = f"t{new_id()[-12:]}"
    set_tenant(tenant)

    with recording(warm_process.settings) as calls:
        asyncio.run(warm_process.operator.running_runs.list_page(tenant, None, 10, lambda _: True))

    assert [each.request.action for each in calls] == ["dynamodb:Query"] * SHARDS
    assert [each for each in calls if not is_allowed(statements, each.request, {})] == []
    for pk in ("a#running:1", "a#running.10", "a#run.1", "running.1", agents("a"), stops_of("a").pk):
        assert not is_allowed(statements, query_of(pk), {})
    [shard, *_] = running("a")
    assert is_allowed(statements, query_of(shard), {})
    assert not is_allowed(statements, query_of(shard, agents("a")), {})
    assert not is_allowed(statements, put_of(shard), {})


def query_of(*keys: str) -> Request:
    return Request("dynamodb:Query", TABLE_ARN, {"dynamodb:LeadingKeys": keys})


def put_of(*keys: str) -> Request:
    return Request("dynamodb:PutItem", TABLE_ARN, {"dynamodb:LeadingKeys": keys} if keys else {})


async def run_once(requests: IdempotentRequests) -> None:
    """Run a request with an idempotency key, read its answer, and begin another one that stores nothing."""
    deadline, answer = asyncio.get_running_loop().time() + 60, StoredAnswer(status=200, headers={}, body="{}")
    for number in ("1", "2"):
        opened = await requests.acquire(number * 64, "body", deadline)
        assert isinstance(opened, OpenRequest)
        await (opened.finish(answer, (), (), ()) if number == "1" else opened.forget())
    assert await requests.acquire("1" * 64, "body", deadline) == answer


def in_mode(statements: Any) -> Iterator[dict[str, Any]]:
    """Yield the statements of a policy with TenantIsolation iam and the index s3-vectors."""
    conditions = {"IsolatesByRole": True, "GrantsS3Vectors": False}
    for each in statements if isinstance(statements, list) else [statements]:
        chosen = each
        if "Fn::If" in each:
            condition, first, second = each["Fn::If"]
            chosen = first if conditions.get(condition, True) else second
        if chosen != {"Ref": "AWS::NoValue"}:
            yield chosen
