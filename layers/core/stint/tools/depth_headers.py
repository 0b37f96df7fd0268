"""The header with which a tool call says its depth (`stint.domain.call_depth`)."""

from stint.caller import find_call_depth
from stint.domain.call_depth import DEPTH_HEADER
from stint.tools.headers import fold

DEPTH_NAME = fold(DEPTH_HEADER)


def next_depth() -> int:
    """Return the depth of the calls that the current run makes."""
    return find_call_depth() + 1


def depth_headers() -> dict[str, str]:
    """Return the header of the calls that the current run makes."""
    return {DEPTH_HEADER: str(next_depth())}


def without_depth(headers: dict[str, str]) -> dict[str, str]:
    """Return headers without that one in any spelling: only this system says it."""
    return {name: value for name, value in headers.items() if fold(name) != DEPTH_NAME}
