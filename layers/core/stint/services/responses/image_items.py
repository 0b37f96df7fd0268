"""The image generation of a response: the tool, and the items of its calls."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from stint.domain.errors import InvalidRequest
from stint.domain.openai.image_generation import ImageGenerationCall, ImageGenerationTool
from stint.domain.tools import ToolCall, ToolResponse
from stint.loop.toolbox import ServerTool
from stint.tools.port import IMAGE_GENERATION, IMAGE_MODELS, Toolgroup, ToolProvider

FORMATS: dict[str, Literal["png", "webp", "jpeg", "gif"]] = {
    "image/png": "png",
    "image/webp": "webp",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
}
DRAWN = "The image was generated, and the user sees it."
NOT_DRAWN = "The image could not be generated."


async def image_generation(tool: ImageGenerationTool, place: int, providers: Mapping[str, ToolProvider]) -> ServerTool:
    """Return the tool, whose options the image model supports.

    Raises:
        InvalidRequest: there is no image model, or the model lacks an option. The message names it.
        Forbidden: the caller may not use the model.
    """
    from stint.tools.image_generation.port import IMAGE_TOOL  # noqa: PLC0415 - few responses generate images

    provider = providers.get(IMAGE_MODELS)
    if provider is None:
        raise InvalidRequest(
            "Image generation needs an image model. Set STINT_IMAGE_MODEL (parameter ImageModel).",
            param=f"tools[{place}]",
        )
    group = Toolgroup(IMAGE_GENERATION, IMAGE_MODELS, config=tool.options)
    try:
        await provider.check(group)
    except InvalidRequest as error:
        error.param = f"tools[{place}].{error.param}" if error.param else f"tools[{place}]"
        raise
    return ServerTool(IMAGE_TOOL, group, provider)


def open_image(tool: ImageGenerationTool, next_id: Callable[[str], str]) -> ImageGenerationCall:
    """Return the item of an image that is being generated."""
    return ImageGenerationCall(
        id=next_id("ig"),
        status="in_progress",
        background=tool.background,
        quality=tool.quality,
        size=tool.size,
        shows_partial=bool(tool.partial_images),
    )


def finish_image(item: ImageGenerationCall, call: ToolCall, response: ToolResponse) -> ImageGenerationCall:
    """Return the item of an image that was generated, or could not be."""
    prompt = call.arguments.get("prompt") if isinstance(call.arguments, dict) else None
    image, properties = response.generated_image, response.image_properties
    changes: dict[str, Any] = {
        "status": "failed" if image is None else "completed",
        "result": image,
        "revised_prompt": properties.get("revised_prompt") or (prompt if isinstance(prompt, str) else None),
        "output_format": FORMATS.get(properties.get("media_type", "")),
    }
    return item.model_copy(update=changes)


def image_note(item: ImageGenerationCall) -> str:
    """Return the result of a call for the model."""
    return NOT_DRAWN if item.status == "failed" else DRAWN
