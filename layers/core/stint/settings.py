"""Every setting, read from the environment. Nothing else in the package reads it."""

from datetime import date
from functools import cache
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def named(variable: str) -> AliasChoices:
    """Name the environment variable of a setting that bears no STINT_ prefix."""
    return AliasChoices(variable)


class Settings(BaseSettings):
    """Settings of a function, each an environment variable `STINT_<NAME>` unless its alias says otherwise."""

    model_config = SettingsConfigDict(
        env_prefix="STINT_", env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    table: str = Field(default="", description="Name of the DynamoDB table.")
    bucket: str = Field(default="", description="Name of the S3 bucket for bodies over 300 KB.")
    queue_url: str = Field(default="", description="URL of the SQS queue of work for the worker.")
    event_bus: str = Field(default="", description="EventBridge bus of the stack, which gets completion events.")
    own_functions: str = Field(
        default="", description="Names of the stack's own functions, which cannot be tools; commas."
    )

    default_model: str = Field(
        default="bedrock/global.amazon.nova-2-lite-v1:0",
        description="Model that is listed first; its provider also serves listed ids without a prefix.",
    )
    models: str = Field(default="", description="Further model ids that GET /v1/models lists, separated by commas.")
    openai_base_url: str = Field(
        default="https://api.openai.com/v1",
        validation_alias=named("OPENAI_BASE_URL"),
        description="Base URL of the chat-completions server behind `openai/` models.",
    )
    openai_api_key: SecretStr = Field(
        default=SecretStr(""), validation_alias=named("OPENAI_API_KEY"), description="Its key (outside AWS)."
    )
    openai_secret_arn: str = Field(default="", description="Secrets Manager secret that holds the key (in AWS).")
    bedrock_region: str = Field(
        default="", description="AWS region of Bedrock's models and guardrails; empty for that of the function."
    )
    scripted_models: bool = Field(
        default=False, description="Whether `scripted/` models are there, which are for demos and tests."
    )
    scripted_word_seconds: float = Field(default=0.02, ge=0, description="Pause of the scripted model before a word.")
    model_stall_seconds: float = Field(default=60, description="Longest silence of a model before the turn fails.")

    registry: str = Field(
        default="", description="Toolgroups, shields and models there are from the start, as JSON; see docs/tools.md."
    )
    web_search: Literal["tavily", "brave"] = Field(default="tavily", description="Who answers `builtin::websearch`.")
    tavily_api_key: SecretStr = Field(
        default=SecretStr(""), validation_alias=named("TAVILY_SEARCH_API_KEY"), description="Key of Tavily."
    )
    brave_api_key: SecretStr = Field(
        default=SecretStr(""), validation_alias=named("BRAVE_SEARCH_API_KEY"), description="Key of Brave Search."
    )
    wolfram_api_key: SecretStr = Field(
        default=SecretStr(""), validation_alias=named("WOLFRAM_ALPHA_API_KEY"), description="Key of Wolfram Alpha."
    )
    tavily_base_url: str = Field(default="https://api.tavily.com", description="Base URL of Tavily's API.")
    brave_base_url: str = Field(
        default="https://api.search.brave.com/res/v1", description="Base URL of Brave Search's API."
    )
    wolfram_base_url: str = Field(
        default="https://api.wolframalpha.com/v2", description="Base URL of Wolfram Alpha's API."
    )
    tools_secret_arn: str = Field(default="", description="Secret with the three keys above, as JSON (in AWS).")
    allowed_hosts: str = Field(
        default="", description="Hosts, host:port and networks that callers' URLs may reach though not public; commas."
    )
    mcp_seconds: float = Field(
        default=30, gt=0, le=840, description="Time-out of a call of an MCP tool whose registration has none."
    )
    tool_result_bytes: int = Field(default=256_000, gt=0, description="Most of a tool's result that a model gets.")

    output_shield_window: int = Field(
        default=0, ge=0, description="Characters between checks by output shields; 0 checks the whole answer at once."
    )

    lease_seconds: float = Field(default=30, gt=0, description="How long a running turn holds its session unrenewed.")
    history_bytes: int = Field(default=4_000_000, gt=0, description="Most history, in bytes of JSON, sent to a model.")
    session_expiry_days: float = Field(default=30, gt=0, description="Life of a session without persistence.")
    unsigned_content_until: date | None = Field(
        default=None,
        description="Last day (UTC, YYYY-MM-DD) on which `encrypted_content` from before signatures is accepted.",
    )
    heartbeat_seconds: float = Field(default=15, gt=0, description="Silence after which a stream gets a comment line.")
    agent_cache_seconds: float = Field(default=60, ge=0, description="How long a warm process keeps agent configs.")
    runtime_api: str = Field(
        default="", validation_alias=named("AWS_LAMBDA_RUNTIME_API"), description="Set by Lambda; no URL may reach it."
    )
    refused_ports: str = Field(
        default="",
        pattern=r"^(\d+-\d+)?$",
        description="Ports of loopback that no URL may reach, `first-last`; set by the local cloud.",
    )
    cors_origin: str = Field(default="", description="Origin that browsers may call from; empty sends no CORS header.")

    @property
    def model_ids(self) -> list[str]:
        """Return the ids of the models that are listed from the start, the default one first."""
        return [self.default_model, *(name.strip() for name in self.models.split(",") if name.strip())]


@cache
def load_settings() -> Settings:
    """Read the environment, once a process."""
    return Settings()
