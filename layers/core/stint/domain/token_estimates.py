"""Estimates of the tokens of model calls, before a server counts them and where its count cannot be true.

They decide about money, so they count all that a model reads, as a token for four characters, and bound what a server
may report from both sides.
"""

import json
import logging
from collections.abc import Iterable
from typing import Any

from stint.domain.content import text_of
from stint.domain.inference import AssistantAnswer, InferenceRequest, ModelMessage, Reasoning, SystemText, Usage

logger = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN = 4
ANSWER_TOKENS = 1_000
"""Tokens that are reserved for an answer whose length the request does not limit."""
UNSEEN_TOKENS = 200_000
"""Most tokens of a call besides those of its texts: images, hidden reasoning. No model is known to use as many."""
LONGEST_TOKEN = 128
"""Characters of the longest tokens of known vocabularies."""
LIMIT_MARGIN = 1_000
"""Tokens that an answer may have above its limit, because some servers do not count all of them for it."""


def estimate_input(request: InferenceRequest) -> int:
    """Return the tokens that the input of a call probably has: its texts, calls, reasoning, tools and format."""
    length = sum(map(length_of, request.messages))
    length += sum(length_of_json((tool.name, tool.description, tool.parameters)) for tool in request.tools)
    if request.response_format is not None:
        length += len(request.response_format.model_dump_json())
    return length // CHARACTERS_PER_TOKEN + 1


def length_of(message: ModelMessage) -> int:
    """Return the characters of a message that a model reads, without images. Encrypted reasoning is a part of them."""
    match message:
        case SystemText(text=text):
            return len(text)
        case AssistantAnswer(text=text, tool_calls=calls, reasoning=reasoning):
            return (
                len(text)
                + length_of_reasoning(reasoning)
                + sum(len(call.tool_name) + len(call.arguments_json or str(call.arguments)) for call in calls)
            )
    return len(text_of(message.content))


def length_of_reasoning(reasoning: Reasoning | None) -> int:
    """Return the characters of an earlier answer's reasoning in all of its forms."""
    if reasoning is None:
        return 0
    return sum(map(len, (reasoning.text, reasoning.signature, reasoning.redacted, reasoning.late)))


def length_of_json(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def usage_of(tokens_in: int, tokens_out: int) -> Usage:
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out)


def believable(
    usage: Usage, tokens_in: int, streamed: int, limit: int | None, messages: Iterable[ModelMessage] = ()
) -> Usage:
    """Return the usage that a provider reported, or an estimate if it cannot be true.

    `tokens_in` is the estimate of the input, `streamed` the number of characters of the answer, and `limit` the longest
    answer that the provider was asked for. The earlier reasoning in `messages` may not have been sent: adapters omit
    that of other models.
    """
    read = CHARACTERS_PER_TOKEN * (tokens_in - 1)
    least_out = max(streamed // LONGEST_TOKEN, min(streamed, 1))
    most_out = 4 * streamed + UNSEEN_TOKENS if limit is None else max(4 * streamed, limit) + LIMIT_MARGIN
    if (
        can_be_true(usage, 4 * read, 4 * streamed)
        and usage.total_tokens > 0
        and usage.input_tokens >= usage.cached_tokens + usage.cache_write_tokens
        and (
            usage.input_tokens >= read // LONGEST_TOKEN
            or usage.input_tokens >= (read - reasoning_in(messages)) // LONGEST_TOKEN
        )
        and least_out <= usage.output_tokens <= most_out
    ):
        return usage
    logger.warning("A model's provider reported tokens that cannot be true; they are estimated")
    return usage_of(tokens_in, streamed // CHARACTERS_PER_TOKEN + 1)


def reasoning_in(messages: Iterable[ModelMessage]) -> int:
    """Return the characters of the reasoning of earlier answers."""
    return sum(length_of_reasoning(each.reasoning) for each in messages if isinstance(each, AssistantAnswer))


def can_be_true(usage: Usage, read: int, written: int) -> bool:
    """Return whether a call whose texts have at most so many tokens can have used those that a server reported.

    A server that is broken or hostile may report any number, which must neither credit nor use up a budget. A character
    has at most four tokens, one for each byte.
    """
    most_read, most_written = read + UNSEEN_TOKENS, written + UNSEEN_TOKENS
    inputs = (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens)
    outputs = (usage.output_tokens, usage.reasoning_tokens)
    return (
        all(0 <= count <= most_read for count in inputs)
        and all(0 <= count <= most_written for count in outputs)
        and 0 <= usage.cache_write_1h_tokens <= usage.cache_write_tokens
        and 0 <= usage.total_tokens <= most_read + most_written
    )
