"""The settings, read from the environment. No other module of the package reads it.

Everything is composed from the settings that are passed in, so a test or a command makes its own (`check_settings`).
They are read once per process, when the first request or the init phase needs them, never at an import.

Each setting is one text. Large ones are JSON, or the reference of an object that has it (`LARGE`), which `bootstrap/`
reads and puts in its place (`replace_texts`). Values are checked here as far as that needs nothing else, so that a
malformed one stops the process at its start.

An error names the variables and never contains a value, since some are secrets; representations hide them
(`SecretStr`), and keys of `STINT_PROVIDERS` are looked up by name (`key_in`).
"""

import os
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, ValidationError, field_validator

from stint.domain.validation import message_of

OTHER_NAMES = {
    "openai_base_url": "OPENAI_BASE_URL",
    "openai_api_key": "OPENAI_API_KEY",
    "tavily_api_key": "TAVILY_SEARCH_API_KEY",
    "brave_api_key": "BRAVE_SEARCH_API_KEY",
    "wolfram_api_key": "WOLFRAM_ALPHA_API_KEY",
    "runtime_api": "AWS_LAMBDA_RUNTIME_API",
    "memory_mb": "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "service_name": "OTEL_SERVICE_NAME",
    "otlp_endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT",
    "otlp_traces_endpoint": "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "otlp_headers": "OTEL_EXPORTER_OTLP_HEADERS",
    "otlp_timeout": "OTEL_EXPORTER_OTLP_TIMEOUT",
}
"""Environment variables without the prefix STINT_, by setting. The other variables are `STINT_<NAME>`."""

LARGE = ("prices", "tenants", "providers", "registry")
"""Settings that may be references to objects, because the variables of a function are limited to 4 KB."""


ISSUER = r"^(https://[^\s?#]+|http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?(/[^\s?#]*)?)?$"
"""Issuers have https URLs, and http ones on this machine only."""

ALGORITHMS = r"^((RS|PS|ES)(256|384|512)|EdDSA)(,((RS|PS|ES)(256|384|512)|EdDSA))*$"
"""Algorithms with public keys only. A symmetric one would accept the issuer's public key as a secret."""

RECEIVER = r"^(https?://[^\s#]+)?$"
"""URLs of receivers of traces, which operators set: they may be in a private network."""

MOST_CACHED = 16_000_000
"""Maximum bytes of a cache of what runs have stored."""

TENANT_OR_NONE = r"^([a-z0-9][a-z0-9-]{0,31})?$"


class SettingsError(ValueError):
    """An environment variable has an invalid value."""


class Settings(BaseModel):
    """The settings of a function. Each is an environment variable; an empty one means the default."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True, protected_namespaces=()
    )

    table: str = Field(default="", description="Name of the DynamoDB table.")
    key_layout: Literal["compatible", "spread"] = Field(
        default="compatible",
        description="Keys of records: `compatible` with the release before, or `spread`; see docs/production.md.",
    )
    keys_table: str = Field(default="", description="Name of the DynamoDB table of API keys.")
    bucket: str = Field(default="", description="Name of the S3 bucket for bodies over 300 KB.")
    queue_url: str = Field(default="", description="URL of the worker's SQS queue.")
    schedule_group: str = Field(
        default="",
        pattern=r"^[0-9a-zA-Z_.-]{0,64}$",
        description="Group of EventBridge Scheduler for automations; if empty, there are none.",
    )
    schedule_role_arn: str = Field(
        default="", description="Role with which its schedules send tasks to the worker's queue."
    )
    event_bus: str = Field(
        default="", description="EventBridge bus on which completion events are published; if empty, none are."
    )
    own_functions: str = Field(default="", description="Names of the stack's own functions, which cannot be tools.")

    auth: Literal["authorizer", "iam", "none"] = Field(
        default="authorizer", description="Source of callers' identities; `make build AUTH=...` sets it."
    )
    data_role_arn: str = Field(
        default="", description="Role assumed for each tenant's data; if empty, the function's own is used."
    )
    iam_roles: str = Field(
        default="", description="Roles that may call with `AUTH=iam`, as JSON; see docs/security.md."
    )

    oidc_issuer: str = Field(default="", pattern=ISSUER, description="OpenID Connect issuer whose tokens are accepted.")
    oidc_audience: str = Field(default="", description="Audience of these tokens.")
    oidc_algorithms: str = Field(
        default="RS256,ES256", pattern=ALGORITHMS, description="Accepted signature algorithms."
    )
    oidc_tenant: str = Field(
        default="", pattern=TENANT_OR_NONE, description="Tenant of all tokens, without `STINT_OIDC_TENANT_CLAIM`."
    )
    oidc_tenant_claim: str = Field(default="", description="Claim with the tenant.")
    oidc_subject_claim: str = Field(default="sub", description="Claim with the subject.")
    oidc_scopes_claim: str = Field(default="scope", description="Claim with the scopes.")
    oidc_scope_prefix: str = Field(default="", description="Beginning of the names of this API's scopes in tokens.")
    oidc_models_claim: str = Field(
        default="", description="Claim with the patterns of allowed models; if empty, all models."
    )

    operator_tenant: str = Field(
        default="default", description="Tenant whose admins manage all keys; see docs/security.md."
    )

    max_key_days: int = Field(
        default=90, ge=1, le=3_650, description="Lifetime, in days, of API keys that an admin creates without a key."
    )

    october_api: bool = Field(default=True, description="Serve the API of October 2024; see docs/october-2024.md.")

    default_model: str = Field(
        default="bedrock/global.amazon.nova-2-lite-v1:0",
        description="Default model, listed first.",
    )
    models: str = Field(default="", description="More model ids for GET /v1/models.")
    openai_base_url: str = Field(
        default="https://api.openai.com/v1",
        description="Base URL of the server of `openai/` models.",
    )
    openai_api_key: SecretStr = Field(
        default=SecretStr(""),
        description="API key for `openai/` models (outside AWS).",
    )
    openai_secret_arn: str = Field(default="", description="Secrets Manager secret with that key (in AWS).")
    embedding_model: str = Field(
        default="hashed/words-384",
        description="Default embedding model. `hashed/` compares words only.",
    )
    image_model: str = Field(
        default="",
        description="Model of `builtin::photogen` and image generation; if empty, there is none.",
    )
    bedrock_region: str = Field(default="", description="AWS region of Bedrock; if empty, the function's own.")
    prompt_cache: Literal["5m", "1h", "off"] = Field(
        default="5m",
        description="Lifetime of input in Bedrock's cache: `5m`, `1h` or `off` (only on request).",
    )
    hide_cached_tokens: bool = Field(
        default=False, description="Hide the use of a provider's cache; see docs/security.md."
    )
    scripted_models: bool = Field(default=False, description="Enable the `scripted/` models, for demos and tests.")
    scripted_word_seconds: float = Field(
        default=0.02, ge=0, description="Pause of the scripted model before each word, in seconds."
    )
    model_stall_seconds: float = Field(
        default=60, description="Longest silence of a model before the turn fails, in seconds."
    )

    providers: str = Field(default="", description="More model servers, as JSON; see docs/models.md.")
    registry: str = Field(
        default="", description="Predefined toolgroups, shields and models, as JSON; see docs/tools.md."
    )
    web_search: Literal["tavily", "brave"] = Field(
        default="tavily", description="Search engine of `builtin::websearch`: `tavily` or `brave`."
    )
    tavily_api_key: SecretStr = Field(default=SecretStr(""), description="Tavily API key.")
    brave_api_key: SecretStr = Field(default=SecretStr(""), description="Brave Search API key.")
    wolfram_api_key: SecretStr = Field(default=SecretStr(""), description="Wolfram Alpha API key.")
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
    credentials_key_arn: str = Field(
        default="", description="KMS key that encrypts credentials of toolgroups, and secrets of webhook endpoints."
    )
    sandbox_function: str = Field(
        default="", description="Lambda function that runs code of models; if empty, none is run."
    )
    agentcore_interpreter: str = Field(
        default="", description="Id of a code interpreter of AgentCore that runs code instead."
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

    prices: str = Field(default="", description="Prices of models, as JSON; see docs/budgets.md.")
    tenants: str = Field(default="", description="Limits of tenants, as JSON; see docs/budgets.md.")
    usage_sums: bool = Field(default=False, description="Sum usage for GET /v1/usage.")
    traces: Literal["off", "xray"] = Field(
        default="off", description="`xray` sends traces to X-Ray; see docs/traces.md."
    )
    otlp_endpoint: str = Field(
        default="", pattern=RECEIVER, description="Base URL of a receiver of traces, without `/v1/traces`."
    )
    otlp_traces_endpoint: str = Field(
        default="", pattern=RECEIVER, description="URL of a receiver of traces, which replaces the base URL."
    )
    otlp_headers: SecretStr = Field(
        default=SecretStr(""),
        description="Headers for that receiver, `name=value` with commas (outside AWS).",
    )
    traces_secret_arn: str = Field(default="", description="Secrets Manager secret with these headers (in AWS).")
    otlp_timeout: int = Field(
        default=2_000, ge=1, le=10_000, description="Time for sending a trace, in milliseconds; then it is lost."
    )
    traces_content: bool = Field(default=False, description="Send prompts, arguments and results with traces.")
    service_name: str = Field(default="stint", description="Name of the service in traces.")

    memory_mb: int = Field(default=0, ge=0, description="Set by Lambda: memory of the function, in MB.")

    lease_seconds: float = Field(
        default=30, gt=0, description="Lease time of a running turn, in seconds; renewed every third of it."
    )
    find_retries: bool = Field(
        default=True, description="Answer a retry with what its first attempt created (docs/retries.md)."
    )
    history_bytes: int = Field(
        default=4_000_000, gt=0, description="Maximum history sent to a model, in bytes of JSON."
    )
    transcript_cache_bytes: int | None = Field(
        default=None, ge=0, description="Memory for transcripts, in bytes; if empty, see docs/memory.md."
    )
    session_expiry_days: float = Field(
        default=30, gt=0, description="Lifetime of a session without persistence, in days."
    )
    retention_days: float = Field(
        default=0,
        ge=0,
        le=30,
        description="Default lifetime of stored objects, in days; 0: no end.",
    )
    unsigned_content_until: date | None = Field(
        default=None,
        description="Last day (UTC, YYYY-MM-DD) to accept unsigned `encrypted_content`.",
    )
    max_request_bytes: int = Field(
        default=6_291_456,
        gt=0,
        le=6_291_456,
        description="Largest body of a request, in bytes; at most Lambda's 6 MB.",
    )
    max_fetched_bytes: int = Field(
        default=10_000_000,
        ge=100_000,
        le=10_000_000,
        description="Largest document, image or tool answer that is fetched, in bytes.",
    )
    heartbeat_seconds: float = Field(
        default=15, gt=0, description="Silence after which a stream sends a comment line, in seconds."
    )
    session_stream_seconds: float = Field(
        default=300,
        gt=0,
        le=900,
        description="Longest stream of a session of the OpenAI Agents API, in seconds.",
    )
    session_stream_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Part of that time in which the stream takes new input.",
    )
    agent_cache_seconds: float = Field(
        default=60, ge=0, description="Time that a warm process caches agent configurations, in seconds."
    )
    vector_index: Literal["packed", "s3-vectors"] = Field(
        default="packed", description="Index of vector stores: `packed` (the bucket) or `s3-vectors`."
    )
    second_vector_index: Literal["", "packed", "s3-vectors"] = Field(
        default="", description="Another index, which stores can name as their provider."
    )
    vector_bucket: str = Field(default="", description="Vector bucket of the index `s3-vectors`.")
    packed_bytes: int = Field(
        default=64_000_000, gt=0, description="Memory of a process for `packed` vector stores, in bytes."
    )
    runtime_api: str = Field(
        default="",
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

    _variables: dict[str, str] = PrivateAttr(default_factory=dict)

    @field_validator(*LARGE)
    @classmethod
    def check_reference(cls, value: str) -> str:
        """Refuse a malformed reference to an object."""
        if is_reference(value):
            from stint.domain.setting_objects import parse_reference  # noqa: PLC0415 - few stacks have one

            parse_reference(value)
        return value

    @property
    def references(self) -> dict[str, str]:
        """Return the references of the large settings that name an object, by setting."""
        return {name: value for name in LARGE if is_reference(value := getattr(self, name))}

    def key_in(self, variable: str) -> str:
        """Return the value of a variable that STINT_PROVIDERS names; empty if it is not set."""
        return self._variables.get(variable, "")

    @property
    def cache_bytes(self) -> int:
        """Return the bound of each cache of what runs have stored: 1/32 of the function's memory, at most 16 MB."""
        return min(self.memory_mb * 1_000_000 // 32, MOST_CACHED) if self.memory_mb else MOST_CACHED

    @property
    def transcript_bytes(self) -> int:
        """Return the bound of the cache of transcripts."""
        return self.cache_bytes if self.transcript_cache_bytes is None else self.transcript_cache_bytes

    @property
    def runs_code(self) -> bool:
        """Return whether code of models is run."""
        return bool(self.sandbox_function or self.agentcore_interpreter)

    @property
    def has_local_embeddings(self) -> bool:
        """Return whether the default embedding model is the local one, an optional installation."""
        return self.embedding_model.startswith("local/")

    @field_validator("prices")
    @classmethod
    def check_prices(cls, text: str) -> str:
        """Refuse malformed prices at the start of the process, not with each request."""
        if text and not is_reference(text):
            from stint.domain.prices import parse_prices  # noqa: PLC0415 - few stacks have prices

            parse_prices(text)
        return text

    @field_validator("tenants")
    @classmethod
    def check_tenants(cls, text: str) -> str:
        """Refuse malformed limits of tenants, as malformed prices."""
        if text and not is_reference(text):
            from stint.domain.tenant_limits import parse_tenants  # noqa: PLC0415 - few stacks have tenants

            parse_tenants(text)
        return text

    @field_validator("otlp_headers")
    @classmethod
    def check_headers(cls, headers: SecretStr) -> SecretStr:
        """Refuse malformed headers at the start of the process. A trace with them would be lost each time."""
        if text := headers.get_secret_value():
            from stint.domain.otlp_headers import parse_headers  # noqa: PLC0415 - few stacks send traces

            parse_headers(text)
        return headers

    @property
    def traces_url(self) -> str:
        """Return the URL to which traces are sent; empty for none."""
        base = self.otlp_endpoint.rstrip("/")
        return self.otlp_traces_endpoint or (f"{base}/v1/traces" if base else "")

    @property
    def sends_traces(self) -> bool:
        return bool(self.traces_url) or self.traces == "xray"

    @property
    def vector_indexes(self) -> list[str]:
        """Return the indexes of vector stores, the default one first."""
        return list(dict.fromkeys(filter(None, (self.vector_index, self.second_vector_index))))

    @property
    def model_ids(self) -> list[str]:
        """Return the ids of the models that are listed from the start, the default one first."""
        return [self.default_model, *(name.strip() for name in self.models.split(",") if name.strip())]


@cache
def load_settings() -> Settings:
    """Read the environment, once per process. Raises SettingsError."""
    return read_settings(os.environ)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings of an environment.

    Raises:
        SettingsError: values are invalid. It names the variables, and contains no value.
    """
    # An empty variable is the same as none: a template sets all of them.
    values = {name: value for name in Settings.model_fields if (value := environment.get(variable_of(name)))}
    settings = check_settings(values)
    if settings.providers:
        # Only with providers: they name variables of their own.
        settings._variables.update({name: value for name, value in environment.items() if name.startswith("STINT_")})
    return settings


def check_settings(values: Mapping[str, object]) -> Settings:
    """Return the settings with these values. Raises SettingsError."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        problems = [f"{variable_of(str(each['loc'][0]))}: {message_of(each)}" for each in error.errors()]
        raise SettingsError(f"Invalid environment variables. {'; '.join(problems)}") from None


def replace_texts(settings: Settings, texts: Mapping[str, str]) -> Settings:
    """Return the settings with other texts. Raises SettingsError if one is malformed."""
    replaced = check_settings({**dict(settings), **texts})
    # They are not a field, so a validated copy does not have them.
    replaced._variables.update(settings._variables)
    return replaced


def is_reference(value: str) -> bool:
    """Return whether a large setting names an object (`domain/setting_objects.py`). Otherwise it is JSON."""
    return value.startswith(("s3:", "ssm:"))


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return OTHER_NAMES.get(name, f"STINT_{name.upper()}")
