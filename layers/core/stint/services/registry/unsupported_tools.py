"""Tools of Llama Stack that this server refuses by name."""

from stint.domain.errors import InvalidRequest, NotSupported
from stint.domain.llama_stack.registrations import Tool
from stint.domain.tools import ToolParameter

NOT_OFFERED = ("code_interpreter", "image_generation")

RAG = "builtin::rag"
NO_VECTOR_STORES = "Stint has no vector stores"
QUERY = ToolParameter(
    name="query",
    parameter_type="string",
    description="The query to search for. Can be a natural language sentence or keywords.",
)
RAG_TOOLS = {
    "insert_into_memory": ("Insert documents into memory", []),
    "knowledge_search": ("Search for information in a database.", [QUERY]),
}


def refuse_not_offered(name: str) -> None:
    """Refuse a toolgroup or a tool. Raises NotSupported."""
    if any(offer in name for offer in NOT_OFFERED):
        raise NotSupported(f"{name!r} is not offered: Stint runs no code and makes no images.")


def refuse_rag(name: str) -> None:
    """Refuse the use of Llama Stack's search in vector stores. Raises InvalidRequest."""
    if name.partition("/")[0] == RAG or name in RAG_TOOLS:
        raise InvalidRequest(
            f"{name!r} is not offered: {NO_VECTOR_STORES}. Register a toolgroup with this name that searches "
            "(such as an MCP server), send documents with the turn, or remove it.",
            code="not_offered",
            param="toolgroups",
        )


def describe_rag(name: str) -> list[Tool]:
    """Return the tools of `builtin::rag`, or the named one. Their metadata says that they cannot be used.

    The client library lists them when it creates an agent with them, long before a turn uses one.
    """
    group, _, tool_name = name.partition("/")
    if group != RAG:
        return []
    return [
        Tool(
            identifier=identifier,
            provider_id="rag-runtime",
            toolgroup_id=RAG,
            description=description,
            parameters=parameters,
            metadata={"offered": False, "reason": NO_VECTOR_STORES},
        )
        for identifier, (description, parameters) in RAG_TOOLS.items()
        if tool_name in ("", identifier)
    ]
