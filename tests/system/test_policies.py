"""Grants of the policies: invoking functions, writing to the queue, putting events on the bus."""

import copy
import json
from typing import Any, get_args

import pytest
from infra.local.engine import ROOT
from infra.local.system import System
from infra.local.translation import translate
from samtranslator.yaml_helper import yaml_parse
from tests.system.data_outputs import OUTPUTS
from tests.system.policies import Statement, UnknownPolicy, allowed, as_list, short, statements_of

from stint.domain.notifications.completion_events import DetailType

KEYS = "Data.Outputs.KeysTableArn"
TABLE, BUCKET = "Data.Outputs.TableArn", "Data.Outputs.BucketArn"
INDEXES = "${Data.Outputs.VectorBucketArn}/index/*"
SEARCH = {"s3vectors:QueryVectors", "s3vectors:GetVectors"}
FORGET = {"s3vectors:DeleteVectors", "s3vectors:DeleteIndex"}
CHANGE = {"s3vectors:PutVectors"}
FILL = {"s3vectors:CreateIndex", "s3vectors:GetIndex", "s3vectors:PutVectors"}
QUEUE, FAILURES = "Data.Outputs.WorkQueueArn", "Data.Outputs.WorkerFailuresArn"
READ = {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"}
WRITE = {"dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
BLOBS = {"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}
OBJECTS = {f"${{{BUCKET}}}/{prefix}/*": BLOBS for prefix in ("kept", "ephemeral", "expiring", "packed", "vectors")}
INBOX = f"${{{BUCKET}}}/inbox/*"
LOGS = {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "xray:*"}
# Traces of runs are sent by the functions that run them.
TRACES = {
    "*": LOGS | {"xray:PutSpans", "xray:PutSpansForIndexing", "xray:PutTraceSegments"},
    "TracesSecretArn": {"secretsmanager:GetSecretValue"},
}
SCHEDULES = "arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule/${ScheduleGroup}/*"
POLLING = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
KEY = {"EncryptionKeyArn": {"kms:Decrypt", "kms:GenerateDataKey"}}
# The functions that run tools, and shields that ask a model.
CALLERS = {
    "TurnsRole",
    "ResponsesRole",
    "KnowledgeRole",
    "OctoberRole",
    "OpenAIAgentsRole",
    "ProtocolsRole",
    "RegistryRole",
}
CALLERS |= {"WorkerRole"}
# The functions that compose the store: its operations use the same calls in each of them.
STORING = {"AgentsRole", *CALLERS}
SANDBOX = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-sandbox"
BEDROCK = "arn:${AWS::Partition}:bedrock:"
INVOKE_MODEL = {"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"}


def arn_of_model(text: str, parameter: str) -> dict[str, Any]:
    """Return the ARN of a parameter's model, whose id follows the name of its provider."""
    model_id = {"Fn::Select": [1, {"Fn::Split": ["/", {"Fn::Sub": f"${{{parameter}}}/"}]}]}
    return {"Fn::Sub": [f"{BEDROCK}{text}/${{{parameter}Id}}", {f"{parameter}Id": model_id}]}


PROFILE = arn_of_model("*:${AWS::AccountId}:inference-profile", "DefaultModel")
MODELS_AND_TOOLS = {
    short(arn_of_model("*::foundation-model", "DefaultModel")): INVOKE_MODEL,
    short(arn_of_model("*::foundation-model", "EmbeddingModel")): INVOKE_MODEL,
    short(arn_of_model("*::foundation-model", "ImageModel")): {"bedrock:InvokeModel"},
    short(PROFILE): INVOKE_MODEL,
    f"{BEDROCK}*::foundation-model/*": {*INVOKE_MODEL, "bedrock:CountTokens"},  # invoked by allowed profiles alone
    "ModelArns": INVOKE_MODEL,
    "MantleProjectArns": {"bedrock-mantle:CreateInference"},
    "GuardrailArns": {"bedrock:ApplyGuardrail"},
    "OpenAiSecretArn": {"secretsmanager:GetSecretValue"},
    "ProviderSecretArns": {"secretsmanager:GetSecretValue"},
    "ToolgroupSecretArns": {"secretsmanager:GetSecretValue"},
    "ToolsSecretArn": {"secretsmanager:GetSecretValue"},
    "CredentialsKeyArn": {"kms:Decrypt"},
    "ToolFunctionArns": {"lambda:InvokeFunction"},
    SANDBOX: {"lambda:InvokeFunction"},
    "AgentCoreInterpreterArn": {
        f"bedrock-agentcore:{name}"
        for name in ("StartCodeInterpreterSession", "InvokeCodeInterpreter", "StopCodeInterpreterSession")
    },
}


def arn_of_setting(parameter: str, start: str) -> str:
    """Return the ARN of the object that a parameter names: what is between `://` and `?`."""
    path = {"Fn::Select": [1, {"Fn::Split": ["://", {"Fn::Sub": f"${{{parameter}}}://"}]}]}
    return short({"Fn::Sub": [f"{start}${{Path}}", {"Path": {"Fn::Select": [0, {"Fn::Split": ["?", path]}]}}]})


LARGE = ("Prices", "Tenants", "Providers", "Registrations")
IN_S3 = {arn_of_setting(name, "arn:${AWS::Partition}:s3:::") for name in LARGE}
IN_SSM = {
    arn_of_setting(name, "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter") for name in LARGE
}
SETTINGS = {
    **{arn: {"s3:GetObject", "s3:GetObjectVersion"} for arn in IN_S3},
    **{arn: {"ssm:GetParameter"} for arn in IN_SSM},
}
# Everything that any role may do. A new grant belongs here, and into the tests below that say what it is good for.
GRANTS = {
    "AuthorizerRole": {"*": LOGS, **KEY, KEYS: {"dynamodb:GetItem"}},
    "AdminRole": {
        "*": LOGS,
        **KEY,
        KEYS: READ | {"dynamodb:PutItem", "dynamodb:UpdateItem"},
        TABLE: {f"dynamodb:{name}" for name in ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")},
    },
    "AgentsRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        BUCKET: {"s3:ListBucket"},
        QUEUE: {"sqs:SendMessage"},
        "CredentialsKeyArn": {"kms:Encrypt"},  # it stores the MCP servers of agents
    },
    "TurnsRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        BUCKET: {"s3:ListBucket"},
        QUEUE: {"sqs:SendMessage"},
        INDEXES: SEARCH,
        **MODELS_AND_TOOLS,
        "CredentialsKeyArn": {"kms:Encrypt", "kms:Decrypt"},  # it renews the tokens of vaults
        **TRACES,
    },
    "ResponsesRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        BUCKET: {"s3:ListBucket"},
        QUEUE: {"sqs:SendMessage"},
        INDEXES: SEARCH | FORGET,
        **MODELS_AND_TOOLS,
        **TRACES,
    },
    "KnowledgeRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        BUCKET: {"s3:ListBucket"},
        QUEUE: {"sqs:SendMessage"},
        INDEXES: SEARCH | FORGET | CHANGE,
        **MODELS_AND_TOOLS,
    },
    "OctoberRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        BUCKET: {"s3:ListBucket"},
        QUEUE: {"sqs:SendMessage"},
        INDEXES: SEARCH | FORGET | CHANGE,
        **MODELS_AND_TOOLS,
        "CredentialsKeyArn": {"kms:Encrypt", "kms:Decrypt"},  # it renews the tokens of vaults
        **TRACES,
    },
    "OpenAIAgentsRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        BUCKET: {"s3:ListBucket"},
        QUEUE: {"sqs:SendMessage"},
        SCHEDULES: {"scheduler:CreateSchedule", "scheduler:DeleteSchedule"},
        "ScheduleRole.Arn": {"iam:PassRole"},
        INDEXES: SEARCH,
        **MODELS_AND_TOOLS,
        "CredentialsKeyArn": {"kms:Encrypt", "kms:Decrypt"},  # it renews the tokens of vaults
        **TRACES,
    },
    "ProtocolsRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        BUCKET: {"s3:ListBucket"},
        QUEUE: {"sqs:SendMessage"},
        INDEXES: SEARCH,
        **MODELS_AND_TOOLS,
        "CredentialsKeyArn": {"kms:Encrypt", "kms:Decrypt"},  # it renews the tokens of vaults
        **TRACES,
    },
    "RegistryRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        BUCKET: {"s3:ListBucket"},
        QUEUE: {"sqs:SendMessage"},
        INDEXES: SEARCH,
        **MODELS_AND_TOOLS,
        "CredentialsKeyArn": {"kms:Encrypt", "kms:Decrypt"},  # it stores the toolgroups
    },
    "SandboxRole": {"*": LOGS},
    "ConsoleRole": {"*": LOGS},
    "WorkerRole": {
        "*": LOGS,
        **KEY,
        **SETTINGS,
        TABLE: READ | WRITE | {"dynamodb:BatchWriteItem"},
        **OBJECTS,
        INBOX: {"s3:GetObject"},
        BUCKET: {"s3:ListBucket"},
        KEYS: {"dynamodb:GetItem"},  # the creators of automations
        QUEUE: {"sqs:SendMessage", "sqs:ChangeMessageVisibility", *POLLING},
        SCHEDULES: {"scheduler:DeleteSchedule"},
        FAILURES: {"sqs:SendMessage"},
        "EventBus.Arn": {"events:PutEvents"},
        INDEXES: SEARCH | FORGET | FILL,
        **MODELS_AND_TOOLS,
        "CredentialsKeyArn": {"kms:Encrypt", "kms:Decrypt"},  # it renews the tokens of vaults
        **TRACES,
    },
    "ScheduleRole": {QUEUE: {"sqs:SendMessage"}, **KEY},
    "ApiLogWriter": {"*": {"logs:*"}},
}
API = "apigateway.amazonaws.com"
EVENTS = "events.amazonaws.com"
SCHEDULER = "scheduler.amazonaws.com"
REQUESTED = {"Stint Turn Requested", "Stint Response Requested"}


@pytest.fixture(scope="module")
def translated() -> dict[str, Any]:
    return translate(ROOT / "template.yaml", "us-east-1")


@pytest.fixture(scope="module")
def statements(translated: dict[str, Any]) -> list[Statement]:
    return statements_of(translated)


def of_type(translated: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: each["Properties"] for name, each in translated["Resources"].items() if each["Type"] == kind}


def grants_of(statements: list[Statement]) -> dict[str, dict[str, set[str]]]:
    """Return what each role may do with each resource."""
    grants: dict[str, dict[str, set[str]]] = {}
    for each in statements:
        if each.effect == "Allow" and not each.holder.endswith(".amazonaws.com"):
            grants.setdefault(each.holder, {}).setdefault(each.resource, set()).add(each.action)
    return grants


def test_every_grant_is_one_that_is_meant(statements: list[Statement]) -> None:
    assert grants_of(statements) == GRANTS


def test_functions_with_the_same_store_have_the_same_rights_to_it(statements: list[Statement]) -> None:
    grants = grants_of(statements)
    batches = {"dynamodb:BatchWriteItem"}

    assert {role for role, granted in grants.items() if BUCKET in granted} == STORING
    for role in STORING:
        assert grants[role][TABLE] == READ | WRITE | batches, role
        assert {arn: grants[role][arn] for arn in OBJECTS} == OBJECTS, role
        assert grants[role][BUCKET] == {"s3:ListBucket"}, role  # without it a missing object is a 403
        assert "sqs:SendMessage" in grants[role][QUEUE], role


def test_every_role_without_grants_on_data_may_assume_the_data_role(
    translated: dict[str, Any], statements: list[Statement]
) -> None:
    denied = {each.holder for each in statements if each.effect == "Deny" and TABLE in each.resource}

    parameters = translated["Resources"]["Isolation"]["Properties"]["Parameters"]

    assert "TurnsRole" in denied
    assert {each["Fn::GetAtt"][0] for each in parameters["FunctionRoleArns"]["Fn::Join"][1]} == denied


def test_roles_are_those_of_services(translated: dict[str, Any]) -> None:
    trusted = {
        name: short(statement["Principal"])
        for name, role in of_type(translated, "AWS::IAM::Role").items()
        for statement in role["AssumeRolePolicyDocument"]["Statement"]
    }

    service = dict.fromkeys(GRANTS, json.dumps({"Service": ["lambda.amazonaws.com"]}))
    others = {"ApiLogWriter": "apigateway.amazonaws.com", "ScheduleRole": SCHEDULER}
    assert trusted == service | {name: json.dumps({"Service": other}) for name, other in others.items()}


def test_scheduler_may_use_its_role_for_the_schedules_of_this_stack_alone(
    translated: dict[str, Any], statements: list[Statement]
) -> None:
    [trust] = translated["Resources"]["ScheduleRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]

    assert trust["Condition"] == {
        "StringEquals": {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"},
            "aws:SourceArn": {"Fn::GetAtt": ["ScheduleGroup", "Arn"]},
        }
    }
    passing = [each for each in statements if each.action == "iam:PassRole"]
    assert [(each.resource, json.loads(each.condition)) for each in passing] == [
        ("ScheduleRole.Arn", {"StringEquals": {"iam:PassedToService": SCHEDULER}})
    ]


def test_functions_are_invoked_by_the_api_the_rule_and_tools_that_a_parameter_names(
    translated: dict[str, Any], statements: list[Statement]
) -> None:
    tools = {(role, function) for role in CALLERS for function in ("ToolFunctionArns", SANDBOX)}
    names = (
        "Agents",
        "Turns",
        "Responses",
        "Knowledge",
        "October",
        "OpenAIAgents",
        "Protocols",
        "Registry",
        "Admin",
        "Console",
    )
    api = {(API, name) for name in names}

    assert allowed(statements, "lambda:InvokeFunction") == tools | api | {(EVENTS, "Worker"), (API, "Authorizer.Arn")}
    assert translated["Parameters"]["ToolFunctionArns"]["Default"] == ""
    by_rule = [each.condition for each in statements if each.holder == EVENTS and each.resource == "Worker"]
    by_api = [each.condition for each in statements if each.holder == API]
    assert sorted(by_rule) == ["WorkerInbox.Arn", "WorkerRequested.Arn"]
    assert all('"__ApiId__": {"Ref": "Api"}' in source for source in by_api)


def test_all_models_may_be_invoked_by_an_allowed_inference_profile_alone(statements: list[Statement]) -> None:
    every = {each for each in statements if each.resource == f"{BEDROCK}*::foundation-model/*"}
    profiles = [PROFILE, {"Ref": "ModelArns"}]
    conditions = [{"StringLike": {"bedrock:InferenceProfileArn": profile}} for profile in profiles]

    assert {each.condition for each in every if each.action != "bedrock:CountTokens"} == {*map(short, conditions)}
    assert {each.condition for each in statements if each.resource in (short(PROFILE), "ModelArns")} == {""}


def bedrock_grants(translated: dict[str, Any], **parameters: str) -> dict[str, set[str]]:
    """Return what may be invoked or applied with some parameters, by the condition's profile, or an empty text."""
    system = System(ROOT / "template.yaml", translated, outputs=OUTPUTS, parameters=parameters)
    found: dict[str, set[str]] = {}
    for each in system.resolved("AWS::IAM::ManagedPolicy")["ModelsAndTools"]["PolicyDocument"]["Statement"]:
        if set(as_list(each["Action"])) & {"bedrock:InvokeModel", "bedrock:ApplyGuardrail"}:
            profiles = each.get("Condition", {}).get("StringLike", {}).get("bedrock:InferenceProfileArn", "")
            for profile in as_list(profiles):
                found.setdefault(profile, set()).update(as_list(each["Resource"]))
    return found


def test_without_parameters_the_default_models_may_be_used_and_no_guardrails(translated: dict[str, Any]) -> None:
    profile = "arn:aws:bedrock:*:000000000000:inference-profile/global.amazon.nova-2-lite-v1:0"

    assert bedrock_grants(translated) == {
        "": {
            profile,
            "arn:aws:bedrock:*::foundation-model/global.amazon.nova-2-lite-v1:0",
            "arn:aws:bedrock:*::foundation-model/amazon.titan-embed-text-v2:0",
        },
        profile: {"arn:aws:bedrock:*::foundation-model/*"},
    }


@pytest.mark.parametrize(
    ("model", "model_id"), [("bedrock/a.b-v1:0", "a.b-v1:0"), ("openai/gpt-9", "gpt-9"), ("typo", "")]
)
def test_the_default_model_may_be_invoked_whatever_it_is(translated: dict[str, Any], model: str, model_id: str) -> None:
    granted = bedrock_grants(translated, DefaultModel=model)[""]

    assert f"arn:aws:bedrock:*::foundation-model/{model_id}" in granted
    assert not any("*" in arn.rpartition("/")[2] for arn in granted)


def test_parameters_name_further_models_and_guardrails(translated: dict[str, Any]) -> None:
    arns = ["arn:aws:bedrock:*::foundation-model/x.*", "arn:aws:bedrock:*:000000000000:inference-profile/us.x.*"]
    guardrail = "arn:aws:bedrock:us-east-1:000000000000:guardrail/g1"

    granted = bedrock_grants(translated, ModelArns=",".join(arns), GuardrailArns=guardrail)

    assert {*arns, guardrail} < granted[""]
    assert granted[arns[1]] == {"arn:aws:bedrock:*::foundation-model/*"}


def test_no_role_that_runs_tools_may_invoke_a_function_of_the_stack(
    translated: dict[str, Any], statements: list[Statement]
) -> None:
    names = [short(function["FunctionName"]) for function in of_type(translated, "AWS::Lambda::Function").values()]
    arn = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:"
    denied = {
        (each.holder, each.resource)
        for each in statements
        if each.effect == "Deny" and each.action == "lambda:InvokeFunction" and not each.condition
    }

    assert len(names) == 13
    names.remove("${AWS::StackName}-sandbox")  # runs code without any rights, for every caller of tools
    assert denied == {(role, f"{arn}{name}{end}") for role in CALLERS for name in names for end in ("", ":*")}


def test_functions_that_call_tools_know_their_stack(translated: dict[str, Any]) -> None:
    functions = of_type(translated, "AWS::Lambda::Function")
    names = {short(function["FunctionName"]) for function in functions.values()}

    for role in CALLERS:
        own = short(functions[role.removesuffix("Role")]["Environment"]["Variables"]["STINT_OWN_FUNCTIONS"])
        assert set(own.split(",")) == names


def test_the_queue_is_written_to_by_those_who_leave_work_to_the_worker(statements: list[Statement]) -> None:
    senders = {(role, QUEUE) for role in {*STORING, "ScheduleRole"}}

    failures = {("WorkerRole", FAILURES), (EVENTS, FAILURES)}
    assert allowed(statements, "sqs:SendMessage") == senders | failures


def test_only_the_rules_of_the_stack_keep_undelivered_events(
    translated: dict[str, Any], statements: list[Statement]
) -> None:
    [condition] = [each.condition for each in statements if (each.holder, each.resource) == (EVENTS, FAILURES)]
    rules = of_type(translated, "AWS::Events::Rule")

    arns = [{"Fn::GetAtt": [name, "Arn"]} for name in sorted(rules)]
    assert sorted(json.loads(condition)["ArnEquals"]["aws:SourceArn"], key=str) == arns
    for rule in rules.values():
        assert [short(target["DeadLetterConfig"]["Arn"]) for target in rule["Targets"]] == [FAILURES]


def test_only_the_worker_reads_the_queue_and_no_other_queue(statements: list[Statement]) -> None:
    for action in POLLING:
        assert allowed(statements, action) == {("WorkerRole", QUEUE)}


def test_functions_that_run_turns_may_encrypt_renewed_tokens(statements: list[Statement]) -> None:
    encrypting = {role for role, _ in allowed(statements, "kms:Encrypt")}

    # The session of a turn may have vaults, whichever API the turn is of.
    assert encrypting >= {"TurnsRole", "OctoberRole", "OpenAIAgentsRole", "ProtocolsRole", "WorkerRole"}
    assert {role for role, _ in allowed(statements, "kms:Decrypt")} >= encrypting - {"AgentsRole"}


def test_the_key_of_credentials_is_used_for_a_tenant_and_an_object_only(statements: list[Statement]) -> None:
    uses = {each for each in statements if each.resource == "CredentialsKeyArn"}

    named = {f"kms:EncryptionContext:{name}": "false" for name in ("tenant", "identifier")}
    assert {(each.effect, each.condition) for each in uses} == {("Allow", short({"Null": named}))}


def test_functions_may_read_the_objects_that_parameters_name_and_write_none(
    translated: dict[str, Any], statements: list[Statement]
) -> None:
    readers = {*CALLERS, "AgentsRole"}
    denied = {
        (each.holder, each.resource) for each in statements if (each.effect, each.action) == ("Deny", "s3:PutObject")
    }

    assert {each for each in allowed(statements, "s3:GetObjectVersion") if each[1] in IN_S3} == denied
    assert denied == {(role, arn) for role in readers for arn in IN_S3}
    assert allowed(statements, "ssm:GetParameter") == {(role, arn) for role in readers for arn in IN_SSM}
    assert not allowed(statements, "ssm:PutParameter")
    found = settings_policy(translated, Prices="s3://b/a/prices.json?versionId=v1", Tenants="ssm:///stint/t?version=3")
    assert found == {
        ("Allow", "arn:aws:s3:::b/a/prices.json"),
        ("Deny", "arn:aws:s3:::b/a/prices.json"),
        ("Allow", "arn:aws:ssm:us-east-1:000000000000:parameter/stint/t"),
    }


@pytest.mark.parametrize("text", ["", '{"openai/x": {"input": 1}}', '[{"base_url": "https://a.example/v1?s3://b/c"}]'])
def test_settings_that_are_no_references_grant_nothing(translated: dict[str, Any], text: str) -> None:
    assert settings_policy(translated, Prices=text, Providers=text) == set()


def settings_policy(translated: dict[str, Any], **parameters: str) -> set[tuple[str, str]]:
    """Return the effects and resources of the policy for large settings."""
    system = System(ROOT / "template.yaml", translated, outputs=OUTPUTS, parameters=parameters)
    policy = system.resolved("AWS::IAM::ManagedPolicy")["LargeSettings"]
    statements = policy["PolicyDocument"]["Statement"]
    return {(each["Effect"], arn) for each in statements for arn in as_list(each["Resource"])}


def test_only_the_worker_reads_the_inbox_and_no_function_writes_to_it(statements: list[Statement]) -> None:
    for action, expected in (("s3:GetObject", {"WorkerRole"}), ("s3:PutObject", set()), ("s3:DeleteObject", set())):
        prefixes = {(who, resource) for who, resource in allowed(statements, action)}
        assert {who for who, resource in prefixes if "/inbox/" in resource or "}/*" in resource} == expected


def test_the_rule_of_the_inbox_takes_objects_of_the_stacks_bucket_from_s3_alone(translated: dict[str, Any]) -> None:
    rule = of_type(translated, "AWS::Events::Rule")["WorkerInbox"]

    assert "EventBusName" not in rule  # the default bus, where only AWS may use a source with "aws."
    assert rule["EventPattern"] == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created", "Object Deleted"],
        "detail": {
            "bucket": {"name": [{"Fn::GetAtt": ["Data", "Outputs.BucketName"]}]},
            "object": {"key": [{"prefix": "inbox/"}]},
        },
    }
    [target] = rule["Targets"]
    assert target["InputTransformer"] == {
        "InputPathsMap": {"type": "$.detail-type", "detail": "$.detail"},
        "InputTemplate": '{"tenant": "default", "detail-type": <type>, "detail": <detail>}',
    }


def test_only_the_worker_puts_events_and_only_such_as_start_nothing(
    translated: dict[str, Any], statements: list[Statement]
) -> None:
    (put,) = [each for each in statements if each.effect == "Allow" and each.action.startswith("events:")]
    rule = of_type(translated, "AWS::Events::Rule")["WorkerRequested"]
    condition = json.loads(put.condition)
    values = condition["ForAllValues:StringEquals"]

    assert allowed(statements, "events:PutEvents") == {("WorkerRole", "EventBus.Arn")}
    assert (values["events:source"], set(values["events:detail-type"])) == ("stint", set(get_args(DetailType)))
    assert condition["Null"] == {"events:detail-type": "false"}
    assert set(rule["EventPattern"]["detail-type"]) == REQUESTED
    assert not REQUESTED & set(get_args(DetailType))


def test_the_bus_is_closed_to_other_accounts_and_to_requests(
    translated: dict[str, Any], statements: list[Statement]
) -> None:
    """It is the stack's own, and closed to the stack's requests, too."""
    (bus,) = of_type(translated, "AWS::Events::EventBus").values()
    rule = of_type(translated, "AWS::Events::Rule")["WorkerRequested"]
    denied = {each.condition for each in statements if each.holder == "*" and each.resource == "EventBus.Arn"}
    roles = [f"{function}Role" for function in of_type(translated, "AWS::Lambda::Function")]
    from_here = {
        "ArnEquals": {"aws:PrincipalArn": [{"Fn::GetAtt": [role, "Arn"]} for role in roles]},
        "ForAnyValue:StringEquals": {"events:detail-type": ["Stint Turn Requested", "Stint Response Requested"]},
    }
    elsewhere = {"StringNotEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}}

    assert (short(bus["Name"]), rule["EventBusName"]) == ("AWS::StackName", {"Ref": "EventBus"})
    assert denied == {json.dumps(condition, sort_keys=True) for condition in (from_here, elsewhere)}


def test_the_tenant_comes_from_the_rule(translated: dict[str, Any]) -> None:
    rule = of_type(translated, "AWS::Events::Rule")["WorkerRequested"]
    (target,) = rule["Targets"]
    transformer = target["InputTransformer"]

    event = transformer["InputTemplate"]
    for name, value in {"id": '"e1"', "type": '"Stint Turn Requested"', "detail": '{"tenant": "victim"}'}.items():
        event = event.replace(f"<{name}>", value)
    assert transformer["InputPathsMap"] == {"id": "$.id", "type": "$.detail-type", "detail": "$.detail"}
    assert json.loads(event) == {
        "tenant": "default",
        "id": "e1",
        "detail-type": "Stint Turn Requested",
        "detail": {"tenant": "victim"},
    }


@pytest.mark.parametrize("template", ["data", "alarms"])
def test_nested_templates_grant_nothing(template: str) -> None:
    nested = yaml_parse((ROOT / "infra" / "aws" / f"{template}.yaml").read_text())

    assert {each.effect for each in statements_of(nested)} <= {"Deny"}


def statement(**changes: Any) -> dict[str, Any]:
    granted = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"} | changes
    return {"PolicyName": "New", "PolicyDocument": {"Statement": [granted]}}


@pytest.mark.parametrize(
    ("change", "action"),
    [
        ({}, "sqs:SendMessage"),
        ({"Action": "sqs:*"}, "sqs:SendMessage"),
        ({"Action": ["s3:GetObject", "LAMBDA:Invoke*"]}, "lambda:InvokeFunction"),
        ({"Action": "*"}, "events:PutEvents"),
    ],
)
def test_a_new_grant_is_seen(translated: dict[str, Any], change: dict[str, Any], action: str) -> None:
    changed = copy.deepcopy(translated)
    changed["Resources"]["TurnsRole"]["Properties"]["Policies"].append(statement(**change))

    after = statements_of(changed)

    assert grants_of(after) != GRANTS
    assert allowed(after, action) - allowed(statements_of(translated), action) == {("TurnsRole", "*")}


@pytest.mark.parametrize(
    "resource",
    [
        {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "TurnsRole"}]}},
        {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"Roles": [{"Ref": "TurnsRole"}]}},
        {"Type": "AWS::SNS::TopicPolicy", "Properties": {}},
        {"Type": "AWS::Lambda::Url", "Properties": {}},
        {"Type": "AWS::Events::EventBus", "Properties": {"Policy": {}}},
        {"Type": "AWS::IAM::Role", "Properties": {"ManagedPolicyArns": ["arn:aws:iam::aws:policy/PowerUserAccess"]}},
        {"Type": "AWS::IAM::Role", "Properties": {"Policies": [statement(NotAction="s3:*")]}},
    ],
)
def test_what_this_test_cannot_read_is_refused(translated: dict[str, Any], resource: dict[str, Any]) -> None:
    changed = {**translated, "Resources": {**translated["Resources"], "New": resource}}

    with pytest.raises(UnknownPolicy):
        statements_of(changed)
