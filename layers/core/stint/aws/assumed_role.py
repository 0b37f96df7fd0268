"""Temporary credentials of a role, from the Security Token Service (STS).

https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
"""

import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlencode

from stint.aws.connector import Connector
from stint.aws.credentials import REFUSED_CREDENTIALS, Credentials, CredentialsError, CredentialsSource
from stint.aws.endpoints import sts_endpoint
from stint.aws.environment import AwsEnvironment
from stint.aws.http1 import HttpResponse, MalformedResponse
from stint.aws.signature import SignatureClock, amz_date, authorize

CONTENT_TYPE = "application/x-www-form-urlencoded; charset=utf-8"
TIMEOUT_SECONDS = 3.0
ATTEMPTS = 3
SESSION_SECONDS = 3600
"""The longest session of a role that another role assumes."""

FIELD = re.compile(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration|Code)>\s*([^<\s]+)\s*</\1>")


class AssumedRole:
    """A role with session tags. `source` has the credentials that may assume it.

    `clock` is that of all roles of a process, so that STS refuses the first signature only.
    """

    def __init__(
        self,
        environment: AwsEnvironment,
        source: CredentialsSource,
        role_arn: str,
        session_name: str,
        tags: Mapping[str, str],
        clock: SignatureClock,
    ) -> None:
        self._source, self._clock, self._region = source, clock, environment.region
        self._endpoint = endpoint = sts_endpoint(environment)
        proxy, bundle = (
            environment.proxy(endpoint.scheme, endpoint.host, endpoint.port),
            environment.get("AWS_CA_BUNDLE"),
        )
        self._connector = Connector(endpoint, proxy, ca_bundle=bundle, timeout=TIMEOUT_SECONDS)
        self._body = urlencode(parameters(role_arn, session_name, tags)).encode()

    async def load(self, *, renewed: bool) -> Credentials:  # noqa: ARG002 - STS is always asked
        problem, renewable = "there was no answer", True
        for _ in range(ATTEMPTS):
            try:
                used = await self._source.get()
                signed_at = self._clock()
                response = await self._send(used, signed_at)
            except (OSError, MalformedResponse):
                continue
            if response.status == 200:
                return _parse(response)
            problem = dict(FIELD.findall(response.body.decode("utf-8", "replace"))).get("Code", str(response.status))
            if self._clock.correct(problem, response.headers, signed_at):
                continue
            if renewable and problem in REFUSED_CREDENTIALS and await self._source.renew(used):
                renewable = False
                continue
            if response.status < 500 and problem != "Throttling":
                break
        raise CredentialsError(f"The role of the tenant's data could not be assumed: {problem}. Check TenantIsolation.")

    async def _send(self, credentials: Credentials, signed_at: float) -> HttpResponse:
        headers = {
            "content-type": CONTENT_TYPE,
            "host": self._endpoint.authority,
            "x-amz-date": amz_date(signed_at),
            "x-amz-security-token": credentials.token,
        }
        if not credentials.token:
            del headers["x-amz-security-token"]
        authorization = authorize(credentials, headers, self._body, region=self._region, service="sts")
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST {self._connector.target} HTTP/1.1\r\n{self._connector.headers}{lines}"
            f"authorization: {authorization}\r\ncontent-length: {len(self._body)}\r\n\r\n"
        )
        connection = await self._connector.connect()
        try:
            return await connection.send(head.encode("latin-1") + self._body, TIMEOUT_SECONDS)
        finally:
            connection.abort()


def parameters(role_arn: str, session_name: str, tags: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of AssumeRole."""
    named = {
        f"Tags.member.{number}.{field}": value
        for number, tag in enumerate(tags.items(), 1)
        for field, value in zip(("Key", "Value"), tag, strict=True)
    }
    role = {"RoleArn": role_arn, "RoleSessionName": session_name, "DurationSeconds": str(SESSION_SECONDS)}
    return {"Action": "AssumeRole", "Version": "2011-06-15"} | role | named


def _parse(response: HttpResponse) -> Credentials:
    found = dict(FIELD.findall(response.body.decode("utf-8", "replace")))
    try:
        expires_at = datetime.fromisoformat(found["Expiration"]).timestamp()
        return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], expires_at)
    except (KeyError, ValueError) as error:
        raise CredentialsError("STS sent malformed AWS credentials.") from error
