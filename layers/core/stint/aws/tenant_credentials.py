"""Credentials for the data of one tenant each.

They are temporary credentials of a role, from the Security Token Service (STS):
https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
"""

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from urllib.parse import urlencode

from stint.aws.credentials import (
    REFUSED_CREDENTIALS,
    Credentials,
    CredentialsError,
    CredentialsProvider,
    CredentialsSource,
    RefreshedCredentials,
)
from stint.aws.environment import AwsEnvironment
from stint.aws.signature import SignatureClock
from stint.aws.signed_requests import SignedRequests
from stint.http1.parser import HttpResponse, MalformedResponse

MOST_TENANTS = 100
"""Maximum tenants whose credentials a process keeps."""

CONTENT_TYPE = "application/x-www-form-urlencoded; charset=utf-8"
ATTEMPTS = 3
"""Calls of STS for one session, with the first."""

SESSION_SECONDS = 3600
"""The longest session of a role that another role assumes."""

FIELD = re.compile(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration|Code)>\s*([^<\s]+)\s*</\1>")


class TenantCredentials:
    """The credentials of the tenant for which the current code runs.

    `require_tenant` returns it, or raises an error if there is none. `make_provider` is called once per tenant, whose
    credentials are refreshed before they expire. `now` is the time of their expiry.
    """

    def __init__(
        self,
        require_tenant: Callable[[], str],
        make_provider: Callable[[str], CredentialsProvider],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._require_tenant, self._make_provider, self._now = require_tenant, make_provider, now
        self._tenants: OrderedDict[str, RefreshedCredentials] = OrderedDict()
        self._lock = threading.Lock()

    async def get(self) -> Credentials:
        """Return valid credentials. Raises CredentialsError."""
        return await self._of_tenant().get()

    async def renew(self, refused: Credentials) -> bool:
        """Replace credentials that AWS refused. Return whether there are others."""
        return await self._of_tenant().renew(refused)

    def forget(self) -> None:
        """Load all credentials again for their next calls."""
        with self._lock:
            self._tenants.clear()

    def _of_tenant(self) -> RefreshedCredentials:
        # Outside of the lock, because it raises for code without a tenant.
        tenant = self._require_tenant()
        with self._lock:
            found = self._tenants.get(tenant)
            if found is None:
                found = self._tenants[tenant] = RefreshedCredentials(self._make_provider(tenant), self._now)
                if len(self._tenants) > MOST_TENANTS:
                    self._tenants.popitem(last=False)
            self._tenants.move_to_end(tenant)
        return found


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
        self._source, self._clock = source, clock
        self._requests = SignedRequests(environment, "sts")
        self._body = urlencode(parameters(role_arn, session_name, tags)).encode()

    async def load(self, *, renewed: bool) -> Credentials:  # noqa: ARG002 - STS is always asked
        problem, renewable = "there was no answer", True
        for _ in range(ATTEMPTS):
            try:
                used = await self._source.get()
                signed_at = self._clock()
                response = await self._requests.send(used, signed_at, {"content-type": CONTENT_TYPE}, self._body)
            except (OSError, MalformedResponse):
                continue
            if response.status == 200:
                return _parse(response)
            problem = dict(FIELD.findall(response.body.decode("utf-8", "replace"))).get("Code", str(response.status))
            if self._clock.correct(problem, response.headers, signed_at):
                continue
            # Once: a second refusal would be that of the credentials that have just been loaded.
            if renewable and problem in REFUSED_CREDENTIALS and await self._source.renew(used):
                renewable = False
                continue
            if response.status < 500 and problem != "Throttling":
                break
        raise CredentialsError(f"The role of the tenant's data could not be assumed: {problem}. Check TenantIsolation.")


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
