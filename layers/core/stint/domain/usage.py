"""Sums of usage as the API returns them."""

from typing import Literal

from pydantic import Field

from stint.dataclasses import dataclass
from stint.domain.fields import Omitted
from stint.domain.inference import CACHE_COUNTS
from stint.domain.schema import Schema

UsageGroup = Literal["day", "key", "subject", "agent", "session", "model"]


@dataclass(frozen=True, slots=True)
class UsageSource:
    """The origin of usage: an API key, an agent, a session or conversation, a caller and a model; empty: there is none.

    `subject` is the caller's own name: that of the key's owner, of a token, or of a role. `model_id` has the provider.
    """

    key_id: str = ""
    agent_id: str = ""
    session_id: str = ""
    subject: str = ""
    model_id: str = ""


class UsageSum(Schema):
    """The usage of a group. It has those of `day`, `key_id`, `subject` and the other ids that the request groups by.

    `dollars` are the known ones: those of models with a price, and of the infrastructure. They are null if the use of a
    provider's cache is hidden, because they tell it.
    """

    day: Omitted[str] = None
    key_id: Omitted[str] = None
    subject: Omitted[str] = None
    agent_id: Omitted[str] = None
    session_id: Omitted[str] = None
    model_id: Omitted[str] = None
    runs: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    write_units: int = 0
    read_units: int = 0
    milliseconds: int = 0
    sandbox_milliseconds: int = 0
    dollars: float | None = 0.0

    def without_cache(self) -> "UsageSum":
        """Return the sum without the use of a provider's cache."""
        return self.model_copy(update=dict.fromkeys(CACHE_COUNTS, 0) | {"dollars": None})


class UsageSums(Schema):
    """The sums of some days."""

    object: Literal["list"] = "list"
    data: list[UsageSum] = Field(default_factory=list)
