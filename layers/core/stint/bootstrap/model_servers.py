"""The named model servers of STINT_PROVIDERS."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from stint.domain.schema import Request
from stint.domain.validation import describe_faults
from stint.settings import Settings

if TYPE_CHECKING:
    from stint.providers.openai.errors import ServerSettings
    from stint.providers.openai.server import ReadKey

RESERVED = ("openai", "bedrock", "scripted", "hashed", "local", "sentence-transformers")


class ModelServer(Request):
    """A model server. Its key is in a secret, or in an environment variable."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    kind: Literal["openai", "bedrock"] = "openai"
    base_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    secret_arn: str = ""
    key_variable: str = Field(default="", pattern=r"^(STINT_[A-Z0-9_]+)?$")
    region: str = ""

    @model_validator(mode="after")
    def check_fields(self) -> "ModelServer":
        if self.id in RESERVED:
            raise ValueError("the id is that of a built-in provider; choose another one")
        if self.kind == "openai" and not self.base_url:
            raise ValueError("a server of kind openai needs a base_url")
        return self

    def read_key(self, settings: Settings) -> "ReadKey":
        """Return a function that reads the key."""
        from stint.providers.api_key import ApiKey  # noqa: PLC0415 - not at the start of a function

        value = settings.key_in(self.key_variable) if self.key_variable else ""
        source = f"secret_arn of provider {self.id!r} in STINT_PROVIDERS"
        return ApiKey(value, self.secret_arn, "API_KEY", source).read

    @property
    def setting_names(self) -> "ServerSettings":
        from stint.providers.openai.errors import ServerSettings  # noqa: PLC0415 - not at the start of a function

        own = f"of provider {self.id!r} in STINT_PROVIDERS"
        return ServerSettings(base_url=f"the base_url {own}", key=f"the key {own}")


def read_model_servers(text: str) -> Sequence[ModelServer]:
    """Read STINT_PROVIDERS.

    Raises:
        ValueError: it is malformed. The message says where, without the values, because it is logged.
    """
    try:
        servers = TypeAdapter(list[ModelServer]).validate_python(json.loads(text)) if text else []
    except ValidationError as error:
        raise ValueError(f"STINT_PROVIDERS is malformed: {describe_faults(error)}") from None
    except ValueError:
        raise ValueError("STINT_PROVIDERS is malformed: it is not JSON") from None
    if len({server.id for server in servers}) < len(servers):
        raise ValueError("STINT_PROVIDERS is malformed: two providers have the same id")
    return servers
