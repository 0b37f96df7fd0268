"""The servers of a turn's tools, known from its log and its agent's configuration alone.

A label is that of an inline MCP server, or the identifier of a registered toolgroup. The tools of a server are stored
only if the configuration does not tell whose they are: names of tools cost space in each header.

    the turn's tools come from                             where the label of a tool is
    one inline MCP server, besides the client's            in the configuration
    one registered toolgroup, besides built-in ones        in the configuration
    an inline MCP server and any other toolgroup           in the header
    two or more MCP servers                                in the header
"""

from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.stored_turns import TurnHeader
from stint.domain.tools import AgentToolGroup
from stint.loop.toolbox import Toolbox
from stint.tools.port import BUILT_IN, CODE_INTERPRETER, KNOWLEDGE_SEARCH, MCP, MCP_SERVER, MODEL_NAMES

BUILT_IN_TOOLS = frozenset({*MODEL_NAMES, *MODEL_NAMES.values(), CODE_INTERPRETER, KNOWLEDGE_SEARCH}) | {
    "photogen",
    "wolfram_alpha",
}
"""The names of the tools of built-in toolgroups."""


def name_servers(toolbox: Toolbox) -> dict[str, list[str]] | None:
    """Return the names of the tools of each MCP server by its label; None if the configuration tells them."""
    groups = {tool.toolgroup.toolgroup_id: tool.toolgroup for tool in toolbox.server.values()}
    servers = {name for name, group in groups.items() if group.provider_id == MCP}
    inline = any(name.startswith(f"{MCP_SERVER}/") for name in servers)
    if len(groups) < 2 or not servers or (len(servers) < 2 and not inline):
        return None
    named: dict[str, list[str]] = {}
    for name, tool in toolbox.server.items():
        if tool.toolgroup.toolgroup_id in servers:
            named.setdefault(label_of(tool.toolgroup.toolgroup_id), []).append(name)
    return named


def find_server(header: TurnHeader, config: AgentConfig, tool_name: str) -> str | None:
    """Return the label of the server that runs a tool of a turn; None for a built-in tool, and for the client's."""
    if header.servers is not None:
        return next((label for label, names in header.servers.items() if tool_name in names), None)
    client = config.client_tools if header.overrides.client_tools is None else header.overrides.client_tools
    if any(tool.name == tool_name for tool in client):
        return None
    groups = [*config.toolgroups, *header.overrides.toolgroups]
    labels = dict.fromkeys(label for group in groups if (label := label_in(group)) is not None)
    if len(labels) < len(set(map(name_of, groups))) and tool_name in BUILT_IN_TOOLS:
        return None
    return next(iter(labels), None)


def label_in(group: AgentToolGroup) -> str | None:
    """Return the label of a toolgroup of a configuration; None for a built-in one."""
    name = name_of(group)
    if name == MCP_SERVER and not isinstance(group, str):
        return str(group.args.get("server_label"))
    return None if name.startswith(BUILT_IN) else name.partition("/")[0]


def name_of(group: AgentToolGroup) -> str:
    return group if isinstance(group, str) else group.name


def label_of(identifier: str) -> str:
    """Return the label of a toolgroup."""
    return identifier.removeprefix(f"{MCP_SERVER}/")
