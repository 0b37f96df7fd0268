"""Whether the usage that a model server reports can be true."""

from stint.domain.inference import Usage

UNSEEN_TOKENS = 200_000
"""Most tokens of a call besides those of its texts: images, hidden reasoning. No model is known to use as many."""


def can_be_true(usage: Usage, read: int, written: int) -> bool:
    """Return whether a call whose texts have at most so many tokens can have used those that a server reported.

    A server that is broken or hostile may report any number, which must neither credit nor use up a budget.
    """
    read, written = read + UNSEEN_TOKENS, written + UNSEEN_TOKENS
    most = (read, read, written, written, read + written)
    inputs, outputs = (usage.input_tokens, usage.cached_tokens), (usage.output_tokens, usage.reasoning_tokens)
    return all(0 <= n <= limit for n, limit in zip((*inputs, *outputs, usage.total_tokens), most, strict=True))
