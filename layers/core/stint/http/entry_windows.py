"""Parameters of the lists of agents and sessions: Llama Stack's, and those of this server."""

from typing import Annotated, Literal

from fastapi import Depends, Query

from stint.domain.errors import InvalidRequest
from stint.domain.paging import MAX_BYTES, Window
from stint.http.metadata_filters import MetadataFilter

MAX_START = 2**31 - 1
"""The highest index of a list, the limit of DynamoDB."""

MAX_LIMIT = MAX_BYTES // 100
"""More entries than fit into any response, because each has over 100 bytes."""

SearchedName = Annotated[
    str | None, Query(min_length=1, max_length=200, description="a text in the name, in any case of letters")
]
After = Annotated[str | None, Query(description="the id to start after; next_after of the page before")]


async def entry_window(
    metadata: MetadataFilter,
    start_index: int | None = None,
    limit: int | None = None,
    order: Annotated[Literal["asc", "desc"] | None, Query(description="by creation; asc by default")] = None,
    after: After = None,
    name: SearchedName = None,
) -> Window:
    """Read the parameters. No `limit`, or -1, means as much as one response can contain.

    Raises:
        InvalidRequest: another negative value, or an index in what a search finds.
    """
    for parameter, value, least in (("start_index", start_index, 0), ("limit", limit, -1)):
        if value is not None and value < least:
            raise InvalidRequest(f"{parameter} is {value}; it must be {least} or more.", param=parameter)
    if name is not None:
        refuse_index(start_index, "name")
    if metadata:
        refuse_index(start_index, "metadata")
    return Window(
        start=min(start_index or 0, MAX_START),
        limit=None if limit is None or limit == -1 else min(limit, MAX_LIMIT),
        after=after,
        newest_first=order == "desc",
        name=name,
        metadata=metadata or None,
        by_id=bool(metadata) or any(given is not None for given in (order, after, name)),
    )


def refuse_index(start_index: int | None, parameter: str) -> None:
    """Refuse an index together with a search: it would have to find everything before it again."""
    if start_index:
        raise InvalidRequest(f"start_index cannot be used with {parameter}. Use after.", param="start_index")


EntryWindow = Annotated[Window, Depends(entry_window)]
