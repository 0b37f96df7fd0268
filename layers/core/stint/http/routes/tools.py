"""Routes of the registry group: toolgroups and tools."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from stint.domain.llama_stack.registrations import (
    RuntimeTool,
    RuntimeToolList,
    Tool,
    ToolGroup,
    ToolGroupEntry,
    ToolGroupList,
    ToolGroupRegisterRequest,
    ToolInvocationResult,
    ToolInvokeRequest,
    ToolList,
)
from stint.http.deadline import deadline_of
from stint.http.dependencies import AgentsServicesDep, ProviderDataDep
from stint.http.json_responses import document, null
from stint.http.requests import StrictRoute
from stint.http.scopes import requires

router = APIRouter(prefix="/v1", tags=["Tools"], route_class=StrictRoute)


@router.get("/toolgroups", response_model=ToolGroupList)
@requires("use")
async def list_toolgroups(services: AgentsServicesDep) -> Response:
    """List the configured and registered toolgroups."""
    toolgroups = await services.toolgroups.list()
    return document(ToolGroupList(data=[ToolGroupEntry(**dict(toolgroup)) for toolgroup in toolgroups]))


@router.post("/toolgroups", response_model=ToolGroup)
@requires("registry:write")
async def register_toolgroup(body: ToolGroupRegisterRequest, services: AgentsServicesDep) -> Response:
    """Register a toolgroup: an MCP server, HTTP endpoints or Lambda functions."""
    return document(await services.toolgroups.register(body))


@router.get("/toolgroups/{toolgroup_id:path}", response_model=ToolGroup)
@requires("use")
async def get_toolgroup(toolgroup_id: str, services: AgentsServicesDep) -> Response:
    """Read a toolgroup."""
    return document(await services.toolgroups.get(toolgroup_id))


@router.delete("/toolgroups/{toolgroup_id:path}", response_model=None)
@requires("registry:write")
async def unregister_toolgroup(toolgroup_id: str, services: AgentsServicesDep) -> Response:
    """Unregister a toolgroup."""
    await services.toolgroups.unregister(toolgroup_id)
    return null()


@router.get("/tools", response_model=ToolList)
@requires("use")
async def list_tools(
    request: Request, services: AgentsServicesDep, keys: ProviderDataDep, toolgroup_id: str | None = None
) -> Response:
    """List the tools of a toolgroup (`group` or `group/tool`), or of all toolgroups. Some may be unavailable."""
    named = toolgroup_id or request.query_params.get("toolgroup_id[name]")
    async with services.meters.watch():
        return document(await services.toolgroups.tools_of(named, keys))


@router.get("/tools/{tool_name:path}", response_model=Tool)
@requires("use")
async def get_tool(tool_name: str, services: AgentsServicesDep, keys: ProviderDataDep) -> Response:
    """Read a tool."""
    async with services.meters.watch():
        return document(await services.toolgroups.tool(tool_name, keys))


@router.get("/tool-runtime/list-tools", response_model=RuntimeToolList)
@requires("use")
async def list_runtime_tools(
    request: Request,
    services: AgentsServicesDep,
    keys: ProviderDataDep,
    tool_group_id: str | None = None,
    mcp_endpoint: Annotated[str | None, Query(description="Its URL; clients send it as mcp_endpoint[uri].")] = None,
) -> Response:
    """List the tools of a toolgroup, of an MCP server that need not be registered, or of all toolgroups."""
    endpoint = mcp_endpoint or request.query_params.get("mcp_endpoint[uri]")
    async with services.meters.watch():
        listed = await services.toolgroups.tools_of(tool_group_id, keys, endpoint)
    tools = [RuntimeTool(name=tool.identifier, **dict(tool)) for tool in listed.data]
    return document(RuntimeToolList(data=tools, unavailable=listed.unavailable))


@router.post("/tool-runtime/invoke", response_model=ToolInvocationResult)
@requires("use")
async def invoke_tool(
    body: ToolInvokeRequest, request: Request, services: AgentsServicesDep, keys: ProviderDataDep
) -> Response:
    """Run a tool outside a turn."""
    async with services.meters.request(acts=True, deadline=deadline_of(request)):
        return document(await services.toolgroups.invoke(body.tool_name, body.arguments, keys))
