"""What the lists of OpenAI's API are asked for."""

from typing import Annotated, Literal

from fastapi import Depends, Query
from pydantic import ConfigDict, TypeAdapter, ValidationError

from stint.domain.errors import InvalidRequest
from stint.domain.response_options import Include

Order = Annotated[Literal["asc", "desc"], Query()]
Limit = Annotated[int, Query(ge=1, le=100)]

INCLUDES: TypeAdapter[list[Include]] = TypeAdapter(list[Include], config=ConfigDict(defer_build=True))


def included_of(
    include: Annotated[list[str] | None, Query()] = None,
    bracketed: Annotated[list[str] | None, Query(alias="include[]", include_in_schema=False)] = None,
) -> list[Include]:
    """Read `include`, which OpenAI's clients send as `include[]`.

    Raises:
        InvalidRequest: it names something that there is not.
    """
    try:
        return INCLUDES.validate_python([*(include or ()), *(bracketed or ())])
    except ValidationError as error:
        raise InvalidRequest(f"include: {error.errors()[0]['msg']}", param="include") from None


Included = Annotated[list[Include], Depends(included_of)]
