"""Cache checkpoints of Converse requests.

A checkpoint makes Bedrock keep the request up to it: tools, system texts and messages, in this order. A later request
that begins with the same blocks reads them for a tenth of the price, and its own checkpoints extend the kept part.
Claude finds what was kept up to 20 blocks before a checkpoint. A turn with many calls adds more blocks at once, so the
end of the request before the last answer has a checkpoint, too, and is found without a search.

A request has at most four, and the lifetime of a checkpoint is at most that of the ones before it. A checkpoint that a
model lacks is an error, so each family gets its own, and what a model refuses nevertheless is left out from then on.
A prefix that is too short (512 to 4,096 tokens, by model) is not kept, and costs nothing more.

"Prompt caching for faster model inference", Amazon Bedrock User Guide:
https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
"""

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

from stint.dataclasses import dataclass
from stint.domain.inference import CacheLifetime, PromptCache

Parameters = dict[str, Any]
Place = Literal["tools", "system", "messages"]

MOST_POINTS = 4
PLACES: tuple[Place, ...] = ("tools", "system", "messages")
WITHOUT_CACHE = re.compile(r"claude-(?:v\d|instant|3-(?:opus|sonnet|haiku)|3-5-sonnet-20240620)")
"""Claude's models that have no cache."""
MINUTES_ONLY = re.compile(r"claude-(?:3-|(?:opus|sonnet)-4-(?:1-)?\d{8})")
"""Claude's models that keep nothing for an hour."""
HOUR: CacheLifetime = "1h"
REFUSED_PLACE = re.compile(r"#/(?:toolConfig/)?(tools|system|messages)\b")
ABOUT_CACHE = re.compile(r"cachePoint|prompt caching|cache_control", re.IGNORECASE)
ABOUT_LIFETIME = re.compile(r"\bTTL\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CachePoint:
    """A checkpoint after the tools, after the system texts, or after a block of a message."""

    place: Place
    message: int = 0
    block: int = 0


def find_cache_points(
    parameters: Parameters, cache: PromptCache, breakpoints: Sequence[CachePoint]
) -> tuple[CachePoint, ...]:
    """Return the checkpoints of a call in their order. `breakpoints` has those that the caller named."""
    chosen = [*reversed(breakpoints)]
    if cache.implicit:
        ends = ends_of(parameters["messages"])
        # In the order of their use, since only four fit: the newest end, the caller's, then the earlier end.
        chosen = [*ends[:1], *chosen, *ends[1:]]
        chosen += [CachePoint("system")] if parameters.get("system") else []
        chosen += [CachePoint("tools")] if parameters.get("toolConfig") else []
    known = places_of(parameters["modelId"])
    points = dict.fromkeys(point for point in chosen if point.place in known)
    return tuple(sorted([*points][:MOST_POINTS], key=lambda each: (PLACES.index(each.place), each.message, each.block)))


def ends_of(messages: Sequence[Parameters]) -> list[CachePoint]:
    """Return the end of the messages, and that of the request before their last answer."""
    ends = [len(messages) - 1] if messages else []
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    ends += [answers[-1] - 1] if answers and answers[-1] else []
    return [CachePoint("messages", place, len(messages[place]["content"]) - 1) for place in ends]


def places_of(model: str) -> tuple[Place, ...]:
    """Return the places in which a model's family accepts checkpoints. An unknown family caches by itself, or not."""
    if "anthropic.claude" in model:
        return () if WITHOUT_CACHE.search(model) else PLACES
    return ("system", "messages") if "amazon.nova" in model else ()


def add_cache_points(
    parameters: Parameters, points: Sequence[CachePoint], lifetime: CacheLifetime, refused: Collection[str]
) -> Parameters:
    """Return the parameters of a call with its checkpoints. `refused` has what its model has refused before."""
    added, messages = dict(parameters), [*parameters["messages"]]
    for point in reversed(points):  # so that the places of the others stay
        if point.place in refused:
            continue
        block = {"cachePoint": write_point(parameters["modelId"], point.place, lifetime, refused)}
        match point.place:
            case "tools":
                tools = parameters["toolConfig"]
                added["toolConfig"] = {**tools, "tools": [*tools["tools"], block]}
            case "system":
                added["system"] = [*parameters["system"], block]
            case _:
                message = messages[point.message]
                content = message["content"]
                content = [*content[: point.block + 1], block, *content[point.block + 1 :]]
                messages[point.message] = {**message, "content": content}
    return {**added, "messages": messages}


def write_point(model: str, place: Place, lifetime: CacheLifetime, refused: Collection[str]) -> dict[str, str]:
    """Write a checkpoint (API reference, CachePointBlock). It has an hour only if all before it can have one."""
    refusing = {f"{each} {HOUR}" for each in PLACES[: PLACES.index(place) + 1]}
    keeps_hours = "anthropic.claude" in model and not MINUTES_ONLY.search(model)
    lasts = lifetime == HOUR and keeps_hours and refusing.isdisjoint(refused)
    return {"type": "default", "ttl": HOUR} if lasts else {"type": "default"}


def refused_points(message: str) -> set[str]:
    """Return what a model refuses by an error: places, or the lifetime of an hour in them. Empty if it is about others.

    Known are "#/toolConfig/tools/0: extraneous key [cachePoint] is not permitted", "Extended TTL prompt caching is only
    supported for Anthropic models" and "your request did not allow prompt caching".
    """
    if not ABOUT_CACHE.search(message):
        return set()
    named = REFUSED_PLACE.search(message)
    places = [named[1]] if named else PLACES
    return {f"{place} {HOUR}" for place in places} if ABOUT_LIFETIME.search(message) else set(places)
