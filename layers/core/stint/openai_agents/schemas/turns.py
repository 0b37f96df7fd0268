"""Turns of OpenAI's Agents API. Times are Unix seconds."""

from typing import Literal

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.schema import Request, Schema

PublicTurnStatus = Literal["queued", "in_progress", "waiting", "completed", "failed", "cancelled"]
TurnErrorCode = Literal[
    "context_length_exceeded",
    "max_output_tokens",
    "usage_limit_exceeded",
    "rate_limit_exceeded",
    "server_overloaded",
    "connection_failed",
    "server_error",
    "authentication_error",
    "invalid_request",
    "resource_not_found",
    "request_timeout",
    "internal_error",
]
"""The codes that this server uses. OpenAI has more of them."""


class CachedTokens(Schema):
    cached_tokens: int = 0


class ReasoningTokens(Schema):
    reasoning_tokens: int = 0


class AgentUsage(Schema):
    """The tokens of the model calls of a turn, or of all turns of a session."""

    input_tokens: int
    input_tokens_details: CachedTokens = Field(default_factory=CachedTokens)
    output_tokens: int
    output_tokens_details: ReasoningTokens = Field(default_factory=ReasoningTokens)
    total_tokens: int


class AgentCacheOptions(Request):
    """The lifetime of the prompt cache, a hint."""

    ttl: Literal["30m", "12h"]


class AgentTurnError(Schema):
    code: TurnErrorCode
    message: str


class AgentTurnObject(Schema):
    """A turn of a session. `error` is null unless it failed."""

    id: str
    object: Literal["agent.session.turn"] = "agent.session.turn"
    session_id: str
    agent_id: str
    subagent_id: None = None
    status: PublicTurnStatus
    created_at: int
    started_at: int | None = None
    completed_at: int | None = None
    error: AgentTurnError | None = None
    usage: AgentUsage | None = None
    prompt_cache_options: Omitted[AgentCacheOptions] = None
