"""Images of Amazon Bedrock's models: Nova Canvas, Titan Image Generator, and those of Stability AI.

InvokeModel passes a body of the model's own form, so the family is found in the model's id, and each has a writer. The
options are those of the Responses API. What a family lacks is refused, and not dropped: a caller who asked for a
transparent background must not pay for an opaque one. A family that nobody knows is refused, too.

`check` writes the body without a prompt, so that a registration meets the same refusals as a call. Providers charge
nothing for a request that they refuse, so such errors become ImageRefused, which costs nothing (`router.py`). The
families answer with `error` or `finish_reasons` if a filter blocked the image, although the call succeeded.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any

from stint.domain.errors import InvalidRequest, ModelError
from stint.providers.bedrock.errors import ERRORS, explain
from stint.tools.image_generation.answers import read_base64
from stint.tools.image_generation.port import GeneratedImage, ImageOptions, ImageRefused, as_refusal

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

LONGEST_PROMPTS = {"nova-canvas": 1024, "titan-image-generator": 512}
"""Maximum characters of a prompt, by a part of the model's id. Stability's models accept more."""

STABILITY, LONGEST_OF_STABILITY = "stability.", 10_000
QUALITIES = {"low": "standard", "medium": "standard", "high": "premium"}
RATIOS = ("16:9", "1:1", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21")
"""Ratios of width and height of Stability's models, which choose the size themselves."""


class BedrockImages:
    """The image models of InvokeModel. Each call waits in a thread, because boto3 blocks.

    The client is made when first used, in the thread of that call.
    """

    def __init__(self, connect: "Callable[[], BedrockRuntimeClient]") -> None:
        self._connect = connect
        self._made_client: BedrockRuntimeClient | None = None
        self._lock = threading.Lock()

    def check(self, model_id: str, options: ImageOptions, /) -> None:
        """Refuse options that the model lacks; see the port."""
        write_body(model_id, "", options)

    async def generate(self, model_id: str, prompt: str, options: ImageOptions, /) -> GeneratedImage:
        """Generate an image; see the port."""
        with as_refusal():
            body = write_body(model_id, prompt, options)
        return await asyncio.to_thread(self._invoke, model_id, json.dumps(body))

    def _invoke(self, model_id: str, body: str) -> GeneratedImage:
        try:
            answer = self._client().invoke_model(
                modelId=model_id, body=body, accept="application/json", contentType="application/json"
            )
            raw = answer["body"].read()
        except ERRORS as error:
            with as_refusal():
                raise explain(error, {}) from error
        return read_answer(raw)

    def _client(self) -> "BedrockRuntimeClient":
        with self._lock:
            if self._made_client is None:
                self._made_client = self._connect()
            return self._made_client


def write_body(model_id: str, prompt: str, options: ImageOptions) -> dict[str, Any]:
    """Return the body of a request. Raises InvalidRequest for what the model lacks."""
    longest = next((most for name, most in LONGEST_PROMPTS.items() if name in model_id), None)
    if longest is not None:
        refuse_long(prompt, longest)
        return write_canvas(model_id, prompt, options)
    if STABILITY in model_id:
        refuse_long(prompt, LONGEST_OF_STABILITY)
        return write_stability(model_id, prompt, options)
    raise InvalidRequest(
        f"Bedrock's model {model_id!r} is not known to generate images. Use a Nova Canvas, Titan Image Generator or "
        "Stability model.",
        code="model_not_found",
        param="model",
    )


def refuse_long(prompt: str, longest: int) -> None:
    if len(prompt) > longest:
        raise InvalidRequest(f"The prompt has {len(prompt)} characters; this model accepts {longest}. Shorten it.")


def write_canvas(model_id: str, prompt: str, options: ImageOptions) -> dict[str, Any]:
    """Return the body for Nova Canvas or Titan, whose images are opaque PNGs.

    https://docs.aws.amazon.com/nova/latest/userguide/image-gen-req-resp-structure.html
    """
    options.refuse(model_id, "output_compression", "moderation")
    refuse_except(model_id, options, "output_format", ("png",))
    refuse_except(model_id, options, "background", ("opaque",))
    refuse_except(model_id, options, "quality", tuple(QUALITIES))
    width, height = options.pixels
    quality = QUALITIES[options.quality or "medium"]
    config = {"numberOfImages": 1, "width": width, "height": height, "quality": quality}
    return {"taskType": "TEXT_IMAGE", "textToImageParams": {"text": prompt}, "imageGenerationConfig": config}


def write_stability(model_id: str, prompt: str, options: ImageOptions) -> dict[str, Any]:
    """Return the body for a model of Stability AI, which gets the ratio of the size.

    https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-stability-diffusion.html
    """
    options.refuse(model_id, "quality", "output_compression", "moderation")
    refuse_except(model_id, options, "output_format", ("png", "jpeg"))
    refuse_except(model_id, options, "background", ("opaque",))
    width, height = options.pixels
    common = gcd(width, height)
    ratio = f"{width // common}:{height // common}"
    if ratio not in RATIOS:
        raise InvalidRequest(
            f"The image model {model_id!r} does not support the size {options.size!r}. Its ratios of width and height "
            f"are {', '.join(RATIOS)}.",
            param="size",
        )
    return {"prompt": prompt, "aspect_ratio": ratio, "output_format": options.output_format or "png"}


def refuse_except(model_id: str, options: ImageOptions, name: str, known: tuple[str, ...]) -> None:
    """Raise InvalidRequest if an option has another value."""
    if getattr(options, name) not in (None, *known):
        options.refuse(model_id, name)


def read_answer(raw: bytes) -> GeneratedImage:
    """Return the image of an answer of either family.

    Raises:
        ImageRefused: a filter of the provider refused the prompt or the image.
        InvalidRequest: the image is too large.
        ModelError: there is no image.
    """
    try:
        answer = json.loads(raw)
        reasons = [answer.get("error"), *(answer.get("finish_reasons") or [])]
        images = answer.get("images") or [None]
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ModelError("Bedrock sent an answer without an image.") from error
    refused = next((str(reason) for reason in reasons if reason), None)
    if refused is not None:
        raise ImageRefused(f"The image model refused: {refused[:500]}")
    return GeneratedImage(read_base64(images[0]))
