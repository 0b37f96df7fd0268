"""A document before it is read, and the error if it cannot be."""

from dataclasses import dataclass
from typing import Protocol


class Served(Protocol):
    """The bytes of a document. `content_type` is as it was served, or empty."""

    @property
    def content_type(self) -> str: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Raw:
    """A document that was sent with the request."""

    content_type: str
    body: bytes


class Unreadable(ValueError):
    """The document cannot be read. The message says why and what to do, not which document it is."""

    def __init__(self, message: str, code: str = "unreadable_document") -> None:
        super().__init__(message)
        self.code = code
