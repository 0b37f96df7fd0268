"""The tokens of an answer, as servers of OpenAI's APIs count them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from stint.domain.inference import Usage

MOST_TOKENS = 10**12
"""No usage has as many tokens."""


class UsageFields(NamedTuple):
    """The names of the fields of input and output in one of the APIs."""

    input: str
    output: str


CHAT_USAGE = UsageFields("prompt_tokens", "completion_tokens")
RESPONSE_USAGE = UsageFields("input_tokens", "output_tokens")


def read_usage(usage: Mapping[str, Any], fields: UsageFields) -> Usage | None:
    """Read the usage; None if one of its main counts is not a possible number of tokens."""
    prompt, completion, total = (count_of(usage.get(name) or 0) for name in (*fields, "total_tokens"))
    if prompt is None or completion is None or total is None:
        return None
    read, written = usage.get(f"{fields.input}_details"), usage.get(f"{fields.output}_details")
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        total_tokens=total or prompt + completion,
        cached_tokens=_detail(read, "cached_tokens"),
        cache_write_tokens=_detail(read, "cache_write_tokens"),
        reasoning_tokens=_detail(written, "reasoning_tokens"),
    )


def count_of(value: Any) -> int | None:
    """Read a number of tokens; None if it cannot be one. Some servers write it as a fraction, such as 5.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < MOST_TOKENS else None


def _detail(details: Any, name: str) -> int:
    return count_of(details.get(name)) or 0 if isinstance(details, dict) else 0
