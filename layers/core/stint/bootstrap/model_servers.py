"""The named model servers of STINT_PROVIDERS.

Each entry is one server of one kind. A field that its kind does not have is refused, since it would have no effect. An
error names the entry and the field, never a value, which may be a key.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from stint.domain.inference import Decoding
from stint.domain.schema import Request
from stint.domain.validation import describe_faults
from stint.providers.api_key import ApiKey
from stint.providers.openai.addresses import is_of_openai
from stint.settings import Settings

if TYPE_CHECKING:
    from stint.providers.openai.errors import ServerSettings
    from stint.providers.openai.server import ReadKey

RESERVED = ("openai", "bedrock", "scripted", "hashed", "local", "sentence-transformers")


KINDS_OF = {
    "api": ("openai", "bedrock-openai"),
    "prompt_cache_key": ("openai", "bedrock-openai"),
    "region": ("bedrock", "bedrock-openai"),
    "endpoint": ("bedrock-openai",),
}
"""The kinds of servers that have a field."""


class ServerDefaults(Request):
    """Parameters of the requests to a server that do not set them. `dimensions` is of embeddings."""

    model_config = ConfigDict(extra="forbid")

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    repetition_penalty: float | None = Field(default=None, gt=0)
    stop: tuple[str, ...] | None = Field(default=None, min_length=1)
    seed: int | None = None
    dimensions: int | None = Field(default=None, ge=1)

    def to_decoding(self) -> Decoding:
        """Return the parameters of chats."""
        return Decoding(**self.model_dump(exclude={"dimensions"}))


class ModelServer(Request):
    """A model server. Its key is in a secret, or in an environment variable.

    `api` and `endpoint` are those of `OpenAICompatible` and `BedrockEndpoint`.
    `prompt_cache_key`: whether it takes a field of this name. None is true for OpenAI's own address only.
    """

    model_config = ConfigDict(extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    kind: Literal["openai", "bedrock", "bedrock-openai", "scripted"] = "openai"
    base_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    api: Literal["chat", "responses"] | None = None
    secret_arn: str = ""
    key_variable: str = Field(default="", pattern=r"^(STINT_[A-Z0-9_]+)?$")
    region: str = Field(default="", pattern=r"^([a-z0-9-]+)?$")
    endpoint: Literal["runtime", "mantle"] = "runtime"
    defaults: ServerDefaults = Field(default_factory=ServerDefaults)
    prompt_cache_key: bool | None = None

    @model_validator(mode="after")
    def check_fields(self) -> "ModelServer":
        if self.id in RESERVED:
            raise ValueError("the id is that of a built-in provider; choose another one")
        if self.kind == "openai" and not self.base_url:
            raise ValueError("a server of kind openai needs a base_url")
        for name, kinds in KINDS_OF.items():
            if getattr(self, name) not in (None, "", "runtime") and self.kind not in kinds:
                raise ValueError(f"a server of kind {self.kind} has no {name}")
        if self.kind == "bedrock-openai" and (self.key_variable or self.secret_arn):
            raise ValueError("a server of kind bedrock-openai has no key: its requests are signed")
        if self.kind == "bedrock-openai" and urlsplit(self.base_url).path.strip("/"):
            raise ValueError("the base_url of a server of kind bedrock-openai has no path: it depends on the model")
        return self

    @property
    def is_bedrock(self) -> bool:
        """Return whether the server is Bedrock, which has embeddings, images and guardrails by its own API only."""
        return self.kind in ("bedrock", "bedrock-openai")

    def read_key(self, settings: Settings) -> "ReadKey":
        """Return a function that reads the key."""
        value = settings.key_in(self.key_variable) if self.key_variable else ""
        source = f"secret_arn of provider {self.id!r} in STINT_PROVIDERS"
        return ApiKey(value, self.secret_arn, "API_KEY", source).read

    @property
    def takes_cache_key(self) -> bool:
        """Return whether calls may have a cache key."""
        is_known = is_of_openai(self.base_url) if self.prompt_cache_key is None else self.prompt_cache_key
        return self.kind in ("openai", "bedrock-openai") and is_known

    @property
    def setting_names(self) -> "ServerSettings":
        from stint.providers.openai.errors import ServerSettings  # noqa: PLC0415 - not at the start of a function

        own = f"of provider {self.id!r} in STINT_PROVIDERS"
        if self.is_bedrock:
            return ServerSettings(base_url=f"the region and the endpoint {own}", key="the role of the function")
        return ServerSettings(base_url=f"the base_url {own}", key=f"the key {own}")


def read_model_servers(settings: Settings) -> Sequence[ModelServer]:
    """Read STINT_PROVIDERS.

    Raises:
        ValueError: it is malformed, or has scripted models, which are not enabled. The message says where, without the
            values, because it is logged.
    """
    servers = parse_servers(settings.providers)
    if len({server.id for server in servers}) < len(servers):
        raise ValueError("STINT_PROVIDERS is malformed: two providers have the same id")
    if not settings.scripted_models and any(server.kind == "scripted" for server in servers):
        raise ValueError(
            "STINT_PROVIDERS has a provider of kind scripted, which is for demos and tests: enable scripted models "
            "with STINT_SCRIPTED_MODELS=true (parameter ScriptedModels), or remove it"
        )
    return servers


def parse_servers(text: str) -> Sequence[ModelServer]:
    """Parse STINT_PROVIDERS. Raises ValueError as `read_model_servers` does."""
    try:
        return TypeAdapter(list[ModelServer]).validate_python(json.loads(text)) if text else []
    except ValidationError as error:
        raise ValueError(f"STINT_PROVIDERS is malformed: {describe_faults(error)}") from None
    except ValueError:
        raise ValueError("STINT_PROVIDERS is malformed: it is not JSON") from None
