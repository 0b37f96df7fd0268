"""Agents as tools: their list in pages, and the agent of a call.

A caller sees the agents of its tenant whose model it may use, as they are since their latest change. The agent that one
session has alone is in no list, and cannot be called. A description is what the agent's metadata say, and never its
instructions, which may be a secret of whoever wrote them.
"""

from stint.dataclasses import dataclass
from stint.domain.errors import Forbidden, InvalidRequest, NotFound
from stint.domain.ids import is_id, is_inline_agent
from stint.domain.llama_stack.agents import Agent
from stint.domain.paging import Window
from stint.mcp_server.schemas import INPUT_SCHEMA, OUTPUT_SCHEMA, ServedTool, ServedToolPage, ToolAnnotations
from stint.mcp_server.tool_names import find_agent_id, pack_id, tool_name, unpack_id
from stint.services.agents.agents import Agents

TOOLS_OF_PAGE = 50
LONGEST_TITLE, LONGEST_DESCRIPTION = 200, 2_000
DESCRIPTION = "description"
"""The key of an agent's metadata with the description of its tool."""

UNDESCRIBED = "An agent. Send it a message to get its answer."


@dataclass(frozen=True, slots=True)
class AgentTools:
    """The tools of an endpoint: all agents of a tenant, or the one with `only`."""

    agents: Agents
    only: str | None = None

    async def list(self, cursor: str | None) -> ServedToolPage:
        """Return a page of the tools by the creation of their agents, the oldest first.

        Raises:
            InvalidRequest: the cursor is not one of a page.
            NotFound, Forbidden: there is no agent `only`, or the caller may not use its model.
        """
        if self.only is not None:
            if cursor is not None:
                raise unknown_cursor()
            return ServedToolPage(tools=[to_tool(await self.require(self.only))])
        after = None if cursor is None else unpack_id(cursor)
        if cursor is not None and after is None:
            raise unknown_cursor()
        page = await self.agents.list(Window(limit=TOOLS_OF_PAGE, after=after))
        tools = [to_tool(agent) for agent in page.data if await self.may_use(agent)]
        last = page.position or (page.data[-1].agent_id if page.data else None)
        return ServedToolPage(tools=tools, next_cursor=pack_id(last) if page.has_more and last else None)

    async def find(self, name: str) -> Agent:
        """Return the agent of a tool with one read. Raises InvalidRequest if there is no such tool here."""
        agent_id = find_agent_id(name)
        if agent_id is None or self.only not in (None, agent_id):
            raise unknown_tool(name)
        try:
            agent = await self.require(agent_id)
        except (NotFound, Forbidden):
            raise unknown_tool(name) from None
        if (current := tool_name(agent_id, agent.agent_config.name)) != name:
            raise unknown_tool(name, f"This agent is now called {current}.")
        return agent

    async def require(self, agent_id: str) -> Agent:
        """Return an agent that can be called. Raises NotFound, and Forbidden if the caller may not use its model."""
        if not is_id(agent_id) or is_inline_agent(agent_id):
            raise NotFound("Agent", agent_id)
        agent = await self.agents.get(agent_id)
        await self.agents.require_model(agent.agent_config.model)
        return agent

    async def may_use(self, agent: Agent) -> bool:
        try:
            await self.agents.require_model(agent.agent_config.model)
        except Forbidden:
            return False
        return True


def to_tool(agent: Agent) -> ServedTool:
    """Return an agent as a tool. The title is its name, the description that of its metadata."""
    config = agent.agent_config
    title, description = (config.name or "")[:LONGEST_TITLE], (config.metadata or {}).get(DESCRIPTION, "").strip()
    return ServedTool(
        name=tool_name(agent.agent_id, config.name),
        title=title or None,
        description=description[:LONGEST_DESCRIPTION] or UNDESCRIBED,
        input_schema={**INPUT_SCHEMA},
        output_schema={**OUTPUT_SCHEMA},
        annotations=ToolAnnotations(title=title or None),
    )


def unknown_tool(name: str, hint: str = "") -> InvalidRequest:
    message = f"Unknown tool: {name[:128]!r}. {hint}{' ' if hint else ''}Use a name that tools/list returns."
    return InvalidRequest(message, code="unknown_tool", param="params.name")


def unknown_cursor() -> InvalidRequest:
    message = "The cursor is not one that tools/list returned here. Begin without a cursor."
    return InvalidRequest(message, code="invalid_cursor", param="params.cursor")
