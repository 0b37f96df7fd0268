"""Conversion of MCP tools' results to outcomes (specification, "Tools": content, structured content, isError)."""

from typing import Any

from stint.domain.content import ContentItem, ImageContentItem, TextContentItem
from stint.tools.mcp.results import ResultBlock, ServerResult
from stint.tools.outcomes import attachment, read_image, write_json
from stint.tools.port import ATTACHMENTS, ToolOutcome

STRUCTURED_CONTENT = "structured_content"
"""Key of an outcome's metadata for the tool's unchanged structured content."""
NO_RESULT = {"result": None}
"""The structured content of FastMCP for a tool that returns nothing."""


def read_result(result: ServerResult) -> ToolOutcome:
    """Convert a result: text and images for the model, and other content (audio, files, links, SVG) as attachments.

    A block whose audience is only the user is attached and not shown to the model. An image for both is both shown and
    attached. Structured content is metadata, and the model's text if there is no other content. A tool that returned
    nothing has neither.
    """
    content: list[ContentItem] = []
    attachments: list[dict[str, Any]] = []
    for block in result.content:
        shown, attached = read_block(block)
        content.extend(shown)
        attachments.extend(attached)
    metadata: dict[str, Any] = {}
    if result.structured_content is not None and (content or result.structured_content != NO_RESULT):
        metadata[STRUCTURED_CONTENT] = result.structured_content
        content = content or [TextContentItem(text=write_json(result.structured_content))]
    if attachments:
        metadata[ATTACHMENTS] = attachments
    return ToolOutcome(content=content, metadata=metadata, error=bool(result.is_error))


def read_block(block: ResultBlock) -> tuple[list[ContentItem], list[dict[str, Any]]]:
    """Return the part of a block for the model, and the attachment for the user."""
    audience = list(block.annotations.audience or []) if block.annotations else []
    shown, attached = _divide(block)
    if audience == ["user"] and attached:
        return [], attached
    if "user" not in audience and any(isinstance(item, ImageContentItem) for item in shown):
        return shown, []
    return shown, attached


def _divide(block: ResultBlock) -> tuple[list[ContentItem], list[dict[str, Any]]]:
    media_type = block.mime_type or ""
    match block.type:
        case "text":
            return [TextContentItem(text=block.text)], []
        case "image":
            url = f"data:{media_type};base64,{block.data}"
            if image := read_image(block.data):
                return [image], [attachment(url, media_type)]
            return _attached(url, media_type, "image")
        case "audio":
            return _attached(f"data:{media_type};base64,{block.data}", media_type, "audio")
        case "resource_link":
            return _attached(str(block.uri or ""), media_type, block.title or block.name)
        case "resource":
            resource = block.resource
            if resource is None:
                return [], []
            if resource.text is not None:
                return [TextContentItem(text=resource.text)], []
            media_type = resource.mime_type or "application/octet-stream"
            return _attached(f"data:{media_type};base64,{resource.blob}", media_type, str(resource.uri))


def _attached(url: str, media_type: str, name: str) -> tuple[list[ContentItem], list[dict[str, Any]]]:
    media_type = media_type or "application/octet-stream"
    place = "" if url.startswith("data:") else f" {url}"
    note = TextContentItem(text=f"[The user received an attachment: {name} ({media_type}){place}]")
    return [note], [attachment(url, media_type)]
