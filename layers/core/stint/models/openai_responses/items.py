"""Conversion of a conversation to the input items of the Responses API."""

from collections.abc import Iterator
from typing import Any

from stint.domain.content import DetailedImage, ImageContentItem, TextContentItem
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.tools import ToolCall
from stint.models.images import InlineImage, read_image
from stint.models.openai.message_writer import MessageWriter, write_json
from stint.models.openai.messages import write_arguments, write_content
from stint.models.openai_responses.reasoning import BETWEEN, Item, read_items
from stint.models.participant_names import put_name_in_text


class ItemWriter(MessageWriter):
    """Writes messages as items, and keeps them. The form is the origin of the request."""

    def write_one(self, message: ModelMessage, form: str) -> bytes:
        """Write the items of one message, separated by commas. Raises InvalidRequest if an image cannot be read."""
        return b",".join(write_json(item) for item in write_items(message, form))

    def late_images(self, result: ToolResult) -> list[Item]:  # noqa: ARG002 - they are in the result
        """Return no images: the output of a call has them."""
        return []


def write_items(message: ModelMessage, origin: str) -> list[Item]:
    """Write one message as items of `input` of OpenAI's "Create a model response".

    The API has no names of participants, so a name is put before the text. `origin` is the server and the model of the
    request; an earlier answer of theirs has its reasoning items.

    Raises:
        InvalidRequest: an image cannot be read.
    """
    match put_name_in_text(message):
        case SystemText(text):
            return [_message("system", text)]
        case UserInput(content):
            return [_message("user", write_content(content, _part))]
        case AssistantAnswer() as answer:
            return _answer(answer, origin) or [_message("assistant", "")]
        case ToolResult(call_id, _, content):
            return [{"type": "function_call_output", "call_id": call_id, "output": write_content(content, _part)}]


def _answer(answer: AssistantAnswer, origin: str) -> list[Item]:
    """Return the items of an answer, with its reasoning items at their places.

    A server refuses a reasoning item without the item that followed it. An answer that was cut lacks items at its end.
    """
    items: list[Item] = []
    written, called, phase = 0, 0, ""
    for placed in read_items(answer.reasoning, origin):
        characters, calls = max(written, placed.place.characters), max(called, placed.place.calls)
        if characters > len(answer.text) or calls > len(answer.tool_calls):
            break
        items += [*_text(answer.text, written, characters, phase), *map(_call, answer.tool_calls[called:calls])]
        written, called, phase = characters, calls, placed.phase or phase
        if placed.item is not None:
            items.append(placed.item)
    items += [*_text(answer.text, written, len(answer.text), phase), *map(_call, answer.tool_calls[called:])]
    # The item that followed was cut off, and the server refuses the one without the other.
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _text(text: str, start: int, end: int, phase: str) -> Iterator[Item]:
    part = text[start:end]
    part = part.removeprefix(BETWEEN) if start else part
    if part:
        yield _message("assistant", part) | ({"phase": phase} if phase else {})


def _message(role: str, content: str | list[dict[str, Any]]) -> Item:
    return {"type": "message", "role": role, "content": content}


def _call(call: ToolCall) -> Item:
    return {
        "type": "function_call",
        "call_id": call.call_id,
        "name": call.tool_name,
        "arguments": write_arguments(call),
    }


def _part(item: TextContentItem | ImageContentItem) -> dict[str, Any]:
    if isinstance(item, TextContentItem):
        return {"type": "input_text", "text": item.text}
    image = read_image(item.image)
    url = image.data_url if isinstance(image, InlineImage) else image
    detail = item.image.detail if isinstance(item.image, DetailedImage) else "auto"
    return {"type": "input_image", "image_url": url, "detail": detail}
