"""Providers of credentials: the environment, the endpoint of a container, and botocore's chain.

The order is botocore's: keys in the environment win, then a profile or a web identity that is named, then the endpoint
of a container, then the rest of the chain. The first and third are read here, because Lambda's functions have one of
them (the endpoint with SnapStart) and should not load botocore. Everything else is left to botocore.

The endpoint gets an authorization token, and its answers are keys. So its URL must be https, or lead to this machine or
to an address that only a container's own host has.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stint.aws.credentials import Credentials, CredentialsError, CredentialsProvider, StaticCredentials
from stint.aws.environment import AwsEnvironment
from stint.http1.connector import Connector
from stint.http1.parser import HttpResponse, MalformedResponse
from stint.http1.urls import Origin

if TYPE_CHECKING:
    import botocore.credentials

CONTAINER_HOST = "169.254.170.2"
CONTAINER_HOSTS = (CONTAINER_HOST, "169.254.170.23", "fd00:ec2::23", "localhost")
TIMEOUT_SECONDS = 2.0
ATTEMPTS = 3
"""Requests for the credentials of a container or an instance, with the first."""

PAUSE_SECONDS = 1.0
"""Time between two attempts."""
ASK_AGAIN_SECONDS = 16 * 60
"""Lifetime of credentials of botocore's chain, which refreshes them itself: it is asked again after a minute."""

Sleep = Callable[[float], Awaitable[object]]


def choose_provider(environment: AwsEnvironment, sleep: Sleep = asyncio.sleep) -> CredentialsProvider:
    """Return the provider that the environment selects."""
    get = environment.get
    if get("AWS_ACCESS_KEY_ID"):
        token = get("AWS_SESSION_TOKEN") or get("AWS_SECURITY_TOKEN")
        return StaticCredentials(Credentials(get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"), token))
    of_profile = get("AWS_PROFILE") or get("AWS_DEFAULT_PROFILE") or get("AWS_WEB_IDENTITY_TOKEN_FILE")
    if get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") and not of_profile:
        url = f"http://{CONTAINER_HOST}{get('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI')}"
        return ContainerCredentials(url, environment, sleep)
    if get("AWS_CONTAINER_CREDENTIALS_FULL_URI") and not of_profile:
        return ContainerCredentials(get("AWS_CONTAINER_CREDENTIALS_FULL_URI"), environment, sleep)
    return ChainCredentials()


class ContainerCredentials:
    """Credentials of an HTTP endpoint beside the process, as SnapStart, ECS and EKS have it."""

    def __init__(self, url: str, environment: AwsEnvironment, sleep: Sleep = asyncio.sleep) -> None:
        self._environment, self._sleep = environment, sleep
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        if not parts.hostname or parts.scheme not in ("http", "https") or not (tls or _is_local(parts.hostname)):
            raise CredentialsError(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI must be an https URL, or an http URL of a loopback address or of "
                f"{', '.join(CONTAINER_HOSTS)}."
            )
        self._endpoint = Origin(parts.scheme, parts.hostname, parts.port or (443 if tls else 80))
        self._target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"

    async def load(self, *, renewed: bool) -> Credentials:  # noqa: ARG002 - the endpoint is always asked
        for attempt in range(1, ATTEMPTS + 1):
            try:
                response = await self._get()
                if response.status == 200:
                    return _parse(response.body)
            except (OSError, MalformedResponse):
                pass
            if attempt < ATTEMPTS:
                await self._sleep(PAUSE_SECONDS)
        raise CredentialsError("The container's endpoint has no AWS credentials.")

    async def _get(self) -> HttpResponse:
        token = self._read_token()
        authorization = f"Authorization: {token}\r\n" if token else ""
        head = f"GET {self._target} HTTP/1.1\r\nHost: {self._endpoint.authority}\r\nAccept: application/json\r\n"
        bundle = self._environment.get("AWS_CA_BUNDLE")
        connection = await Connector(self._endpoint, ca_bundle=bundle, timeout=TIMEOUT_SECONDS).connect()
        try:
            return await connection.send(f"{head}{authorization}\r\n".encode("latin-1"), TIMEOUT_SECONDS)
        finally:
            connection.abort()

    def _read_token(self) -> str:
        """Return the authorization token. The file, which the container rotates, wins."""
        from pathlib import Path  # noqa: PLC0415 - slow, and not every container has the file

        # Read at each load, since the file is replaced while the process runs.
        path = self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        try:
            token = Path(path).read_text() if path else self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        except (OSError, UnicodeError) as error:
            raise CredentialsError("The file AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read.") from error
        if not token.isascii() or not token.isprintable():
            raise CredentialsError("The container's authorization token is not the value of a header.")
        return token


class ChainCredentials:
    """Credentials of botocore's chain: profiles, SSO, web identities, processes and instance metadata."""

    def __init__(self) -> None:
        self._found: botocore.credentials.Credentials | None = None

    async def load(self, *, renewed: bool) -> Credentials:
        return await asyncio.to_thread(self._read, renewed)

    def _read(self, renewed: bool) -> Credentials:
        from botocore.credentials import RefreshableCredentials  # noqa: PLC0415 - slow, and functions do not need it
        from botocore.exceptions import BotoCoreError, ConfigParseError, ProfileNotFound  # noqa: PLC0415
        from botocore.session import get_session  # noqa: PLC0415

        try:
            # botocore's object refreshes itself. A new chain is needed only when AWS has refused its keys.
            if self._found is None or renewed:
                self._found = get_session().get_credentials()
            if self._found is None:
                raise CredentialsError("There are no AWS credentials. Set AWS_ACCESS_KEY_ID, or a profile.")
            keys = self._found.get_frozen_credentials()
        except (ProfileNotFound, ConfigParseError) as error:
            raise CredentialsError(
                f"There are no AWS credentials: {error}. Correct AWS_PROFILE or the file."
            ) from error
        except (BotoCoreError, RuntimeError, ValueError, OSError) as error:
            raise CredentialsError(f"The AWS credentials could not be loaded ({type(error).__name__}).") from error
        refreshed = isinstance(self._found, RefreshableCredentials)
        expires_at = time.time() + ASK_AGAIN_SECONDS if refreshed else None
        return Credentials(keys.access_key or "", keys.secret_key or "", keys.token or "", expires_at)


def _parse(body: bytes) -> Credentials:
    """Read the document of a container's endpoint."""
    try:
        document: Any = json.loads(body)
        expiration = document.get("Expiration")
        expires_at = datetime.fromisoformat(expiration).timestamp() if expiration else None
        return Credentials(document["AccessKeyId"], document["SecretAccessKey"], document.get("Token", ""), expires_at)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CredentialsError("The container's endpoint sent malformed AWS credentials.") from error


def _is_local(host: str) -> bool:
    """Return whether a host is a loopback address, or one of the hosts of containers' endpoints."""
    from ipaddress import ip_address  # noqa: PLC0415 - only for this endpoint

    try:
        return host in CONTAINER_HOSTS or ip_address(host).is_loopback
    except ValueError:
        return False
