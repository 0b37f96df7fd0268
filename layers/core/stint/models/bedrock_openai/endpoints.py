"""Bedrock's endpoints of OpenAI's APIs, and which of their operations may have a model.

Amazon Bedrock User Guide, "Responses API" and "Endpoints supported by Amazon Bedrock": `bedrock-runtime` has both APIs
under /openai/v1. `bedrock-mantle` has most models under /v1, and others under /openai/v1, and refuses a model on the
other path. No list says which model is where, and models come and go. So the likely operation is called first.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from stint.aws.credentials import CredentialsError, CredentialsProvider, RefreshedCredentials
from stint.aws.credentials_chain import choose_provider
from stint.aws.environment import read_environment
from stint.aws.errors import AwsConfigurationError
from stint.aws.signature import Target, amz_date, authorize
from stint.dataclasses import dataclass, field
from stint.domain.errors import ModelUnauthorized
from stint.domain.inference import InferenceRequest
from stint.models.openai_compatible import ApiName, ModelRoute, needs_chat_completions

EndpointName = Literal["runtime", "mantle"]

RESPONSES_FIRST = re.compile(r"(?:^|\.)(?:openai\.gpt-(?!oss)|xai\.)")
"""Models that have the Responses API only, or reason with tools only there."""
UNDER_OPENAI = re.compile(r"(?:^|\.)(?:openai\.gpt-(?!oss)|xai\.|google\.gemma-4)")
"""Models of the mantle endpoint under /openai/v1, by their model cards."""


class BedrockEndpoint(NamedTuple):
    """An endpoint in a region. `origin` overrides its scheme, host and port. `api` is the only one to use."""

    region: str
    name: EndpointName = "runtime"
    origin: str = ""
    api: ApiName | None = None

    @property
    def base_url(self) -> str:
        """Return the URL without a path."""
        host = {
            "runtime": f"bedrock-runtime.{self.region}.amazonaws.com",
            "mantle": f"bedrock-mantle.{self.region}.api.aws",
        }
        return self.origin.rstrip("/") or f"https://{host[self.name]}"

    @property
    def service(self) -> str:
        """Return the name of the service in signatures."""
        return "bedrock" if self.name == "runtime" else "bedrock-mantle"

    def routes(self, request: InferenceRequest) -> Sequence[ModelRoute]:
        """Return the operations that may have the model of a request, the likely one first."""
        paths = ["/openai/v1"]
        if self.name == "mantle":
            paths = ["/openai/v1", "/v1"] if UNDER_OPENAI.search(request.model) else ["/v1", "/openai/v1"]
        is_of_responses = RESPONSES_FIRST.search(request.model) and not needs_chat_completions(request)
        apis: list[ApiName] = ["responses", "chat"] if is_of_responses else ["chat", "responses"]
        chosen = apis if self.api is None else [self.api]
        return [ModelRoute(f"{self.base_url}{path}", api) for path in paths for api in chosen]


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
    """Signs requests to a service, such as `bedrock`, of a region (SigV4).

    The credentials are those of the function's role, so there is no key to keep.
    """

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
