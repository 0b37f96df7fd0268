"""Conversion of a conversation to chat completions messages.

Compatible servers accept the simplest form of each thing, and may refuse or ignore others. So that one is written:

    a single text             a string, not a list of parts
    an answer with calls      content null if it has no text, as OpenAI's own answers
    arguments                 the model's own JSON, which the cache of the provider has; an object if it is not one
    images of a tool          in a message of the user after all results: a tool's message must be text
    a name                    a field, or before the text if the server or the name is not fit for a field
    reasoning                 omitted, unless the model is known to require it

Each message is written alone and in one way (`message_writer.py` keeps it), so nothing here may depend on the others.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from stint.domain.content import Content, DetailedImage, ImageContentItem, TextContentItem, items_of, text_of
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.tools import ToolCall
from stint.models.images import InlineImage, read_image
from stint.models.participant_names import is_plain_name, put_name_in_text
from stint.models.tool_arguments import read_call_arguments

Message = dict[str, Any]
REASONING = "reasoning_content"
"""Field of an assistant message that DeepSeek and Moonshot require if their models reason. Others refuse it."""


class MessageForm(NamedTuple):
    """The form that a model accepts: names in a field or in the text, and earlier answers with their reasoning."""

    has_names: bool = True
    has_reasoning: bool = False


def write_message(message: ModelMessage, form: MessageForm) -> Message:
    """Write one message for the field `messages` of OpenAI's "Create chat completion".

    A name is put before the text if it is not plain (see `is_plain_name`) or the form has no names. The images of a
    tool's result are not in it; see `write_tool_images`.

    Raises:
        InvalidRequest: an image cannot be read.
    """
    match _with_plain_name(message, form):
        case SystemText(text, name):
            return _named({"role": "system", "content": text}, name)
        case UserInput(content, name):
            return _named({"role": "user", "content": write_content(content, _part)}, name)
        case AssistantAnswer(name=name) as answer:
            return _named(_assistant(answer, form), name)
        case ToolResult() as result:
            return _tool(result)


def write_tool_images(result: ToolResult) -> list[Message]:
    """Write the images of a tool's result, for a user message after the results of all tools.

    OpenAI and vLLM refuse images in tool messages, and nothing may come between an answer's calls and their results.
    """
    images = _images(result)
    if not images:
        return []
    return [{"type": "text", "text": f"From {result.tool_name}:"}, *(_part(image) for image in images)]


def has_images(message: ModelMessage) -> bool:
    """Return whether a message contains images."""
    if not isinstance(message, UserInput | ToolResult) or isinstance(message.content, str):
        return False
    return any(isinstance(item, ImageContentItem) for item in items_of(message.content))


def _with_plain_name(message: ModelMessage, form: MessageForm) -> ModelMessage:
    name = getattr(message, "name", "")
    return message if not name or (form.has_names and is_plain_name(name)) else put_name_in_text(message)


def _named(message: Message, name: str) -> Message:
    return {**message, "name": name} if name else message


def write_content(
    content: Content, write_part: Callable[[TextContentItem | ImageContentItem], Message]
) -> str | list[Message]:
    """Write content: a single text as a string, which every server accepts, anything else as parts."""
    if isinstance(content, str):
        return content
    items = items_of(content)
    if all(isinstance(item, TextContentItem) for item in items) and len(items) < 2:
        return text_of(content)
    return [write_part(item) for item in items]


def _part(item: TextContentItem | ImageContentItem) -> Message:
    if isinstance(item, TextContentItem):
        return {"type": "text", "text": item.text}
    image = read_image(item.image)
    told = {"url": image.data_url if isinstance(image, InlineImage) else image}
    if isinstance(item.image, DetailedImage):
        told["detail"] = item.image.detail
    return {"type": "image_url", "image_url": told}


def _assistant(answer: AssistantAnswer, form: MessageForm) -> Message:
    """Write an assistant message. With calls and without text, its content is null, as in OpenAI's answers."""
    message: Message = {"role": "assistant", "content": answer.text}
    if answer.tool_calls:
        message["content"] = answer.text or None
        message["tool_calls"] = [_tool_call(call) for call in answer.tool_calls]
    if form.has_reasoning:
        message[REASONING] = answer.reasoning.text if answer.reasoning is not None else ""
    return message


def _tool_call(call: ToolCall) -> Message:
    function = {"name": call.tool_name, "arguments": write_arguments(call)}
    return {"id": call.call_id, "type": "function", "function": function}


def write_arguments(call: ToolCall) -> str:
    """Return the JSON of a call's arguments as the model wrote it, or an object if that is not one."""
    arguments = (call.arguments_json or "") if isinstance(call.arguments, dict) else ""
    return arguments if arguments.strip() else json.dumps(read_call_arguments(call), ensure_ascii=False)


def _tool(result: ToolResult) -> Message:
    text = text_of(result.content)
    if not text and _images(result):
        text = "(the image follows)"
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def _images(result: ToolResult) -> list[ImageContentItem]:
    if isinstance(result.content, str):
        return []
    return [item for item in items_of(result.content) if isinstance(item, ImageContentItem)]
