"""The port of image models, and the options of their requests.

An image model is a tool: a chat model calls it with a description. Clients choose the model and the options; the
calling model writes only the prompt, so it cannot spend more than was configured.

`ImageRefused` exists for the bill. An InvalidRequest before or instead of an image costs nothing; one about an image
that was made, such as one that is too large, costs what the image costs. `as_refusal` marks the first kind where it
arises.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, Self

from stint.dataclasses import dataclass, fields
from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature, Usage
from stint.tools.outcomes import IMAGE_SIGNATURES
from stint.tools.port import IMAGE_GENERATION

DESCRIPTION = "Generate an image from a description. The user sees the image; the result for you is a note."
PROMPT = {"type": "string", "description": "A description of the image"}
PHOTOGEN = ToolSignature(
    name="photogen",
    description=DESCRIPTION,
    parameters={"type": "object", "properties": {"query": PROMPT}, "required": ["query"]},
)
IMAGE_TOOL = ToolSignature(
    name=IMAGE_GENERATION,
    description=DESCRIPTION,
    parameters={"type": "object", "properties": {"prompt": PROMPT}, "required": ["prompt"]},
)
MAX_IMAGE_BYTES = 3_000_000
"""Maximum bytes of an image. In base64 they are 4 MB, half of the results of a run."""

LONGEST_PROMPT = 32_000

DEFAULT_SIZE = (1024, 1024)
SIZE = re.compile(r"([1-9][0-9]{1,3})x([1-9][0-9]{1,3})")
LARGEST_SIDE = 2048

AUTO = "auto"
MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif")


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """The options of an image, by the names of the Responses API. None is the model's default.

    `size` is `WIDTHxHEIGHT` in pixels, and `output_compression` a percentage.
    """

    size: str | None = None
    quality: str | None = None
    background: str | None = None
    output_format: str | None = None
    output_compression: int | None = None
    moderation: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Read options; `auto` is the default. Raises InvalidRequest for one that no image has."""
        unknown = sorted(given.keys() - {each.name for each in fields(cls)})
        if unknown:
            raise InvalidRequest(f"Images have no option {unknown[0]!r}. Remove it.", param=unknown[0])
        for name, value in given.items():
            wanted: type = int if name == "output_compression" else str
            if value is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
                kind = "a whole number" if wanted is int else "a text"
                raise InvalidRequest(f"The option {name} of an image must be {kind}.", param=name)
        options = cls(**{name: None if value == AUTO else value for name, value in given.items()})
        read_size(options.size)
        return options

    @property
    def pixels(self) -> tuple[int, int]:
        """Return width and height."""
        return read_size(self.size)

    def refuse(self, model_id: str, *names: str) -> None:
        """Raise InvalidRequest if one of these options is set, because the model lacks it."""
        for name in names:
            value = getattr(self, name)
            if value is not None:
                raise InvalidRequest(
                    f"The image model {model_id!r} does not support {name} {value!r}. Remove it.", param=name
                )


def read_size(size: str | None) -> tuple[int, int]:
    """Return width and height of a size; the default ones of None. Raises InvalidRequest."""
    if size is None:
        return DEFAULT_SIZE
    found = SIZE.fullmatch(size)
    width, height = (int(found[1]), int(found[2])) if found else (0, 0)
    if not found or max(width, height) > LARGEST_SIDE:
        raise InvalidRequest(
            f"The size of an image must be WIDTHxHEIGHT, with 10 to {LARGEST_SIDE} pixels each, such as 1024x1024.",
            param="size",
        )
    return width, height


@dataclass(frozen=True, slots=True)
class GeneratedImage:
    """An image, with the prompt that the model made of the given one, and the tokens that it counted."""

    data: bytes
    revised_prompt: str | None = None
    usage: Usage | None = None

    @property
    def media_type(self) -> str:
        """Return the type that the bytes begin with."""
        known = zip(IMAGE_SIGNATURES, MEDIA_TYPES, strict=True)
        return next((name for start, name in known if self.data.startswith(start)), "image/webp")


class ImageRefused(InvalidRequest):
    """The provider refuses the prompt or an option, and charges nothing."""


@contextmanager
def as_refusal() -> Iterator[None]:
    """Raise ImageRefused for InvalidRequest."""
    try:
        yield
    except InvalidRequest as error:
        raise ImageRefused(error.message, code=error.code, param=error.param) from error


class ImageModel(Protocol):
    """Generates images with the models of one provider."""

    def check(self, model_id: str, options: ImageOptions, /) -> None:
        """Refuse options that a model lacks.

        Raises:
            InvalidRequest: the message names the option, which is the `param`.
        """
        ...

    async def generate(self, model_id: str, prompt: str, options: ImageOptions, /) -> GeneratedImage:
        """Generate one image.

        Raises:
            ImageRefused: the model refused the prompt or an option.
            InvalidRequest: its image cannot be used.
            ModelError: the provider failed, or sent no image.
        """
        ...
