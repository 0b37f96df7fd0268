"""Bedrock's endpoints of OpenAI's APIs, and which of their operations may have a model.

Amazon Bedrock User Guide, "Responses API" and "Endpoints supported by Amazon Bedrock": `bedrock-runtime` has both APIs
under /openai/v1. `bedrock-mantle` has most models under /v1, and others under /openai/v1, and refuses a model on the
other path. No list says which model is where, and models come and go. So the likely operation is called first.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

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
