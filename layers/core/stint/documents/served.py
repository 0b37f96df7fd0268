"""A document before it is read, and the error if it cannot be."""

from typing import Protocol

from stint.dataclasses import dataclass, field

TOO_LARGE = "document_too_large"
"""The code of a document over a limit."""


class DocumentData(Protocol):
    """The bytes of a document. `content_type` is that of the server, or empty."""

    @property
    def content_type(self) -> str: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class InlineDocument:
    """A document that was sent with the request."""

    content_type: str
    body: bytes


class Unreadable(ValueError):
    """The document cannot be read. The message says why and what to do, not which document it is."""

    def __init__(self, message: str, code: str = "unreadable_document") -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class Originals:
    """The documents of a request as they were sent, by their indexes: the first `count` that fit into `room` bytes.

    `errors` has the reasons why some have no text, and `names` the names of their files.
    """

    room: int
    count: int
    bodies: dict[int, DocumentData] = field(default_factory=dict)
    errors: dict[int, Unreadable] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    limits: str = field(init=False)

    def __post_init__(self) -> None:
        self.limits = f". A file for code can have any type: {self.count} of {self.room:,} bytes together are allowed"

    def keep(self, index: int, raw: DocumentData) -> None:
        """Keep a document if it fits."""
        if len(self.bodies) < self.count and len(raw.body) <= self.room:
            self.room -= len(raw.body)
            self.bodies[index] = raw

    @property
    def files(self) -> dict[str, bytes]:
        """Return the documents that have names."""
        return {name: self.bodies[index].body for index, name in self.names.items()}
