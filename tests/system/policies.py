"""The IAM statements of a translated template."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

# The relevant actions of AWS's managed policies. A managed policy that is not in this table must not be attached.
MANAGED = {
    "service-role/AWSLambdaBasicExecutionRole": ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
    "AWSXrayWriteOnlyAccess": ["xray:*"],
    "service-role/AmazonAPIGatewayPushToCloudWatchLogs": ["logs:*"],
}
# Types of resources without policies.
PLAIN = {
    "AWS::ApiGateway::Account",
    "AWS::ApiGateway::Deployment",
    "AWS::ApiGateway::RestApi",
    "AWS::ApiGateway::Stage",
    "AWS::CloudFormation::Stack",
    "AWS::CloudWatch::Alarm",
    "AWS::DynamoDB::Table",
    "AWS::Events::EventBus",
    "AWS::Events::Rule",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::EventSourceMapping",
    "AWS::Lambda::Function",
    "AWS::Lambda::LayerVersion",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::S3Vectors::VectorBucket",
    "AWS::Scheduler::ScheduleGroup",
    "AWS::SQS::Queue",
}


class UnknownPolicy(Exception):
    """The template has an element that may grant permissions but is not supported here."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One action on one resource. `holder` is the logical id of a role, or the principal of a resource's policy."""

    effect: str
    holder: str
    action: str
    resource: str
    condition: str = ""


def statements_of(template: Mapping[str, Any]) -> list[Statement]:
    """Return all statements, including those with conditions. Raises UnknownPolicy for an unsupported element."""
    return [
        statement
        for name, resource in template["Resources"].items()
        for statement in read(name, resource["Type"], resource.get("Properties", {}), template["Resources"])
    ]


def read(name: str, kind: str, properties: Mapping[str, Any], resources: Mapping[str, Any]) -> Iterable[Statement]:
    match kind:
        case "AWS::IAM::Role":
            return role_statements(name, properties, resources)
        case "AWS::IAM::ManagedPolicy" if not {"Roles", "Users", "Groups"} & properties.keys():
            return []  # it is read with the roles that attach it
        case "AWS::Lambda::Permission":
            principal, function = properties["Principal"], short(properties["FunctionName"])
            return [Statement("Allow", principal, properties["Action"], function, short(properties.get("SourceArn")))]
        case "AWS::Events::EventBusPolicy":
            return document_statements(None, properties["Statement"])
        case "AWS::S3::BucketPolicy" | "AWS::SQS::QueuePolicy":
            return document_statements(None, properties["PolicyDocument"]["Statement"])
    inline = {key for key in properties if "Polic" in key and key not in ("RedrivePolicy", "RetentionPolicy")}
    if kind not in PLAIN or inline:
        raise UnknownPolicy(f"{name} ({kind}) {sorted(inline)}")
    return []


def role_statements(name: str, properties: Mapping[str, Any], resources: Mapping[str, Any]) -> Iterator[Statement]:
    for policy in properties.get("Policies", []):
        yield from document_statements(name, policy["PolicyDocument"]["Statement"])
    for attached in properties.get("ManagedPolicyArns", []):
        arn = attached["Fn::If"][1] if isinstance(attached, dict) and "Fn::If" in attached else attached
        if isinstance(arn, dict) and "Ref" in arn:
            document = resources[arn["Ref"]]["Properties"]["PolicyDocument"]
            yield from document_statements(name, document["Statement"])
            continue
        managed = short(arn).partition(":policy/")[2]
        if managed not in MANAGED:
            raise UnknownPolicy(f"{name} attaches {short(arn)}")
        yield from (Statement("Allow", name, action, "*") for action in MANAGED[managed])


def document_statements(holder: str | None, statements: Any) -> Iterator[Statement]:
    for statement in as_list(statements):
        if "Fn::If" in statement:
            granted = [each for each in statement["Fn::If"][1:] if each != {"Ref": "AWS::NoValue"}]
            yield from document_statements(holder, granted)
            continue
        if unknown := statement.keys() - {"Sid", "Effect", "Action", "Resource", "Principal", "Condition"}:
            raise UnknownPolicy(f"{holder}: {sorted(unknown)}")
        who = holder or principal_of(statement["Principal"])
        resources = [
            each["Fn::If"][1] if isinstance(each, dict) and "Fn::If" in each else each
            for each in as_list(statement["Resource"])
        ]
        condition = json.dumps(statement["Condition"], sort_keys=True) if "Condition" in statement else ""
        for action in as_list(statement["Action"]):
            for resource in resources:
                yield Statement(statement["Effect"], who, action, short(resource), condition)


def allowed(statements: Iterable[Statement], action: str) -> set[tuple[str, str]]:
    """Return the holders and resources for which an Allow matches an action, with wildcards."""
    return {
        (statement.holder, statement.resource)
        for statement in statements
        if statement.effect == "Allow" and fnmatchcase(action.lower(), statement.action.lower())
    }


def principal_of(value: Any) -> str:
    """Return a service's name, or the principal as one string."""
    return value["Service"] if isinstance(value, dict) and isinstance(value.get("Service"), str) else short(value)


def short(value: Any) -> str:
    """Return a value with intrinsic functions as one string."""
    match value:
        case None:
            return ""
        case str():
            return value
        case {"Ref": name}:
            return str(name)
        case {"Fn::GetAtt": [*parts]}:
            return ".".join(parts)
        case {"Fn::Sub": str(text)}:
            return text
    return json.dumps(value, sort_keys=True)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
