"""The client of Bedrock's models."""

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient


def connect(
    region: str | None = None, *, connect_timeout: float = 5.0, stall_timeout: float = 60.0
) -> "BedrockRuntimeClient":
    """Make a client. Timeouts are in seconds; the second one is the longest silence of the service.

    Connection errors, throttling and 5xx are retried twice before the answer starts. boto3 finds the credentials, and
    another endpoint in AWS_ENDPOINT_URL_BEDROCK_RUNTIME.
    """
    config = Config(
        connect_timeout=connect_timeout,
        read_timeout=stall_timeout,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=64,
    )
    return boto3.session.Session(region_name=region).client("bedrock-runtime", config=config)
