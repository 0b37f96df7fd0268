"""Events inside the items of a response's stream, from which a client builds an item.

Their names and fields are those of OpenAI's API reference (Responses, streaming events), with Open Responses' names for
raw reasoning, and `response_id` where llama-stack-client expects it.
"""

import secrets
from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.openai.parts import Annotation, OutputText, ReasoningText, RefusalPart, SummaryText
from stint.domain.schema import Schema

OBFUSCATION = 16
"""Deltas are padded to multiples of this number of characters."""


class OutputEvent(Schema):
    sequence_number: int = 0
    output_index: int


class ItemEvent(OutputEvent):
    """The base of events inside an item. `item_id` is the id of the item at `output_index`."""

    item_id: str


class PartEvent(ItemEvent):
    content_index: int


class WithResponseId(Schema):
    """The events in which llama-stack-client expects `response_id` (0.7, types/response_object_stream.py).

    Without it, that client parses them as another event and its agents call no tool. `ResponseStream.number` sets it.
    """

    response_id: Omitted[str] = None


class SummaryEvent(ItemEvent):
    summary_index: int


class DeltaOf(Schema):
    """A piece of a text. `obfuscation` is padding, if the request asked for it."""

    delta: str
    obfuscation: Omitted[str] = None


def padding_of(text: str) -> str:
    """Return padding for a text, to a multiple of 16 characters, so that its size does not reveal its words."""
    missing = -len(text) % OBFUSCATION
    return secrets.token_urlsafe(OBFUSCATION)[:missing]


EventPart = Annotated[OutputText | RefusalPart | ReasoningText, Field(discriminator="type")]


class ContentPartAdded(WithResponseId, PartEvent):
    type: Literal["response.content_part.added"] = "response.content_part.added"
    part: EventPart


class ContentPartDone(WithResponseId, PartEvent):
    type: Literal["response.content_part.done"] = "response.content_part.done"
    part: EventPart


class OutputTextDelta(DeltaOf, PartEvent):
    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    logprobs: list[dict[str, Any]] = Field(default_factory=list)


class OutputTextDone(PartEvent):
    type: Literal["response.output_text.done"] = "response.output_text.done"
    text: str
    logprobs: list[dict[str, Any]] = Field(default_factory=list)


class AnnotationAdded(PartEvent):
    type: Literal["response.output_text.annotation.added"] = "response.output_text.annotation.added"
    annotation_index: int
    annotation: Annotation


class RefusalTextDelta(DeltaOf, PartEvent):
    type: Literal["response.refusal.delta"] = "response.refusal.delta"


class RefusalTextDone(PartEvent):
    type: Literal["response.refusal.done"] = "response.refusal.done"
    refusal: str


class ReasoningTextDelta(DeltaOf, PartEvent):
    """A piece of raw reasoning under OpenAI's name; Open Responses has `response.reasoning`."""

    type: Literal["response.reasoning_text.delta"] = "response.reasoning_text.delta"


class ReasoningTextDone(PartEvent):
    type: Literal["response.reasoning_text.done"] = "response.reasoning_text.done"
    text: str


class ReasoningSummaryPartAdded(SummaryEvent):
    type: Literal["response.reasoning_summary_part.added"] = "response.reasoning_summary_part.added"
    part: SummaryText


class ReasoningSummaryPartDone(SummaryEvent):
    type: Literal["response.reasoning_summary_part.done"] = "response.reasoning_summary_part.done"
    part: SummaryText


class ReasoningSummaryTextDelta(DeltaOf, SummaryEvent):
    type: Literal["response.reasoning_summary_text.delta"] = "response.reasoning_summary_text.delta"


class ReasoningSummaryTextDone(SummaryEvent):
    type: Literal["response.reasoning_summary_text.done"] = "response.reasoning_summary_text.done"
    text: str


class FunctionCallArgumentsDelta(DeltaOf, ItemEvent):
    type: Literal["response.function_call_arguments.delta"] = "response.function_call_arguments.delta"


class FunctionCallArgumentsDone(ItemEvent):
    type: Literal["response.function_call_arguments.done"] = "response.function_call_arguments.done"
    arguments: str


class McpListToolsInProgress(ItemEvent):
    type: Literal["response.mcp_list_tools.in_progress"] = "response.mcp_list_tools.in_progress"


class McpListToolsCompleted(ItemEvent):
    type: Literal["response.mcp_list_tools.completed"] = "response.mcp_list_tools.completed"


class McpListToolsFailed(ItemEvent):
    type: Literal["response.mcp_list_tools.failed"] = "response.mcp_list_tools.failed"


class McpCallInProgress(ItemEvent):
    type: Literal["response.mcp_call.in_progress"] = "response.mcp_call.in_progress"


class McpCallArgumentsDelta(DeltaOf, ItemEvent):
    type: Literal["response.mcp_call_arguments.delta"] = "response.mcp_call_arguments.delta"


class McpCallArgumentsDone(ItemEvent):
    type: Literal["response.mcp_call_arguments.done"] = "response.mcp_call_arguments.done"
    arguments: str


class McpCallCompleted(ItemEvent):
    type: Literal["response.mcp_call.completed"] = "response.mcp_call.completed"


class McpCallFailed(ItemEvent):
    type: Literal["response.mcp_call.failed"] = "response.mcp_call.failed"


class WebSearchCallInProgress(ItemEvent):
    type: Literal["response.web_search_call.in_progress"] = "response.web_search_call.in_progress"


class WebSearchCallSearching(ItemEvent):
    type: Literal["response.web_search_call.searching"] = "response.web_search_call.searching"


class WebSearchCallCompleted(ItemEvent):
    type: Literal["response.web_search_call.completed"] = "response.web_search_call.completed"


class FileSearchCallInProgress(ItemEvent):
    type: Literal["response.file_search_call.in_progress"] = "response.file_search_call.in_progress"


class FileSearchCallSearching(ItemEvent):
    type: Literal["response.file_search_call.searching"] = "response.file_search_call.searching"


class FileSearchCallCompleted(ItemEvent):
    type: Literal["response.file_search_call.completed"] = "response.file_search_call.completed"


class ImageGenerationCallInProgress(ItemEvent):
    type: Literal["response.image_generation_call.in_progress"] = "response.image_generation_call.in_progress"


class ImageGenerationCallGenerating(ItemEvent):
    type: Literal["response.image_generation_call.generating"] = "response.image_generation_call.generating"


class ImageGenerationCallPartialImage(ItemEvent):
    type: Literal["response.image_generation_call.partial_image"] = "response.image_generation_call.partial_image"
    partial_image_index: int
    partial_image_b64: str


class ImageGenerationCallCompleted(ItemEvent):
    type: Literal["response.image_generation_call.completed"] = "response.image_generation_call.completed"


class CodeInterpreterCallInProgress(ItemEvent):
    type: Literal["response.code_interpreter_call.in_progress"] = "response.code_interpreter_call.in_progress"


class CodeInterpreterCodeDelta(DeltaOf, ItemEvent):
    type: Literal["response.code_interpreter_call_code.delta"] = "response.code_interpreter_call_code.delta"


class CodeInterpreterCodeDone(ItemEvent):
    type: Literal["response.code_interpreter_call_code.done"] = "response.code_interpreter_call_code.done"
    code: str


class CodeInterpreterCallInterpreting(ItemEvent):
    type: Literal["response.code_interpreter_call.interpreting"] = "response.code_interpreter_call.interpreting"


class CodeInterpreterCallCompleted(ItemEvent):
    type: Literal["response.code_interpreter_call.completed"] = "response.code_interpreter_call.completed"
