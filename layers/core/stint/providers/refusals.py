"""Reading of providers' error messages in all protocols."""

import re
from datetime import UTC, datetime

REFUSED_STATUSES = frozenset({400, 404, 413, 422})
"""Statuses of requests that fail again when they are repeated."""

LONGEST_MESSAGE = 500
LONGEST_RETRY_AFTER = 3600.0
TOO_LONG = re.compile(
    r"context[ _-](?:length|window|size)|maximum (?:context|model|prompt) length|prompt is too long"
    r"|too many input tokens|input tokens exceed|number of input tokens"
    r"|input (?:is too long|length (?:exceeds|and `?max))",
    re.IGNORECASE,
)

FIELDS = {
    field: re.compile(pattern)
    for field, pattern in {
        "model": r"\b(?:model identifier|model ID|modelId|on-demand throughput)\b",
        "max_tokens": r"\b(?:max_tokens|maxTokens|max_completion_tokens|maximum tokens)\b",
        "top_p": r"\b(?:top_p|topP)\b",
        "stop": r"\b(?:stop_sequences|stopSequences)\b",
        "tool_choice": r"\b(?:tool_choice|toolChoice)\b",
        "tools": r"\btool(?:s|Config|Spec)\b",
        "response_format": r"\b(?:response_format|outputConfig|json_schema)\b",
        "temperature": r"\btemperature\b",
        "service_tier": r"\bservice_tier\b",
        "messages": r"\bmessages\b",
    }.items()
}
"""Words that identify a field in messages without `param`."""


def is_about_length(text: str) -> bool:
    """Return whether an error says that the messages do not fit (OpenAI, vLLM, Ollama, llama.cpp, Bedrock)."""
    return TOO_LONG.search(text) is not None


def shorten(message: str) -> str:
    """Cut a message after 500 characters, because some providers return whole pages."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}..."


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds, at most an hour, of a Retry-After in seconds or as a date (RFC 9110, section 10.2.3)."""
    if value is None:
        return None
    if re.fullmatch(r"\d+(?:\.\d+)?", value):
        return min(float(value), LONGEST_RETRY_AFTER)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few servers send a date

    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def find_field(words: str) -> str | None:
    """Return the field that an error is about, under its name in chat completions; None if it names none."""
    return next((field for field, pattern in FIELDS.items() if pattern.search(words)), None)
