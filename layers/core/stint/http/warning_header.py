"""The header with warnings about a request that is answered all the same.

It is printable ASCII of bounded length, since a warning quotes what the caller sent. A middleware adds it to the
response, so the stored answers of idempotency keys do not have it.
"""

import re
from collections.abc import Sequence

from starlette.types import Scope

from stint.domain.errors import shorten
from stint.http.scopes import WARNING

WARNINGS = "stint.warnings"
"""The key of a request's scope that has its warnings."""

MOST_WARNINGS, LONGEST_WARNING, LONGEST_HEADER = 5, 250, 512
"""Maximum warnings of a response, and characters of one, and of all."""

MORE = "There are more warnings."
CONTROLS = re.compile(r"[^\x20-\x7e]")


def add_warnings(scope: Scope, warnings: Sequence[str]) -> None:
    """Add sentences to the header of the response. Long ones are cut, and the header says so if there are too many."""
    if not warnings:
        return
    known = [*scope.get(WARNINGS, ()), *map(escape, warnings[: MOST_WARNINGS + 1])]
    scope[WARNINGS] = known[: MOST_WARNINGS + 1]
    scope[WARNING] = write_header(scope[WARNINGS])


def escape(warning: str) -> str:
    """Return a warning in printable ASCII."""
    return shorten(CONTROLS.sub("?", warning.encode("ascii", "backslashreplace").decode()), LONGEST_WARNING)


def write_header(warnings: Sequence[str]) -> str:
    """Return the value of the header."""
    kept: list[str] = []
    for each in warnings[:MOST_WARNINGS]:
        if len(" ".join([*kept, each, MORE])) > LONGEST_HEADER:
            break
        kept.append(each)
    return " ".join(kept if len(kept) == len(warnings) else [*kept, MORE])
