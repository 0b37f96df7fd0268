"""OpenAI's options of the prompt cache.

They are hints: what a provider lacks, or nobody can use, is accepted without effect. `choose_cache` returns what a
model call asks for, and `CacheOptions.as_applied` what a response shows of it.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, StrictBool, ValidationError
from pydantic_core import CoreSchema, core_schema
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from stint.dataclasses import dataclass
from stint.domain.fields import Omitted, SupportedValues
from stint.domain.inference import CacheLifetime, PromptCache
from stint.domain.schema import Request

HintText = Annotated[str, Field(max_length=64)]
IN_MEMORY = ("in_memory", "in-memory")
"""The shortest retention, as OpenAI's API and as some of its clients spell it."""
MINUTES = {"m": 1, "h": 60, "d": 1_440}
LIFETIME = re.compile(r"(\d{1,6})([mhd])")


@dataclass(frozen=True, slots=True)
class Hint:
    """Marks a field whose unusable values are ignored: it has the default instead."""

    default: object = None

    def read(self, value: object, read: ValidatorFunctionWrapHandler) -> object:
        try:
            return read(value)
        except ValidationError:
            return self.default

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self.read, handler(source))


def read_options(value: object) -> object:
    """Return the options of a request; None if they are no object."""
    return value if isinstance(value, dict | CacheOptions) else None


class CacheBreakpoint(Request):
    """The end of an input that is worth keeping."""

    mode: Annotated[HintText, Hint("explicit")] = "explicit"
    ttl: Annotated[Omitted[HintText], Hint()] = None


class CacheOptions(Request):
    """The options of a request. With the mode `explicit`, only its breakpoints end an input that is kept."""

    mode: Annotated[Omitted[HintText], Hint()] = None
    ttl: Annotated[Omitted[HintText], Hint()] = None
    comparison_response_id: Annotated[Omitted[Annotated[str, Field(max_length=200)]], Hint()] = None
    prewarm: Annotated[
        Omitted[StrictBool], SupportedValues((False,), "Every request gets an answer. Remove it, or set it to false")
    ] = None

    def as_applied(self) -> "CacheOptions":
        """Return the options as responses show them: with a mode and a lifetime that OpenAI's client knows."""
        mode = self.mode if self.mode == "explicit" else "implicit"
        return self.model_copy(update={"mode": mode, "ttl": self.ttl if self.ttl == "12h" else "30m"})


CacheBreakpointHint = Annotated[Omitted[CacheBreakpoint], Hint()]
CacheOptionsHint = Annotated[Omitted[CacheOptions], BeforeValidator(read_options)]
"""Options that are ignored if they are no object. An object may ask for something that is refused."""
CacheRetention = Annotated[Omitted[HintText], Hint()]


def choose_cache(
    options: CacheOptions | None, retention: str | None, default: PromptCache | None
) -> PromptCache | None:
    """Return what a request wants to be cached. `retention` is the older `prompt_cache_retention`."""
    if options is None and retention is None:
        return default
    options = options or CacheOptions()
    lifetime = lifetime_of(options.ttl or retention) or (default or PromptCache()).lifetime
    return PromptCache(lifetime, implicit=options.mode != "explicit")


def lifetime_of(text: str | None) -> CacheLifetime | None:
    """Return the next lifetime of a provider, an hour for 30 minutes; None for an unknown text."""
    if text in IN_MEMORY:
        return "5m"
    found = LIFETIME.fullmatch(text or "")
    if found is None:
        return None
    return "5m" if int(found[1]) * MINUTES[found[2]] < 30 else "1h"


def show_retention(text: str | None) -> str | None:
    """Return a retention as responses show it; None if OpenAI's client does not know it."""
    return "in_memory" if text in IN_MEMORY else text if text == "24h" else None


def breakpoints_in(parts: Iterable[object]) -> tuple[int, ...]:
    """Return the places of the parts of a message that end an input."""
    marks = (getattr(part, "prompt_cache_breakpoint", None) for part in parts)
    return tuple(place for place, mark in enumerate(marks) if mark is not None)
