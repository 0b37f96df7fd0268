"""The events inside an item of a call that the server runs, and the item as its call begins."""

from collections.abc import Iterator

from stint.domain.openai.code_interpreter import CodeInterpreterCall
from stint.domain.openai.file_search import FileSearchCall
from stint.domain.openai.image_generation import ImageGenerationCall
from stint.domain.openai.item_events import (
    CodeInterpreterCallCompleted,
    CodeInterpreterCallInProgress,
    CodeInterpreterCallInterpreting,
    CodeInterpreterCodeDelta,
    CodeInterpreterCodeDone,
    FileSearchCallCompleted,
    FileSearchCallInProgress,
    FileSearchCallSearching,
    ImageGenerationCallCompleted,
    ImageGenerationCallGenerating,
    ImageGenerationCallInProgress,
    ImageGenerationCallPartialImage,
    McpCallArgumentsDelta,
    McpCallArgumentsDone,
    McpCallCompleted,
    McpCallFailed,
    McpCallInProgress,
    WebSearchCallCompleted,
    WebSearchCallInProgress,
    WebSearchCallSearching,
)
from stint.domain.openai.items import HostedCall, WebSearchCall
from stint.domain.openai.mcp_items import McpCall
from stint.domain.openai.response_events import ResponseEvent
from stint.services.responses.streamed_items import OpenItem, Place


def started_call(item: HostedCall) -> HostedCall:
    """Return a call as it was when the server started to run it."""
    match item:
        case McpCall():
            return item.model_copy(update={"status": "in_progress", "output": None, "error": None})
        case WebSearchCall():
            action = item.action.model_copy(update={"sources": None})
            return item.model_copy(update={"status": "in_progress", "action": action})
        case FileSearchCall():
            return item.model_copy(update={"status": "in_progress", "results": None})
        case ImageGenerationCall():
            made = {"result": None, "revised_prompt": None, "output_format": None}
            return item.model_copy(update={"status": "in_progress", **made})
        case CodeInterpreterCall():
            return item.model_copy(update={"status": "in_progress", "outputs": None})


def added_call(item: HostedCall) -> HostedCall:
    """Return a call that begins without what its events will add."""
    match item:
        case McpCall():
            return item.model_copy(update={"arguments": ""})
        case CodeInterpreterCall():
            return item.model_copy(update={"code": ""})
        case _:
            return item


def begin_events(item: HostedCall, opened: OpenItem) -> Iterator[ResponseEvent]:
    """Yield the events of a call that the server starts to run, after its item was added."""
    place = opened.place
    match item:
        case McpCall():
            opened.text.append(item.arguments)
            yield McpCallInProgress(**place)
            yield McpCallArgumentsDelta(**place, delta=item.arguments)
            yield McpCallArgumentsDone(**place, arguments=item.arguments)
        case WebSearchCall():
            yield WebSearchCallInProgress(**place)
            yield WebSearchCallSearching(**place)
        case FileSearchCall():
            yield FileSearchCallInProgress(**place)
            yield FileSearchCallSearching(**place)
        case ImageGenerationCall():
            yield ImageGenerationCallInProgress(**place)
            yield ImageGenerationCallGenerating(**place)
        case CodeInterpreterCall(code=code):
            opened.text.append(code or "")
            yield CodeInterpreterCallInProgress(**place)
            yield CodeInterpreterCodeDelta(**place, delta=code or "")
            yield CodeInterpreterCodeDone(**place, code=code or "")
            yield CodeInterpreterCallInterpreting(**place)


def result_events(item: HostedCall, place: Place) -> Iterator[ResponseEvent]:
    """Yield the event of a call that has ended. Only some kinds of calls have one for a failure."""
    match item:
        case McpCall(status="failed"):
            yield McpCallFailed(**place)
        case McpCall():
            yield McpCallCompleted(**place)
        case WebSearchCall():
            yield WebSearchCallCompleted(**place)
        case FileSearchCall(status="completed"):
            yield FileSearchCallCompleted(**place)
        case ImageGenerationCall(status="completed", result=str(image)):
            if item.shows_partial:
                yield ImageGenerationCallPartialImage(**place, partial_image_index=0, partial_image_b64=image)
            yield ImageGenerationCallCompleted(**place)
        case CodeInterpreterCall(status="completed"):
            yield CodeInterpreterCallCompleted(**place)
        case _:
            pass
