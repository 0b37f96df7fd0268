"""Content negotiation by the Accept header (RFC 9110, section 12.5.1)."""

import re

WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")

Preference = tuple[float, int]
"""The weight of a media type, and the precision of its range: 2 for the type, 1 for `type/*`, 0 for `*/*`."""

NOT_ACCEPTED: Preference = (0.0, -1)


def prefers(accept: str, media_type: str, usual: str) -> bool:
    """Return whether a client prefers a media type to the default one.

    If both have the same weight, the more precise range wins: `application/json, */*` asks for JSON.
    """
    wanted = preference_of(accept, media_type)
    return wanted > NOT_ACCEPTED and wanted > preference_of(accept, usual)


def preference_of(accept: str, media_type: str) -> Preference:
    """Return the preference for a media type, from the range that matches it most precisely."""
    kind = media_type.partition("/")[0]
    names = ("*/*", f"{kind}/*", media_type)
    found = [NOT_ACCEPTED]
    for part in accept.lower().split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        weight = weight_of(parameters)
        if name in names and weight is not None:
            found.append((weight, names.index(name)))
    exactness = max(each[1] for each in found)
    weight = max(each[0] for each in found if each[1] == exactness)
    return (weight, exactness) if weight else NOT_ACCEPTED


def weight_of(parameters: list[str]) -> float | None:
    """Return the weight (0 to 1) among the parameters of a range; None if it is malformed."""
    weights = [value.strip() for name, _, value in (each.partition("=") for each in parameters) if name.strip() == "q"]
    if not weights:
        return 1.0
    return float(weights[0]) if WEIGHT.fullmatch(weights[0]) else None
