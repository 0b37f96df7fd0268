"""Options of the web search, as OpenAI's APIs have them, in the form of the search's own args."""

from collections.abc import Mapping
from typing import Any

from stint.domain.errors import InvalidRequest
from stint.domain.tools import NO_FILTERS

CONTEXT_SIZE = "search_context_size"
PAGES = {"low": 3, "medium": 6, "high": 12}
"""Number of pages of a search for each `search_context_size`."""

UNSUPPORTED = ("allowed_domains", "filters", "user_location")


def read_search_args(args: Mapping[str, Any], param: str = "toolgroups") -> dict[str, Any]:
    """Return the args of an agent's web search, with the number of pages for its `search_context_size`.

    Raises:
        InvalidRequest: there is no such size, or an option is not supported.
    """
    if unsupported := next((name for name in UNSUPPORTED if args.get(name) is not None), None):
        raise InvalidRequest(f"{unsupported}: {NO_FILTERS}.", param=param)
    own = {name: value for name, value in args.items() if name not in (CONTEXT_SIZE, *UNSUPPORTED)}
    size = args.get(CONTEXT_SIZE)
    if size is None:
        return own
    if not isinstance(size, str) or size not in PAGES:
        raise InvalidRequest(f"{CONTEXT_SIZE} must be one of: {', '.join(PAGES)}.", param=param)
    return {"max_results": PAGES[size]} | own
