"""Masking of keys in the URLs of responses' MCP servers."""

from stint.domain.openai.response_tools import McpTool
from stint.domain.openai.stored_responses import ResponseHeader, ResponseSettings
from stint.tools.masking import mask_path


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
