"""Labels of the tools that a server runs, by which the items of calls name them.

The label is that of the MCP server, or the name of the toolgroup. Functions of the client have none. A model knows a
tool by its name only, so whoever has listed the tools of MCP servers passes their labels.
"""

from collections.abc import Callable, Iterable, Mapping

from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.tools import AgentToolGroup
from stint.tools.port import (
    CODE_GROUP,
    CODE_INTERPRETER,
    FILE_SEARCH,
    IMAGE_GENERATION,
    IMAGE_GROUP,
    KNOWLEDGE_SEARCH,
    MCP_SERVER,
    MODEL_NAMES,
    RAG,
    WEB_SEARCH_GROUP,
)

ServerLabels = Callable[[str], str | None]
"""A function that returns the label of a tool by its name; None for a function that the client runs."""

BUILTIN_TOOLS = {
    "web_search": WEB_SEARCH_GROUP,
    MODEL_NAMES["web_search"]: WEB_SEARCH_GROUP,
    KNOWLEDGE_SEARCH: RAG,
    FILE_SEARCH: RAG,
    CODE_INTERPRETER: CODE_GROUP,
    "photogen": IMAGE_GROUP,
    IMAGE_GENERATION: IMAGE_GROUP,
}
"""The toolgroups of the tools that have items of their own, by the names of the tools."""


def label_tools(config: AgentConfig, servers: Mapping[str, Iterable[str]] | None = None) -> ServerLabels:
    """Return the labels of an agent's tools. `servers` has the names of the tools of each server, by its label.

    A tool that is not among them has the label of the only toolgroup that may have it. If there are several, its label
    is empty.
    """
    functions = {tool.name for tool in config.client_tools}
    groups = [label_of(group) for group in config.toolgroups]
    others = [label for label in groups if label not in BUILTIN_TOOLS.values()]
    listed = {name: label for label, names in (servers or {}).items() for name in names}

    def label(name: str) -> str | None:
        if name in functions:
            return None
        if name in listed:
            return listed[name]
        if (builtin := BUILTIN_TOOLS.get(name)) is not None and builtin in groups:
            return builtin
        return others[0] if len(others) == 1 else ""

    return label


def label_of(group: AgentToolGroup) -> str:
    """Return the label of a toolgroup: that of an MCP server, or the name."""
    if isinstance(group, str):
        return group
    if group.name == MCP_SERVER:
        return str(group.args.get("server_label", ""))
    return group.name
