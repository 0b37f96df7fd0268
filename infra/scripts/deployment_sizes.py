"""Limits of CloudFormation and Lambda for what parameters contain, checked before anything is uploaded."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from infra.local.errors import LocalCloudError
from infra.local.intrinsics import NO_VALUE, Resolver, pseudo_parameters
from infra.scripts.published_versions import Template, resources_of

PARAMETER_BYTES = 4096
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"""
ENVIRONMENT_BYTES = 4096
"""All names and values of a function: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html"""
GENERATED = "x" * 13
"""In names that CloudFormation generates, each nested stack and each resource has as many characters."""
ADVICE = (
    "Put Prices, Tenants, Providers or Registrations into an object of S3 or a parameter of SSM, and name it instead "
    '(docs/production.md, "Large settings").'
)

ReadDeployed = Callable[[str], Mapping[str, str]]


class Refused(Exception):
    """Nothing was deployed. The message has the reason and the solution."""


def read_deployed(stack: str) -> Mapping[str, str]:
    """Return the parameters of a deployed stack; none if there is no such stack, or if it cannot be read."""
    import boto3  # noqa: PLC0415 - not for a deployment that is refused before
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        config = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
        client: Any = boto3.client("cloudformation", config=config)
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":  # there is no such stack
            print(f"stint: warning: the parameters of the stack cannot be read: {error}", file=sys.stderr)
        return {}
    except BotoCoreError as error:
        print(f"stint: warning: the parameters of the stack cannot be read: {error}", file=sys.stderr)
        return {}
    return {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])}


def refuse_long_parameters(parameters: Mapping[str, str]) -> None:
    """Raise Refused for a value that CloudFormation does not accept."""
    for name, value in parameters.items():
        if (size := len(value.encode())) > PARAMETER_BYTES:
            raise Refused(
                f"PARAMETERS: {name} has {size} bytes, and CloudFormation accepts {PARAMETER_BYTES}. {ADVICE}"
            )


def refuse_large_environments(template: Template, stack: str, parameters: Mapping[str, str]) -> None:
    """Raise Refused if a function of a built template would have more variables than Lambda accepts.

    Names of resources that do not exist yet are estimated.
    """
    for name, function in resources_of(template, "AWS::Serverless::Function").items():
        variables = function["Properties"].get("Environment", {}).get("Variables", {})
        resolver = Resolver(references(template, stack, parameters), Names(stack), template.get("Conditions", {}))
        sizes = {each: size_of(resolver, each, value) for each, value in variables.items()}
        if (total := sum(sizes.values())) > ENVIRONMENT_BYTES:
            largest = sorted(sizes, key=lambda each: -sizes[each])[:3]
            named = ", ".join(f"{each} {sizes[each]}" for each in largest)
            raise Refused(
                f"the variables of the function {name} have {total} bytes ({named}), and Lambda accepts "
                f"{ENVIRONMENT_BYTES}. {ADVICE}"
            )


def size_of(resolver: Resolver, name: str, value: Any) -> int:
    """Return the bytes of a variable; 0 if it has no value."""
    try:
        resolved = resolver.resolve(value, name)
    except LocalCloudError as error:
        raise Refused(f"the size of the variable {name} cannot be determined: {error}") from error
    return 0 if resolved is NO_VALUE else len(f"{name}{resolved}".encode())


def references(template: Template, stack: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of parameters and pseudo parameters, and the names of resources."""
    found = {**dict.fromkeys(template["Resources"], f"{stack}-{GENERATED}"), **pseudo_parameters("us-east-1")}
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
            return f"https://sqs.ap-southeast-2.amazonaws.com/000000000000/{generated}"
        return f"arn:aws:service:ap-southeast-2:000000000000:{generated}" if name.endswith("Arn") else generated
