"""The lifetimes of sessions, responses and conversations, which requests may choose."""

from typing import Annotated, Literal

from pydantic import Field

from stint.domain.schema import Request

DAY_SECONDS = 86_400

MAX_SECONDS = 30 * DAY_SECONDS
"""The longest lifetime. The bucket's rule for objects that expire is a day longer."""


class Expiry(Request):
    """The time from the creation of an object to its end: an hour to 30 days."""

    anchor: Literal["created_at"] = "created_at"
    seconds: Annotated[int, Field(ge=3_600, le=MAX_SECONDS)]


def find_end(created_at: float, after: Expiry | None, retention_days: float) -> int | None:
    """Return when an object ends, in seconds of the epoch: as its request says, or after the stack's retention."""
    seconds = after.seconds if after is not None else retention_days * DAY_SECONDS
    return int(created_at + seconds) if seconds else None
