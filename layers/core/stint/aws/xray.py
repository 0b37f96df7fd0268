"""X-Ray as a receiver of traces in OTLP/JSON, signed with the function's own credentials.

The account must have Transaction Search, which stores the spans in CloudWatch Logs.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-OTLPEndpoint.html
"""

import time

from stint.aws.credentials import CredentialsSource
from stint.aws.environment import AwsEnvironment
from stint.aws.signature import Target
from stint.aws.signed_requests import SignedRequests

TRACES = Target("POST", "/v1/traces")


class XRayRefused(Exception):
    """X-Ray does not accept a trace."""


class XRayReceiver:
    """X-Ray in the region of the environment."""

    name = "xray"

    def __init__(self, environment: AwsEnvironment, credentials: CredentialsSource) -> None:
        self._requests, self._credentials = SignedRequests(environment, "xray"), credentials

    async def receive(self, body: bytes) -> None:
        """Send a document. Raises XRayRefused, CredentialsError, OSError and MalformedResponse."""
        credentials = await self._credentials.get()
        headers = {"content-type": "application/json"}
        response = await self._requests.send(credentials, time.time(), headers, body, target=TRACES)
        if not 200 <= response.status < 300:
            raise XRayRefused(f"X-Ray answered with status {response.status}.")
