"""The tables and the bucket of a deployed stack, which its outputs name."""

from collections.abc import Mapping
from typing import Any

from stint.aws.environment import AwsEnvironment
from stint.cli.group import CommandError

VARIABLES = {"KeysTableName": "STINT_KEYS_TABLE", "TableName": "STINT_TABLE", "BucketName": "STINT_BUCKET"}
"""Settings, by the output of the stack that has their value."""


def read_stack(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name the resources of a stack.

    The caller may read it with `cloudformation:DescribeStacks`.

    Raises:
        CommandError: there is no such stack of Stint, or it cannot be read.
        AwsConfigurationError: there is no region.
    """
    region = AwsEnvironment(environment).region
    outputs = {each["OutputKey"]: each["OutputValue"] for each in describe_stack(name, region).get("Outputs", [])}
    if not VARIABLES.keys() <= outputs.keys():
        raise CommandError(
            f"The stack {name} in {region} has no output KeysTableName: it is not Stint's, or not deployed."
        )
    return {variable: outputs[output] for output, variable in VARIABLES.items()}


def describe_stack(name: str, region: str) -> dict[str, Any]:
    """Return CloudFormation's description of a stack. Raises CommandError."""
    import boto3  # noqa: PLC0415 - slow, and most commands name tables
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError  # noqa: PLC0415

    try:
        config = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
        client: Any = boto3.Session(region_name=region).client("cloudformation", config=config)
        [found] = client.describe_stacks(StackName=name)["Stacks"]
    except NoCredentialsError:
        raise CommandError(
            "There are no AWS credentials. Set AWS_ACCESS_KEY_ID and its secret, or AWS_PROFILE."
        ) from None
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":
            raise CommandError(
                f"There is no stack {name} in {region}. Check its name, and set AWS_REGION to its region."
            ) from None
        raise CommandError(f"The stack {name} cannot be read: {error}") from None
    except BotoCoreError as error:
        raise CommandError(f"The stack {name} cannot be read: {error}") from None
    description: dict[str, Any] = found
    return description
