"""OpenAI's options of the prompt cache. They are hints: what a provider lacks has no effect."""

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, StrictBool

from stint.domain.fields import Omitted, SupportedValues
from stint.domain.inference import CacheLifetime, PromptCache
from stint.domain.schema import Request

Hint = Annotated[str, Field(max_length=64)]
MINUTES = {"m": 1, "h": 60, "d": 1_440}
LIFETIME = re.compile(r"(\d{1,6})([mhd])")


class CacheBreakpoint(Request):
    """The end of an input that is worth keeping."""

    mode: Hint = "explicit"
    ttl: Omitted[Hint] = None


class CacheOptions(Request):
    """The options of a request. With the mode `explicit`, only its breakpoints end an input that is kept."""

    mode: Omitted[Hint] = None
    ttl: Omitted[Hint] = None
    comparison_response_id: Omitted[Annotated[str, Field(max_length=200)]] = None
    prewarm: Annotated[
        Omitted[StrictBool], SupportedValues((False,), "Every request gets an answer. Remove it, or set it to false")
    ] = None

    def as_applied(self) -> "CacheOptions":
        """Return the options as responses show them: with a mode and a lifetime that OpenAI's client knows."""
        mode = self.mode if self.mode == "explicit" else "implicit"
        return self.model_copy(update={"mode": mode, "ttl": self.ttl if self.ttl == "12h" else "30m"})


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
    if text == "in_memory":
        return "5m"
    found = LIFETIME.fullmatch(text or "")
    if found is None:
        return None
    return "5m" if int(found[1]) * MINUTES[found[2]] < 30 else "1h"


def breakpoints_in(parts: Iterable[object]) -> tuple[int, ...]:
    """Return the places of the parts of a message that end an input."""
    marks = (getattr(part, "prompt_cache_breakpoint", None) for part in parts)
    return tuple(place for place, mark in enumerate(marks) if mark is not None)
