"""Signatures of HTTP requests to Bedrock's endpoints of OpenAI's APIs (SigV4).

They use the credentials of the function's role, so there is no key to keep.
"""

import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from stint.aws.credentials import CredentialsError, CredentialsProvider, RefreshedCredentials
from stint.aws.credentials_chain import choose_provider
from stint.aws.environment import read_environment
from stint.aws.errors import AwsConfigurationError
from stint.aws.signature import Target, amz_date, authorize
from stint.dataclasses import dataclass, field
from stint.domain.errors import ModelUnauthorized


def find_region() -> str:
    """Return the region of the environment. Raises ModelUnauthorized if there is none."""
    try:
        return read_environment().region
    except AwsConfigurationError as error:
        raise ModelUnauthorized(str(error)) from error


def find_credentials() -> CredentialsProvider:
    """Return the source of credentials that the environment selects."""
    return choose_provider(read_environment())


@dataclass(slots=True)
class RequestSigner:
    """Signs requests to a service, such as `bedrock`, of a region."""

    region: str
    service: str
    find: Callable[[], CredentialsProvider] = find_credentials
    now: Callable[[], float] = time.time
    _credentials: RefreshedCredentials | None = field(default=None, repr=False)

    async def sign(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return the headers of the signature.

        Raises:
            ModelUnauthorized: there are no credentials.
        """
        parts = urlsplit(url)
        try:
            if self._credentials is None:
                self._credentials = RefreshedCredentials(self.find())
            credentials = await self._credentials.get()
        except (CredentialsError, ValueError) as error:  # ValueError: of a malformed URL of the environment
            raise ModelUnauthorized(f"There are no AWS credentials for Bedrock: {error}") from error
        headers = {"host": parts.netloc, "x-amz-date": amz_date(self.now())}
        if credentials.token:
            headers["x-amz-security-token"] = credentials.token
        target = Target(method, parts.path, parts.query)
        authorization = authorize(credentials, headers, body, region=self.region, service=self.service, target=target)
        return {**headers, "authorization": authorization}
