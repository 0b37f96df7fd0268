"""The tool that generates images: its settings and its calls."""

from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from stint.domain.approvals import ApprovalMode, ApprovalRequestId
from stint.domain.fields import LONG_TEXT, Nothing, Omitted, SupportedValues, UnsupportedField
from stint.domain.schema import Request

NO_EDITS = "Images are generated, not edited. Remove it"
NO_ANIMATIONS = "Animated images are not supported. Remove it"

Background = Literal["transparent", "opaque", "auto"]
OutputFormat = Literal["png", "webp", "jpeg"]
Quality = Literal["low", "medium", "high", "xhigh", "max", "auto"]
Size = Annotated[str, Field(max_length=16)]


class ImageGenerationTool(Request):
    """A tool that generates images. The image model may support fewer options.

    A stream has one partial image, the finished one, if `partial_images` is not 0.
    """

    type: Literal["image_generation"] = "image_generation"
    action: Annotated[Omitted[str], SupportedValues(("generate", "auto"), NO_EDITS), Field(exclude=True)] = None
    background: Omitted[Background] = None
    complexity: Annotated[Nothing, UnsupportedField("The image model plans by itself. Remove it")] = None
    frame_count: Annotated[Nothing, UnsupportedField(NO_ANIMATIONS)] = None
    frame_duration_ms: Annotated[Nothing, UnsupportedField(NO_ANIMATIONS)] = None
    input_fidelity: Annotated[Nothing, UnsupportedField(NO_EDITS)] = None
    input_image_mask: Annotated[Nothing, UnsupportedField(NO_EDITS)] = None
    model: Omitted[Annotated[str, Field(min_length=1, max_length=256)]] = None
    moderation: Omitted[Literal["auto", "low"]] = None
    output_compression: Omitted[Annotated[StrictInt, Field(ge=0, le=100)]] = None
    output_format: Omitted[OutputFormat] = None
    partial_images: Omitted[Annotated[StrictInt, Field(ge=0, le=3)]] = None
    quality: Omitted[Quality] = None
    size: Omitted[Size] = None
    require_approval: ApprovalMode = None
    svg: Annotated[Nothing, UnsupportedField("Vector images are not supported. Remove it")] = None

    @property
    def options(self) -> dict[str, Any]:
        """Return the model and the options of an image that are set."""
        return self.model_dump(exclude={"type", "action", "partial_images", "require_approval"}, exclude_none=True)


class ImageGenerationChoice(Request):
    """The model must generate an image."""

    type: Literal["image_generation"] = "image_generation"


class ImageGenerationCall(Request):
    """A generated image. `result` is its base64, and `revised_prompt` what it was drawn from.

    The stream of an item with `shows_partial` has the image as a partial one, too.
    """

    type: Literal["image_generation_call"] = "image_generation_call"
    id: str = ""
    status: Literal["in_progress", "generating", "completed", "incomplete", "failed"] = "completed"
    result: Annotated[str, Field(max_length=LONG_TEXT)] | None = None
    revised_prompt: Omitted[Annotated[str, Field(max_length=LONG_TEXT)]] = None
    background: Omitted[Background] = None
    output_format: Omitted[Literal["png", "webp", "jpeg", "gif"]] = None
    quality: Omitted[Quality] = None
    size: Omitted[Size] = None
    approval_request_id: ApprovalRequestId = None
    shows_partial: Annotated[bool, Field(exclude=True)] = False
