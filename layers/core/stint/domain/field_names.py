"""Names of the fields that were set, shared by the objects of a long list.

pydantic gives each object a set of the names of its given fields. It takes 216 bytes or more, which is a third of an
empty message of a conversation.
"""

from typing import TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


class FieldNames:
    """Sets of names of fields, one for all objects with the same ones, which must not be changed afterwards."""

    def __init__(self) -> None:
        self._shared: dict[frozenset[str], set[str]] = {}

    def share(self, model: Model) -> Model:
        """Replace the sets of an object and of those in its fields, and return it."""
        pending: list[object] = [model]
        while pending:
            value = pending.pop()
            if isinstance(value, BaseModel):
                names = value.__pydantic_fields_set__
                shared = self._shared.setdefault(frozenset(names), names)
                object.__setattr__(value, "__pydantic_fields_set__", shared)
                pending += value.__dict__.values()
            elif isinstance(value, list):
                pending += value
        return model
