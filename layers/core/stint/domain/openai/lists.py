"""Lists of OpenAI's API."""

from typing import Any, Generic, Literal, Self, TypeVar

from stint.domain.schema import Schema

T = TypeVar("T")


class ListObject(Schema, Generic[T]):
    """A page. The ids are null if it is empty. `has_more`: others follow."""

    object: Literal["list"] = "list"
    data: list[T]
    first_id: str | None = None
    last_id: str | None = None
    has_more: bool = False

    @classmethod
    def of(cls, data: list[Any], has_more: bool) -> Self:
        """Make a page of entries that have ids."""
        first, last = (data[0].id, data[-1].id) if data else (None, None)
        return cls(data=data, has_more=has_more, first_id=first, last_id=last)

    def with_text_ids(self) -> Self:
        """Return the page in Llama Stack's form, in which the ids of an empty page are empty texts."""
        return self.model_copy(update={"first_id": self.first_id or "", "last_id": self.last_id or ""})
