"""Pages of the lists of OpenAI's Agents API."""

from collections.abc import Callable, Sequence
from typing import Generic, Literal, Self, TypeVar

from stint.domain.schema import Schema

S = TypeVar("S", bound=Schema)


class AgentsPage(Schema, Generic[S]):
    """A page of a list. A client goes on after `last_id`."""

    object: Literal["list"] = "list"
    data: list[S]
    first_id: str | None = None
    last_id: str | None = None
    has_more: bool = False

    @classmethod
    def of(cls, data: Sequence[S], id_of: Callable[[S], str], *, more: bool) -> Self:
        ids = [id_of(entry) for entry in data]
        return cls(data=[*data], first_id=ids[0] if ids else None, last_id=ids[-1] if ids else None, has_more=more)
