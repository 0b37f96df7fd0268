"""Plans of stored responses, to show what their models got. Nothing but requests can be made of them.

The tools of MCP servers are those that were listed when the response started, which its header has. Vector stores and
containers are not opened: they may be gone, and the model sees nothing of them but the tool that uses them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from stint.dataclasses import dataclass
from stint.domain.inference import ToolSignature
from stint.domain.openai.mcp_items import McpListTools
from stint.domain.openai.response_tools import FunctionTool, McpTool
from stint.domain.openai.stored_responses import ResponseHeader
from stint.domain.tools import ToolConfig
from stint.loop.plan import Plan
from stint.loop.toolbox import ServerTool, Toolbox
from stint.models.port import ChatModel
from stint.services.responses.code_runs import CodeAccess
from stint.services.responses.planner import ResponsePlan, ResponsePlanner, read_format, signature_of
from stint.tools.port import MCP, ProviderData, Toolgroup

if TYPE_CHECKING:
    from stint.tools.knowledge.file_search import KnowledgeSearch


@dataclass(frozen=True, slots=True)
class RecordedPlanner(ResponsePlanner):
    """Makes the plan of a response with the tools that its MCP servers `listed` when it started."""

    listed: Sequence[McpListTools] = ()

    @classmethod
    def of(cls, planner: ResponsePlanner, header: ResponseHeader) -> "RecordedPlanner":
        return cls(
            planner.router,
            planner.registry,
            planner.tools,
            make_knowledge=lambda: cast("KnowledgeSearch", Unopened()),
            make_code=lambda: cast("CodeAccess", Unopened()),
            find_cache_keys=planner.find_cache_keys,
            listed=header.listed,
        )

    async def list_server(self, place: int, server: McpTool, provider_data: ProviderData) -> list[ServerTool]:  # noqa: ARG002
        """Return the tools that an MCP server listed when the response started."""
        provider, group = self.tools.providers[MCP], Toolgroup(server.server_label, MCP, server.server_url)
        tools = [tool for each in self.listed if each.server_label == server.server_label for tool in each.tools]
        shown = (ToolSignature(tool.name, tool.description or "", tool.input_schema) for tool in tools)
        return [ServerTool(signature, group, provider) for signature in shown]


class Unopened:
    """Stands for vector stores and containers that are not opened."""

    @property
    def containers(self) -> "Unopened":
        return self

    @property
    def runner(self) -> "Unopened":
        return self

    async def open(self, *_: object) -> "Unopened":
        return self

    async def check(self, *_: object) -> None:
        pass


def bare_plan(header: ResponseHeader) -> ResponsePlan:
    """Return the plan of a response without what the registry has: its model, and its server tools."""
    settings = header.settings
    client = {tool.name: signature_of(tool) for tool in settings.tools if isinstance(tool, FunctionTool)}
    plan = Plan(
        model=cast("ChatModel", None),
        model_id=header.model,
        instructions=settings.instructions or "",
        decoding=settings.to_decoding(),
        tool_config=ToolConfig(),
        toolbox=Toolbox(client),
        max_infer_iters=1,
        response_format=read_format(settings)[0],
        answer_schema=None,
        max_output_tokens=settings.max_output_tokens,
    )
    return ResponsePlan(plan, header.listed, None)
