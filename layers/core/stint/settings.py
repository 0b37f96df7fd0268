"""The settings, read from the environment. No other module of the package reads it."""

from datetime import date
from functools import cache
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def named(variable: str) -> AliasChoices:
    """Return the alias of a setting whose environment variable has no STINT_ prefix."""
    return AliasChoices(variable)


class Settings(BaseSettings):
    """The settings of a function. Each is an environment variable `STINT_<NAME>` or its alias."""

    model_config = SettingsConfigDict(
        env_prefix="STINT_", env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    table: str = Field(default="", description="Name of the DynamoDB table.")
    bucket: str = Field(default="", description="Name of the S3 bucket for bodies over 300 KB.")
    queue_url: str = Field(default="", description="URL of the worker's SQS queue.")
    event_bus: str = Field(
        default="", description="EventBridge bus of the stack; completion events are published on it."
    )
    own_functions: str = Field(default="", description="Names of the stack's own functions, which cannot be tools.")

    default_model: str = Field(
        default="bedrock/global.amazon.nova-2-lite-v1:0",
        description="Default model, listed first.",
    )
    models: str = Field(default="", description="More model ids for GET /v1/models.")
    openai_base_url: str = Field(
        default="https://api.openai.com/v1",
        validation_alias=named("OPENAI_BASE_URL"),
        description="Base URL of the server of `openai/` models.",
    )
    openai_api_key: SecretStr = Field(
        default=SecretStr(""),
        validation_alias=named("OPENAI_API_KEY"),
        description="API key for `openai/` models (outside AWS).",
    )
    openai_secret_arn: str = Field(default="", description="Secrets Manager secret with that key (in AWS).")
    bedrock_region: str = Field(default="", description="AWS region of Bedrock; if empty, the function's own.")
    scripted_models: bool = Field(default=False, description="Enable the `scripted/` models, for demos and tests.")
    scripted_word_seconds: float = Field(
        default=0.02, ge=0, description="Pause of the scripted model before each word, in seconds."
    )
    model_stall_seconds: float = Field(
        default=60, description="Longest silence of a model before the turn fails, in seconds."
    )

    registry: str = Field(
        default="", description="Predefined toolgroups, shields and models, as JSON; see docs/tools.md."
    )
    web_search: Literal["tavily", "brave"] = Field(
        default="tavily", description="Search engine of `builtin::websearch`: `tavily` or `brave`."
    )
    tavily_api_key: SecretStr = Field(
        default=SecretStr(""), validation_alias=named("TAVILY_SEARCH_API_KEY"), description="Tavily API key."
    )
    brave_api_key: SecretStr = Field(
        default=SecretStr(""), validation_alias=named("BRAVE_SEARCH_API_KEY"), description="Brave Search API key."
    )
    wolfram_api_key: SecretStr = Field(
        default=SecretStr(""), validation_alias=named("WOLFRAM_ALPHA_API_KEY"), description="Wolfram Alpha API key."
    )
    tavily_base_url: str = Field(default="https://api.tavily.com", description="Base URL of the Tavily API.")
    brave_base_url: str = Field(
        default="https://api.search.brave.com/res/v1", description="Base URL of the Brave Search API."
    )
    wolfram_base_url: str = Field(
        default="https://api.wolframalpha.com/v2", description="Base URL of the Wolfram Alpha API."
    )
    tools_secret_arn: str = Field(
        default="", description="Secrets Manager secret with these three keys, as JSON (in AWS)."
    )
    allowed_hosts: str = Field(
        default="", description="Private hosts and networks that callers' URLs may reach; see docs/tools.md."
    )
    mcp_seconds: float = Field(
        default=30, gt=0, le=840, description="Timeout of MCP tool calls, unless the registration sets one, in seconds."
    )
    tool_result_bytes: int = Field(default=256_000, gt=0, description="Largest tool result sent to a model, in bytes.")

    output_shield_window: int = Field(
        default=0, ge=0, description="Characters between output shield checks; 0: one check at the end."
    )

    lease_seconds: float = Field(
        default=30, gt=0, description="Lease time of a running turn, in seconds; renewed every third of it."
    )
    history_bytes: int = Field(
        default=4_000_000, gt=0, description="Maximum history sent to a model, in bytes of JSON."
    )
    session_expiry_days: float = Field(
        default=30, gt=0, description="Lifetime of a session without persistence, in days."
    )
    unsigned_content_until: date | None = Field(
        default=None,
        description="Last day (UTC, YYYY-MM-DD) to accept unsigned `encrypted_content`.",
    )
    heartbeat_seconds: float = Field(
        default=15, gt=0, description="Silence after which a stream sends a comment line, in seconds."
    )
    agent_cache_seconds: float = Field(
        default=60, ge=0, description="Time that a warm process caches agent configurations, in seconds."
    )
    runtime_api: str = Field(
        default="",
        validation_alias=named("AWS_LAMBDA_RUNTIME_API"),
        description="Set by Lambda; callers' URLs may not reach it.",
    )
    refused_ports: str = Field(
        default="",
        pattern=r"^(\d+-\d+)?$",
        description="Loopback ports that no URL may reach, `first-last`; set by `make run`.",
    )
    cors_origin: str = Field(
        default="", description="Origin that browsers may call from; if empty, no CORS header is sent."
    )

    @property
    def model_ids(self) -> list[str]:
        """Return the ids of the models that are listed from the start, the default one first."""
        return [self.default_model, *(name.strip() for name in self.models.split(",") if name.strip())]


@cache
def load_settings() -> Settings:
    """Read the environment, once per process."""
    return Settings()
