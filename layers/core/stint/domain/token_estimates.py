"""Estimates of the tokens of model calls, before a server counts them and where its count cannot be true."""

import logging

from stint.domain.content import text_of
from stint.domain.inference import AssistantAnswer, InferenceRequest, ModelMessage, SystemText, Usage

logger = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN = 4
ANSWER_TOKENS = 1_000
"""Tokens that are reserved for an answer whose length the request does not limit."""
UNSEEN_TOKENS = 200_000
"""Most tokens of a call besides those of its texts: images, hidden reasoning. No model is known to use as many."""


def estimate(request: InferenceRequest, answer_tokens: int | None = None) -> Usage:
    """Return the tokens that a call will probably use: its texts, and by default the longest answer that it allows."""
    tokens_in = sum(map(length_of, request.messages)) // CHARACTERS_PER_TOKEN + 1
    tokens_out = answer_tokens or request.decoding.max_tokens or ANSWER_TOKENS
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out)


def length_of(message: ModelMessage) -> int:
    """Return the characters of a message's text."""
    return len(message.text if isinstance(message, SystemText | AssistantAnswer) else text_of(message.content))


def believable(usage: Usage, request: InferenceRequest, streamed: int) -> Usage:
    """Return the usage that a provider reported, or an estimate if it cannot be true.

    `streamed` is the number of characters of the answer. A character has at most four tokens, one for each byte.
    """
    silent = usage.output_tokens == 0 and (streamed > 0 or usage.input_tokens == 0)
    if not silent and can_be_true(usage, 0, 0):
        return usage
    sent = len(repr((request.messages, request.tools, request.response_format)))
    longest = 4 * streamed + (request.decoding.max_tokens or 0)
    if not silent and can_be_true(usage, 4 * sent, longest):
        return usage
    logger.warning("A model's provider reported tokens that cannot be true; they are estimated")
    return estimate(request, streamed // CHARACTERS_PER_TOKEN + 1)


def can_be_true(usage: Usage, read: int, written: int) -> bool:
    """Return whether a call whose texts have at most so many tokens can have used those that a server reported.

    A server that is broken or hostile may report any number, which must neither credit nor use up a budget.
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
