"""The position at which a client rejoins a stream."""

import re
from typing import Annotated

from fastapi import Depends, Header, Query

from stint.domain.errors import InvalidRequest

HIGHEST_EVENT = 999_999_999
NUMBER = re.compile("[0-9]{1,9}")
HEADER = "Last-Event-ID"


async def last_event_of(
    starting_after: Annotated[int | None, Query(ge=0, le=HIGHEST_EVENT)] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> int | None:
    """Return the number of the last event that a client has; None if it has none.

    The header, which clients set when they reconnect, precedes `starting_after`.

    Raises:
        InvalidRequest: the header is not a number.
    """
    if not last_event_id:
        return starting_after
    if not NUMBER.fullmatch(last_event_id):
        raise InvalidRequest(
            f"{HEADER} must be the number of an event of this stream, from its id line. Remove the header to read the "
            "stream from its beginning.",
            param=HEADER,
        )
    return int(last_event_id)


LastEvent = Annotated[int | None, Depends(last_event_of)]
