"""The search in vector dbs as a tool, `builtin::rag`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from stint.domain.errors import DeadlineExceeded, StintError, StoreUnavailable
from stint.domain.inference import ToolSignature
from stint.tools.outcomes import failure, unknown_tool
from stint.tools.port import (
    KNOWLEDGE_SEARCH,
    MEMORY_BANKS,
    QUERY_GENERATOR,
    CallerSession,
    Invocation,
    Toolgroup,
    ToolOutcome,
)

SIGNATURE = ToolSignature(
    KNOWLEDGE_SEARCH,
    "Search for information in a database.",
    {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "The query to search for. Can be a natural language sentence or keywords.",
            }
        },
        "required": ["query"],
    },
    repeatable=True,
)

SearchKnowledge = Callable[[Mapping[str, Any], CallerSession | None], Awaitable[ToolOutcome]]
"""A function that searches with a call's arguments: `query`, `vector_db_ids` and `query_config`.

Raises InvalidRequest or NotFound for arguments that cannot be used."""


class KnowledgeTools:
    """The tool of a tenant's `builtin::rag` toolgroups. `make_search` is called when the tool first runs."""

    def __init__(self, make_search: Callable[[], SearchKnowledge]) -> None:
        self._make_search = make_search
        self._search: SearchKnowledge | None = None

    async def check(self, _: Toolgroup, /) -> None:
        """Accept every registration, because it configures nothing."""

    def known_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        """Return the one tool."""
        return [SIGNATURE]

    async def list_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        """Return the one tool."""
        return [SIGNATURE]

    async def invoke(self, _: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Search. Whatever prevents it is an outcome for the model."""
        if invocation.tool_name != KNOWLEDGE_SEARCH:
            return unknown_tool(invocation.tool_name, [KNOWLEDGE_SEARCH])
        self._search = self._search or self._make_search()
        arguments = dict(invocation.arguments)
        for name in (MEMORY_BANKS, QUERY_GENERATOR):  # only an agent or a turn has these
            if name not in invocation.fixed:
                arguments.pop(name, None)
        try:
            return await self._search(arguments, invocation.session)
        # Their messages are about this system, and tell a model nothing.
        except (StoreUnavailable, DeadlineExceeded):
            return failure("The search is not available now. Try again later.")
        except StintError as error:
            return failure(error.message)
