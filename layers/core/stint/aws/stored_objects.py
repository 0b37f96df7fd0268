"""Reads of single objects of S3 and parameters of SSM, in one version of them.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html
"""

import asyncio
import json
import re
import time

from stint.aws.credentials import CredentialsError, CredentialsProvider
from stint.aws.environment import AwsEnvironment
from stint.aws.retries import backoff, is_throttled, is_transient
from stint.aws.signature import EMPTY_SHA256, Target
from stint.aws.signed_requests import SignedRequests
from stint.http1.parser import HttpResponse, MalformedResponse

ATTEMPTS = 3
"""Reads of a setting from S3 or Parameter Store, with the first."""

CODE = re.compile(rb"<Code>([A-Za-z]{1,80})</Code>|\"__type\"\s*:\s*\"(?:[^\"]{0,80}#)?([A-Za-z]{1,80})\"")


class ObjectUnavailable(Exception):
    """An object cannot be read in the version that was asked for. The message says why."""


class StoredObjects:
    """Reads objects with one set of credentials."""

    def __init__(self, environment: AwsEnvironment, credentials: CredentialsProvider) -> None:
        self._environment, self._credentials = environment, credentials

    async def read_object(self, bucket: str, key: str, version: str, most: int) -> bytes:
        """Return the content of an object, whose key begins with a slash here; of its newest version without one.

        Raises ObjectUnavailable, also if it has more than `most` bytes.
        """
        target = Target("GET", f"/{bucket}{key}", f"versionId={version}" if version else "")
        # The range is one byte longer than the limit, which shows that the object is larger.
        headers, part = {"x-amz-content-sha256": EMPTY_SHA256}, {"range": f"bytes=0-{most}"}
        response = await self._send("s3", headers, target=target, unsigned=part)
        # A server that ignored the version would otherwise replace the settings of a deployment.
        if version and response.headers.get("x-amz-version-id") != version:
            raise ObjectUnavailable("the answer is of another version")
        if len(response.body) > most:
            raise ObjectUnavailable(f"it has more than {most} bytes")
        return response.body

    async def read_parameter(self, name: str, version: str, most: int) -> bytes:
        """Return the value of a parameter, likewise."""
        body = {"Name": f"{name}:{version}" if version else name, "WithDecryption": True}
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "AmazonSSM.GetParameter"}
        response = await self._send("ssm", headers, json.dumps(body).encode())
        try:
            found = json.loads(response.body)["Parameter"]
            value, answered = str(found["Value"]).encode(), str(found["Version"])
        except (ValueError, KeyError, TypeError):
            raise ObjectUnavailable("the answer is malformed") from None
        if version and answered != version:
            raise ObjectUnavailable("the answer is of another version")
        if len(value) > most:
            raise ObjectUnavailable(f"it has more than {most} bytes")
        return value

    async def _send(
        self,
        service: str,
        headers: dict[str, str],
        body: bytes = b"",
        *,
        target: Target | None = None,
        unsigned: dict[str, str] | None = None,
    ) -> HttpResponse:
        """Return a successful response. Raises ObjectUnavailable."""
        requests = SignedRequests(self._environment, service)
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                used = await self._credentials.load(renewed=False)
                response = await requests.send(
                    used, time.time(), headers, body, target=target or Target(), unsigned=unsigned
                )
            except CredentialsError as error:
                raise ObjectUnavailable(str(error)) from None
            except (OSError, MalformedResponse) as error:
                problem = f"there was no answer ({error})"
            else:
                if response.status in (200, 206):
                    return response
                code = code_of(response)
                problem = f"{code} ({response.status})"
                if not is_transient(code, response.status) and not is_throttled(code, response.status):
                    break
            await asyncio.sleep(backoff(attempt, jitter=1))
        raise ObjectUnavailable(problem)


def code_of(response: HttpResponse) -> str:
    """Return the code of an error response."""
    # A bounded part, because it is whatever the server has sent.
    found = CODE.search(response.body[:10_000])
    return next(filter(None, found.groups())).decode() if found else "no code"
