"""Limits of CloudFormation, Lambda and IAM for what parameters contain, checked before anything is uploaded.

Names of resources that do not exist yet are estimated.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from infra.local.errors import LocalCloudError
from infra.local.intrinsics import Resolver, pseudo_parameters
from infra.scripts.published_versions import Template, resources_of

PARAMETER_BYTES = 4096
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"""
ENVIRONMENT_BYTES = 4096
"""The variables of a function: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html

Lambda measures their JSON, in which each quote and backslash of a value has two bytes: its error message contains it.
"""
POLICY_CHARACTERS = 6144
"""A managed policy without white space: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
REGION = "ap-southeast-2"
"""One whose name is as long as any."""
GENERATED = "x" * 13
"""In names that CloudFormation generates, each nested stack and each resource has as many characters."""
ADVICE = (
    "Put Prices, Tenants, Providers or Registrations into an object of S3 or a parameter of SSM, and name it instead "
    '(docs/production.md, "Large settings").'
)

ReadDeployed = Callable[[str, str], Mapping[str, str] | None]


class Refused(Exception):
    """Nothing was deployed. The message has the reason and the solution."""


def read_deployed(stack: str, region: str) -> Mapping[str, str] | None:
    """Return the parameters of a deployed stack; empty if it cannot be read. None if there is no such stack."""
    import boto3  # noqa: PLC0415 - not for a deployment that is refused before
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import (  # noqa: PLC0415
        BotoCoreError,
        ClientError,
        ConfigParseError,
        NoCredentialsError,
        PartialCredentialsError,
        ProfileNotFound,
    )

    try:
        config = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
        client: Any = boto3.Session(region_name=region).client("cloudformation", config=config)
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # there is no such stack
            return None
        print(f"stint: warning: the parameters of the stack cannot be read: {error}", file=sys.stderr)
        return {}
    except NoCredentialsError:
        raise Refused("there are no AWS credentials: set AWS_ACCESS_KEY_ID and its secret, or AWS_PROFILE") from None
    except (ConfigParseError, PartialCredentialsError, ProfileNotFound) as error:
        raise Refused(f"there are no AWS credentials: {error}") from None
    except BotoCoreError as error:
        print(f"stint: warning: the parameters of the stack cannot be read: {error}", file=sys.stderr)
        return {}
    if found["StackStatus"] == "REVIEW_IN_PROGRESS":  # its first deployment was broken off
        return None
    return {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])}


def refuse_long_parameters(parameters: Mapping[str, str]) -> None:
    """Raise Refused for a value that CloudFormation does not accept."""
    for name, value in parameters.items():
        if (size := len(value.encode())) > PARAMETER_BYTES:
            raise Refused(
                f"PARAMETERS: {name} has {size} bytes, and CloudFormation accepts {PARAMETER_BYTES}. {ADVICE}"
            )


def refuse_large_environments(template: Template, stack: str, parameters: Mapping[str, str]) -> None:
    """Raise Refused if a function of a built template would have more variables than Lambda accepts."""
    resolver = make_resolver(template, stack, parameters)
    for name, function in resources_of(template, "AWS::Serverless::Function").items():
        variables = resolve(resolver, function["Properties"].get("Environment", {}).get("Variables", {}), name)
        values = {each: str(value) for each, value in variables.items()}
        if (total := size_of(values)) > ENVIRONMENT_BYTES:
            sizes = {each: size_of({each: value}) - len("{}") for each, value in values.items()}
            raise Refused(
                f"the variables of the function {name} have {total} bytes as JSON ({name_largest(sizes)}), and Lambda "
                f"accepts {ENVIRONMENT_BYTES}. {ADVICE}"
            )


def refuse_large_policies(template: Template, stack: str, parameters: Mapping[str, str]) -> None:
    """Raise Refused if a managed policy of a built template would have more characters than IAM accepts."""
    resolver = make_resolver(template, stack, parameters)
    for name, policy in resources_of(template, "AWS::IAM::ManagedPolicy").items():
        document = policy["Properties"]["PolicyDocument"]
        total = len("".join(write_json(resolve(resolver, document, name)).split()))
        if total > POLICY_CHARACTERS:
            named = write_json(document)
            sizes = {each: len(value) for each, value in parameters.items() if value and f'"{each}"' in named}
            raise Refused(
                f"the policy {name} has {total} characters ({name_largest(sizes)}), and IAM accepts "
                f"{POLICY_CHARACTERS}. Name fewer ARNs in these parameters: one with * stands for several."
            )


def size_of(values: Mapping[str, str]) -> int:
    return len(write_json(values).encode())


def write_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def name_largest(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{each} {sizes[each]}" for each in sorted(sizes, key=lambda each: -sizes[each])[:3])


def make_resolver(template: Template, stack: str, parameters: Mapping[str, str]) -> Resolver:
    return Resolver(references(template, stack, parameters), Names(stack), template.get("Conditions", {}))


def resolve(resolver: Resolver, value: Any, name: str) -> Any:
    """Return a value without intrinsic functions. Raises Refused if it has one that cannot be evaluated."""
    try:
        return resolver.resolve(value, name)
    except LocalCloudError as error:
        raise Refused(f"the size of {name} cannot be determined: {error}") from error


def references(template: Template, stack: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of parameters and pseudo parameters, and the names of resources."""
    found = {**dict.fromkeys(template["Resources"], f"{stack}-{GENERATED}"), **pseudo_parameters(REGION)}
    found["AWS::StackName"] = stack
    for name, parameter in template["Parameters"].items():
        value = str(parameters.get(name, parameter.get("Default", "")))
        found[name] = value.split(",") if parameter.get("Type") == "CommaDelimitedList" else value
    return found


class Names(dict[str, str]):
    """Attributes of resources, as long as those that CloudFormation generates."""

    def __init__(self, stack: str) -> None:
        super().__init__()
        self._stack = stack

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        resource = name.rpartition(".")[2].removesuffix("Name").removesuffix("Url").removesuffix("Arn")
        generated = f"{self._stack}-Data-{GENERATED}-{resource}-{GENERATED}"
        if name.endswith("Url"):
            return f"https://sqs.{REGION}.amazonaws.com/000000000000/{generated}"
        return f"arn:aws:service:{REGION}:000000000000:{generated}" if name.endswith("Arn") else generated
