"""End users: the people for whom callers act, and the objects that belong to them."""

from collections.abc import Mapping
from typing import Literal, get_args

from stint.domain.fields import Omitted
from stint.domain.schema import Schema

OwnedKind = Literal[
    "session",
    "response",
    "conversation",
    "chat_completion",
    "file",
    "upload",
    "vector_store",
    "vector_store_document",
    "idempotent_request",
    "container",
    "vault",
    "automation",
]
"""The kinds of objects that can belong to an end user."""

PARENTS: Mapping[OwnedKind, str] = {"session": "agent_id", "vector_store_document": "vector_store_id"}
"""The fields with the ids of the objects that objects of a kind belong to."""

OWNED_KINDS: tuple[OwnedKind, ...] = get_args(OwnedKind)


class OwnedObject(Schema):
    """An object of an end user. Only sessions have an `agent_id`, and only documents a `vector_store_id`."""

    kind: OwnedKind
    id: str
    agent_id: Omitted[str] = None
    vector_store_id: Omitted[str] = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the object, its parent's first."""
        parent = self.agent_id or self.vector_store_id
        return (self.id,) if parent is None else (parent, self.id)

    @classmethod
    def of(cls, kind: OwnedKind, ids: tuple[str, ...]) -> "OwnedObject":
        parents = {PARENTS[kind]: ids[0]} if kind in PARENTS else {}
        return cls(kind=kind, id=ids[-1], **parents)


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
