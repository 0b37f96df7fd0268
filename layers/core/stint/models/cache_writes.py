"""Estimates of the input that a provider charges for because it keeps it in its cache."""

from stint.domain.inference import InferenceRequest, Usage
from stint.domain.prices import ModelPrice

BEDROCK = "bedrock/"


def with_writes(usage: Usage, request: InferenceRequest, model_id: str, price: ModelPrice) -> Usage:
    """Return an estimate whose input is written to the provider's cache, as it is at most, if the request wants that.

    Models of Bedrock charge for it. Those of other servers usually do not, so it counts for them only if there is a
    price of it. `model_id` has the provider.
    """
    cache, tokens = request.cache, usage.input_tokens
    if cache is None or not (cache.implicit or any(getattr(each, "breakpoints", ()) for each in request.messages)):
        return usage
    lasts = cache.lifetime == "1h"
    own_price = price.cache_write_1h if lasts else price.cache_write
    if own_price is None and not charges(model_id):
        return usage
    return usage.model_copy(update={"cache_write_tokens": tokens, "cache_write_1h_tokens": tokens if lasts else 0})


def charges(model_id: str) -> bool:
    """Return whether a model of Bedrock has a cache, for whose use the adapter asks."""
    if not model_id.startswith(BEDROCK):
        return False
    from stint.models.bedrock.cache_points import places_of  # noqa: PLC0415 - other providers do without Bedrock

    return bool(places_of(model_id.removeprefix(BEDROCK)))
