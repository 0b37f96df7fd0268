"""Events of a response's stream: a closed union. `sequence_number` counts from 0 over the whole response.

Here are the events of the response and of whole items; `item_events.py` has those inside items. The numbers are the
same in every reading of a stored stream, so that a client can go on after the last one that it got.
"""

from typing import Annotated, Literal

from pydantic import Field

from stint.domain.openai.item_events import (
    AnnotationAdded,
    CodeInterpreterCallCompleted,
    CodeInterpreterCallInProgress,
    CodeInterpreterCallInterpreting,
    CodeInterpreterCodeDelta,
    CodeInterpreterCodeDone,
    ContentPartAdded,
    ContentPartDone,
    FileSearchCallCompleted,
    FileSearchCallInProgress,
    FileSearchCallSearching,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    ImageGenerationCallCompleted,
    ImageGenerationCallGenerating,
    ImageGenerationCallInProgress,
    ImageGenerationCallPartialImage,
    McpCallArgumentsDelta,
    McpCallArgumentsDone,
    McpCallCompleted,
    McpCallFailed,
    McpCallInProgress,
    McpListToolsCompleted,
    McpListToolsFailed,
    McpListToolsInProgress,
    OutputEvent,
    OutputTextDelta,
    OutputTextDone,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDelta,
    ReasoningSummaryTextDone,
    ReasoningTextDelta,
    ReasoningTextDone,
    RefusalTextDelta,
    RefusalTextDone,
    WebSearchCallCompleted,
    WebSearchCallInProgress,
    WebSearchCallSearching,
    WithResponseId,
)
from stint.domain.openai.items import OutputItem
from stint.domain.openai.response_resource import Response
from stint.domain.openai.stored_responses import ResponseError
from stint.domain.schema import Schema


class LifecycleEvent(Schema):
    sequence_number: int = 0
    response: Response


class ResponseCreated(LifecycleEvent):
    type: Literal["response.created"] = "response.created"


class ResponseQueued(LifecycleEvent):
    type: Literal["response.queued"] = "response.queued"


class ResponseInProgress(LifecycleEvent):
    type: Literal["response.in_progress"] = "response.in_progress"


class ResponseCompleted(LifecycleEvent):
    type: Literal["response.completed"] = "response.completed"


class ResponseIncomplete(LifecycleEvent):
    type: Literal["response.incomplete"] = "response.incomplete"


class ResponseFailed(LifecycleEvent):
    type: Literal["response.failed"] = "response.failed"


class OutputItemAdded(WithResponseId, OutputEvent):
    """The start of an item, which is in progress and empty."""

    type: Literal["response.output_item.added"] = "response.output_item.added"
    item: OutputItem


class OutputItemDone(WithResponseId, OutputEvent):
    type: Literal["response.output_item.done"] = "response.output_item.done"
    item: OutputItem


class ErrorEvent(Schema):
    """An error in a stream, in both forms that clients read: OpenAI's flat one and that of Open Responses."""

    type: Literal["error"] = "error"
    sequence_number: int = 0
    code: str
    message: str
    param: str = ""
    error: ResponseError

    @classmethod
    def of(cls, error: ResponseError, sequence_number: int) -> "ErrorEvent":
        return cls(
            sequence_number=sequence_number, code=error.code, message=error.message, param=error.param, error=error
        )


ResponseEvent = Annotated[
    ResponseCreated
    | ResponseQueued
    | ResponseInProgress
    | ResponseCompleted
    | ResponseIncomplete
    | ResponseFailed
    | OutputItemAdded
    | OutputItemDone
    | ContentPartAdded
    | ContentPartDone
    | OutputTextDelta
    | OutputTextDone
    | AnnotationAdded
    | RefusalTextDelta
    | RefusalTextDone
    | ReasoningTextDelta
    | ReasoningTextDone
    | ReasoningSummaryPartAdded
    | ReasoningSummaryPartDone
    | ReasoningSummaryTextDelta
    | ReasoningSummaryTextDone
    | FunctionCallArgumentsDelta
    | FunctionCallArgumentsDone
    | McpListToolsInProgress
    | McpListToolsCompleted
    | McpListToolsFailed
    | McpCallInProgress
    | McpCallArgumentsDelta
    | McpCallArgumentsDone
    | McpCallCompleted
    | McpCallFailed
    | WebSearchCallInProgress
    | WebSearchCallSearching
    | WebSearchCallCompleted
    | FileSearchCallInProgress
    | FileSearchCallSearching
    | FileSearchCallCompleted
    | ImageGenerationCallInProgress
    | ImageGenerationCallGenerating
    | ImageGenerationCallPartialImage
    | ImageGenerationCallCompleted
    | CodeInterpreterCallInProgress
    | CodeInterpreterCodeDelta
    | CodeInterpreterCodeDone
    | CodeInterpreterCallInterpreting
    | CodeInterpreterCallCompleted
    | ErrorEvent,
    Field(discriminator="type"),
]
