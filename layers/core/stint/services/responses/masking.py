"""The keys of responses' MCP servers: masked in URLs, and added to those of the caller."""

from collections.abc import Sequence

from stint.domain.openai.response_tools import McpTool, ResponseTool
from stint.domain.openai.stored_responses import ResponseHeader, ResponseSettings
from stint.tools.masking import mask_path
from stint.tools.port import ProviderData


def masked(header: ResponseHeader) -> ResponseHeader:
    """Return a header with masked URLs."""
    return header.model_copy(update={"settings": masked_settings(header.settings)})


def masked_settings(settings: ResponseSettings) -> ResponseSettings:
    """Return settings without possible keys in the URLs of MCP servers."""
    if not any(isinstance(tool, McpTool) for tool in settings.tools):
        return settings
    tools = [
        tool.model_copy(update={"server_url": mask_path(tool.server_url)}) if isinstance(tool, McpTool) else tool
        for tool in settings.tools
    ]
    return settings.model_copy(update={"tools": tools})


def with_credentials(tools: Sequence[ResponseTool], provider_data: ProviderData) -> ProviderData:
    """Add the credentials of MCP tools to the caller's keys, in the form that the MCP provider reads."""
    headers = {
        tool.server_url: {**(tool.headers or {}), **bearer(tool)}
        for tool in tools
        if isinstance(tool, McpTool) and tool.carries_credentials
    }
    known = provider_data.get("mcp_headers")
    return {**provider_data, "mcp_headers": {**(known or {}), **headers}} if headers else provider_data


def bearer(tool: McpTool) -> dict[str, str]:
    return {"Authorization": f"Bearer {tool.authorization}"} if tool.authorization else {}
