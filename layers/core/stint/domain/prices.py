"""Prices of models and of the infrastructure, in US dollars.

The setting STINT_PRICES has them by patterns of model ids. A model that no pattern matches has no price, which is not a
price of 0: callers with a limit of money cannot use it.
"""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from stint.dataclasses import dataclass, field
from stint.domain.errors import ModelError, ModelUnauthorized, ModelUnreachable
from stint.domain.inference import DEFAULT_TIER, Usage
from stint.domain.validation import describe_faults

MILLION = 1_000_000
BAD_REQUEST = 400
MOST_DOLLARS = 1_000_000_000
MOST_RATIO = 100
FLEX, PRIORITY = "flex", "priority"
TOKEN_PRICES = ("input", "output", "cached_input", "cache_write", "cache_write_1h")
DEARER_TIERS = frozenset({PRIORITY, "fast", "ultrafast"})
PricedTier = Annotated[str, Field(pattern=r"^(flex|priority|fast|ultrafast)$")]
Ratio = Annotated[float, Field(ge=0, le=MOST_RATIO, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, le=MOST_DOLLARS, allow_inf_nan=False)]


WRITE_RATIO, HOUR_RATIO = 1.25, 2
"""Prices of input that Claude's models write to a cache for five minutes, and for an hour, per price of other input."""


FLEX_RATIO, PRIORITY_RATIO = 0.5, 2.5
"""Prices in the tiers flex and priority, per standard price. Flex is half of it with AWS and OpenAI. Priority is 1.75
times as much with AWS, and 1.75 to 2.5 times with OpenAI."""
PREPAID = frozenset({DEFAULT_TIER, "scale", "reserved"})
"""Tiers with the standard price. The capacity of the last two is paid for beforehand."""
KNOWN_TIERS = DEARER_TIERS | PREPAID | {FLEX}


def tier_to_bill(asked: str | None, served: str | None) -> str:
    """Return the tier whose price counts. If no tier is reported, the dearer one of two counts.

    So the price of flex counts only if it was asked for and has served. A name of another kind, such as `on_demand`,
    is a server's own for the tier that it was asked for.
    """
    tier = (served if served in KNOWN_TIERS else asked) or DEFAULT_TIER
    return DEFAULT_TIER if tier == FLEX and not asked == served == FLEX else tier


class ModelPrice(BaseModel):
    """The price of a model's tokens, in dollars per million, and of each image that it generates."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    """Input that is read from a cache; by default as much as other input."""
    cache_write: Dollars | None = None
    """Input that is written to a cache for five minutes; by default as much more as for Claude's models
    (https://aws.amazon.com/bedrock/pricing/)."""
    cache_write_1h: Dollars | None = None
    """Input that is written to a cache for an hour, with the same default."""
    image: Dollars = 0.0
    """Dollars of one image."""
    tiers: Mapping[PricedTier, Ratio] = Field(default_factory=dict)
    """The prices in other service tiers, per standard price."""

    def ratio_of(self, tier: str) -> float:
        """Return the price in a service tier, per standard price. One that is not known costs as much as priority."""
        if tier in PREPAID:
            return 1.0
        default = FLEX_RATIO if tier == FLEX else self.tiers.get(PRIORITY, PRIORITY_RATIO)
        return self.tiers.get(tier, default)

    def in_tier(self, tier: str) -> "ModelPrice":
        """Return the price in a service tier."""
        ratio = self.ratio_of(tier)
        if ratio == 1:
            return self
        prices = {name: getattr(self, name) for name in TOKEN_PRICES}
        return self.model_copy(
            update={name: price * ratio for name, price in prices.items() if price is not None} | {"tiers": {}}
        )

    def cost_of(self, usage: Usage, images: int = 0) -> float:
        """Return the dollars of a model call that generates so many images."""
        cached, written, hour = usage.cached_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens
        parts = (
            (max(usage.input_tokens - cached - written, 0), self.input),
            (cached, self.input if self.cached_input is None else self.cached_input),
            (max(written - hour, 0), self.input * WRITE_RATIO if self.cache_write is None else self.cache_write),
            (hour, self.input * HOUR_RATIO if self.cache_write_1h is None else self.cache_write_1h),
            (usage.output_tokens, self.output),
        )
        return sum(tokens * price for tokens, price in parts) / MILLION + images * self.image


class InfrastructurePrices(BaseModel):
    """List prices of AWS in us-east-1, on arm64: dollars per million units or requests, and per GB-second.

    `agentcore_seconds` is the price of a second of a session of AgentCore, which AWS bills by CPU time and memory.

    https://aws.amazon.com/dynamodb/pricing/on-demand/ and https://aws.amazon.com/lambda/pricing/
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    write_units: Dollars = 0.625
    read_units: Dollars = 0.125
    invocations: Dollars = 0.20
    gb_seconds: Dollars = 0.0000133334
    agentcore_seconds: Dollars = 0.0

    def cost_of(self, write_units: int, read_units: float, milliseconds: int, memory_mb: int) -> float:
        """Return the dollars of one invocation, with its units."""
        storage = write_units * self.write_units + read_units * self.read_units
        return storage / MILLION + self.cost_of_invocation(milliseconds, memory_mb)

    def cost_of_invocation(self, milliseconds: int, memory_mb: int) -> float:
        """Return the dollars of one invocation of a function, by its time."""
        return self.invocations / MILLION + milliseconds / 1000 * memory_mb / 1024 * self.gb_seconds


IN_PROCESS = ("hashed/", "local/", "scripted/")
"""Providers of models that run in the function. They cost nothing besides its time."""
DEFAULT = "*"
"""The pattern of the default price, which is not one of models that run in the function."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The known prices. `models` has them by pattern of the model id; the first pattern that matches applies.

    Patterns match the characters of an id as they are. Whether a provider takes another spelling of an id for the same
    model, such as one in other letters, is not known, so it has no price.
    """

    models: Mapping[str, ModelPrice] = field(default_factory=dict)
    infrastructure: InfrastructurePrices = field(default_factory=InfrastructurePrices)

    def find(self, model_id: str) -> ModelPrice | None:
        """Return the price of a model, by its id with the provider; None if it is not known."""
        # A default for all models is meant for those that a provider bills.
        in_process = model_id.startswith(IN_PROCESS)
        for pattern, price in self.models.items():
            if fnmatchcase(model_id, pattern) and not (in_process and pattern == DEFAULT):
                return price
        return ModelPrice(input=0, output=0) if in_process else None


INFRASTRUCTURE = "infrastructure"


@cache
def parse_prices(text: str) -> Prices:
    """Read the setting STINT_PRICES. Raises ValueError, which names the invalid part."""
    if not text:
        return Prices()
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise ValueError("STINT_PRICES is malformed: it must be a JSON object of patterns of models and their prices")
    try:
        infrastructure = InfrastructurePrices.model_validate(entries.pop(INFRASTRUCTURE, {}))
        models = TypeAdapter(dict[str, ModelPrice]).validate_python(entries)
    except ValidationError as error:
        raise ValueError(f"STINT_PRICES is malformed: {describe_faults(error)}") from None
    return Prices(models, infrastructure)


def is_free(error: BaseException) -> bool:
    """Return whether a provider charges nothing for a call that ended in an error: it refused it, or never got it."""
    match error:
        case ModelUnauthorized() | ModelUnreachable():
            return True
        case ModelError(upstream_status=int(status)):
            return status >= BAD_REQUEST
    return False
