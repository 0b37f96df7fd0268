"""Lists of OpenAI's API."""

from typing import Any, Generic, Literal, Self, TypeVar

from stint.domain.schema import Schema

T = TypeVar("T")


class ListObject(Schema, Generic[T]):
    """A page. `has_more`: others follow.

    The ids of an empty page are empty texts: clients that check types want a text.
    """

    object: Literal["list"] = "list"
    data: list[T]
    first_id: str = ""
    last_id: str = ""
    has_more: bool = False

    @classmethod
    def of(cls, data: list[Any], has_more: bool, position: str | None = None) -> Self:
        """Make a page of entries that have ids. `position` is where a list goes on after an empty page."""
        first, last = (data[0].id, data[-1].id) if data else ("", position if has_more and position else "")
        return cls(data=data, has_more=has_more, first_id=first, last_id=last)
