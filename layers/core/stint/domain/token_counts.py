"""Estimates of tokens, and the check whether the counts of a provider can be true.

A server that is broken or hostile may report any number. One that cannot be true is replaced by an estimate, so that it
neither credits nor uses up a budget.
"""

import logging

from stint.domain.content import text_of
from stint.domain.inference import AssistantAnswer, InferenceRequest, ModelMessage, SystemText, Usage

logger = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN = 4
ANSWER_TOKENS = 1_000
"""Tokens that are reserved for an answer whose length the request does not limit."""
UNSEEN_TOKENS = 200_000
"""Most tokens of a call besides those of its texts: images, hidden reasoning. No model is known to use as many."""


def estimate_usage(request: InferenceRequest, answer_tokens: int | None = None) -> Usage:
    """Return the tokens that a call will probably use: its texts, and by default the longest answer that it allows."""
    tokens_in = sum(map(length_of, request.messages)) // CHARACTERS_PER_TOKEN + 1
    tokens_out = answer_tokens or request.decoding.max_tokens or ANSWER_TOKENS
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out)


def length_of(message: ModelMessage) -> int:
    """Return the characters of a message's text."""
    return len(message.text if isinstance(message, SystemText | AssistantAnswer) else text_of(message.content))


def bytes_of(text: str) -> int:
    """Return the bytes of a text in UTF-8, of which a token has about four in every script."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def believable(usage: Usage, request: InferenceRequest, streamed: int) -> Usage:
    """Return the usage that a provider reported for a call, or an estimate if it cannot be true.

    `streamed` is the number of characters of the answer.
    """
    tokens = (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens, usage.total_tokens)
    if min(tokens) >= 0 and max(tokens) <= UNSEEN_TOKENS:
        return usage
    # A character has at most four tokens, one for each of its bytes.
    read = UNSEEN_TOKENS + 4 * len(repr((request.messages, request.tools, request.response_format)))
    written = UNSEEN_TOKENS + 4 * streamed + (request.decoding.max_tokens or 0)
    most = (read, read, written, written, read + written)
    if all(0 <= count <= limit for count, limit in zip(tokens, most, strict=True)):
        return usage
    logger.warning("A model's provider reported tokens that cannot be true; they are estimated")
    return estimate_usage(request, streamed // CHARACTERS_PER_TOKEN + 1)


def believable_tokens(tokens: int, characters: int) -> bool:
    """Return whether a call without an answer can have had so many input tokens, for a text of so many characters."""
    return 0 <= tokens <= UNSEEN_TOKENS + 4 * characters
