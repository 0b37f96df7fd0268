"""The tool that generates images: `photogen` of Llama Stack, `image_generation` of the Responses API.

Both are one tool with one parameter, under another name. The model and the options come from the registration, then
from the agent or the turn, which overrides it. They are checked when they are registered and before each call, since
the list of models and the rights of the caller may change between both.

The outcome has the image as content: the user gets it from the step. The note beside it is for the model. An image
counts at least a megabyte of the run's results, however small: this bounds the number of images, whose price has
nothing to do with their bytes.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from stint.domain.content import ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.inference import ToolSignature
from stint.domain.tools import GENERATED_IMAGE
from stint.tools.image_generation.port import IMAGE_TOOL, LONGEST_PROMPT, PHOTOGEN, GeneratedImage, ImageOptions
from stint.tools.image_generation.router import ImageRouter, ResolvedImageModel
from stint.tools.outcomes import failure, timed_out, unknown_tool
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

TIMEOUT = 180.0
"""Seconds of a call. A large image in high quality takes up to two minutes."""

COUNTED_BYTES = 1_000_000
"""Bytes of results that an image counts at least, so that a run generates eight at most."""

PARAMETERS = {PHOTOGEN.name: "query", IMAGE_TOOL.name: "prompt"}


class AllowedModels(Protocol):
    """The models that the current caller may use."""

    def require(self, model_id: str) -> None:
        """Raise Forbidden for a model that the caller may not use."""
        ...


class ImageGeneration:
    """The tool of either name. `find_allowed` returns the models that the current caller and its tenant may use.

    The args of a registration, and those of an agent or a turn, are a `model` and the options of `ImageOptions`. The
    model writes only the prompt.
    """

    def __init__(self, router: ImageRouter, find_allowed: Callable[[], AllowedModels]) -> None:
        self._router = router
        self._find_allowed = find_allowed

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check the model and the options in the args; see the port."""
        self.resolve(toolgroup.config)

    def resolve(self, given: Mapping[str, Any]) -> tuple[ResolvedImageModel, ImageOptions]:
        """Return the model and the options of an image.

        Raises:
            InvalidRequest: there is no such model or option, or the model lacks it.
            Forbidden: the caller may not use the model.
        """
        model_id = given.get("model")
        if model_id is not None and not isinstance(model_id, str):
            raise InvalidRequest("The model of an image must be a text.", param="model")
        options = ImageOptions.of({name: value for name, value in given.items() if name != "model"})
        resolved = self._router.resolve(model_id)
        self._find_allowed().require(resolved.model_id)
        resolved.model.check(resolved.provider_model_id, options)
        return resolved, options

    def known_tools(self, _toolgroup: Toolgroup, _provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool of Llama Stack; see the port."""
        return [PHOTOGEN]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool, without a request."""
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Generate an image; see the port."""
        parameter = PARAMETERS.get(invocation.tool_name)
        if parameter is None:
            return unknown_tool(invocation.tool_name, [PHOTOGEN.name])
        prompt = invocation.arguments.get(parameter)
        if not isinstance(prompt, str) or not prompt.strip():
            return failure(f"The argument {parameter} is missing. Send a description of the image as a text.")
        if len(prompt) > LONGEST_PROMPT:
            return failure(f"The description has {len(prompt)} characters; at most {LONGEST_PROMPT} are allowed.")
        # Only arguments that the model did not write: `model` or `size` of its own would have a price.
        fixed = {name: invocation.arguments[name] for name in invocation.fixed if name in invocation.arguments}
        fixed.pop(parameter, None)
        try:
            resolved, options = self.resolve({**toolgroup.config, **fixed})
            async with asyncio.timeout(TIMEOUT):
                image = await resolved.model.generate(resolved.provider_model_id, prompt, options)
        except TimeoutError:
            return timed_out(TIMEOUT)
        except ModelError as error:
            return failure(f"The image could not be generated: {error.message}")
        return describe(image, resolved.model_id, options)


def describe(image: GeneratedImage, model_id: str, options: ImageOptions) -> ToolOutcome:
    """Return an image as a result: a note for the model, the image, and its properties in the metadata."""
    given = {"size": options.size, "quality": options.quality, "background": options.background}
    properties = {"model": model_id, "media_type": image.media_type, "revised_prompt": image.revised_prompt, **given}
    shown = {name: value for name, value in properties.items() if value is not None}
    revised = f" It was drawn from this description: {image.revised_prompt}" if image.revised_prompt else ""
    note = TextContentItem(text=f"The image was generated, and the user sees it.{revised}")
    encoded = base64.b64encode(image.data).decode()
    return ToolOutcome(
        content=[note, ImageContentItem(image=ImageSource(data=encoded))],
        metadata={GENERATED_IMAGE: shown},
        refused=max(COUNTED_BYTES - len(encoded), 0),
    )
