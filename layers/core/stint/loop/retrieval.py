"""Retrieval of context before the first model call of a run."""

from collections.abc import Sequence
from typing import Protocol

from stint.dataclasses import dataclass
from stint.domain.content import Content
from stint.domain.inference import ModelMessage
from stint.loop.screening import ToolShields


@dataclass(frozen=True, slots=True)
class RetrievedContext:
    """Context for the model, and the names of the vector dbs that were searched. It is empty if nothing was found."""

    vector_db_ids: Sequence[str]
    content: Content


class Retriever(Protocol):
    """A source of context for the user's messages. `shields` are those of its tool."""

    @property
    def tool_name(self) -> str: ...

    @property
    def shields(self) -> ToolShields: ...

    async def retrieve(self, messages: Sequence[ModelMessage], key: str, /) -> RetrievedContext:
        """Return context for the last user messages. A failed search is described in the context.

        `key` is unique to the retrieval, see `Invocation`.
        """
        ...
