"""Parameters of lists in OpenAI's API."""

from typing import Annotated, Literal

from fastapi import Depends, Query
from pydantic import ConfigDict, TypeAdapter, ValidationError

from stint.domain.errors import InvalidRequest
from stint.domain.openai.response_options import Include
from stint.domain.paging import MAX_ENTRIES
from stint.domain.validation import message_of

Order = Annotated[Literal["asc", "desc"], Query()]


async def limit_of(
    limit: Annotated[int | None, Query(ge=-1, description="-1, or none: as many as fit into one response")] = None,
) -> int:
    """Return the maximum number of entries."""
    return MAX_ENTRIES if limit is None or limit == -1 else min(limit, MAX_ENTRIES)


Limit = Annotated[int, Depends(limit_of)]

INCLUDES: TypeAdapter[list[Include]] = TypeAdapter(list[Include], config=ConfigDict(defer_build=True))


async def included_of(
    include: Annotated[list[str] | None, Query()] = None,
    bracketed: Annotated[list[str] | None, Query(alias="include[]", include_in_schema=False)] = None,
) -> list[Include]:
    """Read `include`, which OpenAI's clients send as `include[]`.

    Raises:
        InvalidRequest: it has an unknown value.
    """
    try:
        return INCLUDES.validate_python([*(include or ()), *(bracketed or ())])
    except ValidationError as error:
        raise InvalidRequest(f"include: {message_of(error.errors()[0])}", param="include") from None


Included = Annotated[list[Include], Depends(included_of)]
