"""Results of MCP tools as outcomes (specification, "Tools": content types, structured content, isError)."""

from typing import TYPE_CHECKING, Any

from stint.domain.content import ContentItem, ImageContentItem, TextContentItem
from stint.tools.outcomes import attachment, read_image, write_json
from stint.tools.port import ATTACHMENTS, ToolOutcome

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

STRUCTURED_CONTENT = "structured_content"
"""Key of an outcome's metadata: the tool's structured content, as it came."""
NO_RESULT = {"result": None}
"""The structured content that FastMCP makes for a tool that returns nothing."""


def read_result(result: "CallToolResult") -> ToolOutcome:
    """Text and images are for the model. What it cannot read (audio, files, links, SVG) is attached for the user.

    A block whose audience is the user alone is attached and not shown to the model; an image for both is both.
    Structured content is metadata, and the model's text when the tool gave nothing else. A tool that returned nothing
    has neither.
    """
    content: list[ContentItem] = []
    attachments: list[dict[str, Any]] = []
    for block in result.content:
        shown, attached = read_block(block)
        content.extend(shown)
        attachments.extend(attached)
    metadata: dict[str, Any] = {}
    if result.structuredContent is not None and (content or result.structuredContent != NO_RESULT):
        metadata[STRUCTURED_CONTENT] = result.structuredContent
        content = content or [TextContentItem(text=write_json(result.structuredContent))]
    if attachments:
        metadata[ATTACHMENTS] = attachments
    return ToolOutcome(content=content, metadata=metadata, error=result.isError)


def read_block(block: "ContentBlock") -> tuple[list[ContentItem], list[dict[str, Any]]]:
    """Tell what of a block the model sees, and what is attached for the user."""
    audience = list(block.annotations.audience or []) if block.annotations else []
    shown, attached = _divide(block)
    if audience == ["user"] and attached:
        return [], attached
    if "user" not in audience and any(isinstance(item, ImageContentItem) for item in shown):
        return shown, []
    return shown, attached


def _divide(block: "ContentBlock") -> tuple[list[ContentItem], list[dict[str, Any]]]:
    match block.type:
        case "text":
            return [TextContentItem(text=block.text)], []
        case "image":
            url = f"data:{block.mimeType};base64,{block.data}"
            if image := read_image(block.data):
                return [image], [attachment(url, block.mimeType)]
            return _attached(url, block.mimeType, "image")
        case "audio":
            url = f"data:{block.mimeType};base64,{block.data}"
            return _attached(url, block.mimeType, "audio")
        case "resource_link":
            return _attached(str(block.uri), block.mimeType or "", block.title or block.name)
        case "resource":
            resource = block.resource
            if (text := getattr(resource, "text", None)) is not None:
                return [TextContentItem(text=text)], []
            media_type, blob = resource.mimeType or "application/octet-stream", getattr(resource, "blob", "")
            return _attached(f"data:{media_type};base64,{blob}", media_type, str(resource.uri))


def _attached(url: str, media_type: str, name: str) -> tuple[list[ContentItem], list[dict[str, Any]]]:
    media_type = media_type or "application/octet-stream"
    place = "" if url.startswith("data:") else f" {url}"
    note = TextContentItem(text=f"[The user received an attachment: {name} ({media_type}){place}]")
    return [note], [attachment(url, media_type)]
