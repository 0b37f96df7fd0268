"""End users: the people for whom callers act, and the objects that belong to them."""

from typing import Literal, get_args

from stint.domain.fields import Omitted
from stint.domain.schema import Schema

OwnedKind = Literal["session", "response", "conversation", "chat_completion", "file", "upload", "vector_store"]
"""The kinds of objects that can belong to an end user."""

OWNED_KINDS: tuple[OwnedKind, ...] = get_args(OwnedKind)


class OwnedObject(Schema):
    """An object of an end user. Only sessions have an `agent_id`."""

    kind: OwnedKind
    id: str
    agent_id: Omitted[str] = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the object, its parent's first."""
        return (self.id,) if self.agent_id is None else (self.agent_id, self.id)

    @classmethod
    def of(cls, kind: OwnedKind, ids: tuple[str, ...]) -> "OwnedObject":
        return cls(kind=kind, id=ids[-1], agent_id=ids[0] if len(ids) > 1 else None)


class EndUserObjects(Schema):
    """The objects of an end user, in the order of their kinds and ids. `next` is the cursor of the following page."""

    object: Literal["list"] = "list"
    user: str
    data: list[OwnedObject]
    has_more: bool = False
    next: Omitted[str] = None


class ErasureReceipt(Schema):
    """The result of erasing an end user: how many objects of each kind were deleted, and how many are left.

    If some are left, a process still writes to them, or the time was over. The request may be repeated.
    """

    object: Literal["end_user.erasure"] = "end_user.erasure"
    user: str
    deleted: dict[str, int]
    remaining: int
    complete: bool
    created_at: int
