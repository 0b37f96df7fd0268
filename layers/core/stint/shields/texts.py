"""The texts of messages that shields check."""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from stint.domain.content import TextContentItem, items_of
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.tools import ToolCall

IMAGE = "[image]"


def last_messages(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the last messages of one side: those after the last one of the other side."""
    dialogue: list[ModelMessage] = [message for message in messages if not isinstance(message, SystemText)]
    last = len(dialogue)
    # A message of the user has documents and context beside it, and an answer has several results.
    while last and isinstance(dialogue[last - 1], AssistantAnswer) is isinstance(dialogue[-1], AssistantAnswer):
        last -= 1
    return dialogue[last:]


def format_message(message: ModelMessage) -> str:
    """Return a message as one text, with images as a note and tool calls with their arguments as JSON."""
    match message:
        case SystemText(text=text):
            return text
        case AssistantAnswer(text=text, tool_calls=calls):
            return "\n".join([*([text] if text else []), *(format_call(call) for call in calls)])
        case UserInput(content=content) | ToolResult(content=content):
            items = items_of(content)
            return "\n".join(item.text if isinstance(item, TextContentItem) else IMAGE for item in items)


def format_call(call: ToolCall) -> str:
    arguments = call.arguments
    return f"{call.tool_name}({arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)})"


def message_texts(message: ModelMessage) -> Iterator[str]:
    """Return every text of a message separately; those of tool calls without JSON escapes."""
    match message:
        case SystemText(text=text):
            yield text
        case AssistantAnswer(text=text, tool_calls=calls):
            yield text
            for call in calls:
                yield call.tool_name
                yield from json_texts(call.arguments)
        case UserInput() | ToolResult():
            yield format_message(message)


def is_in_word(char: str) -> bool:
    """Return whether a character forms words with its neighbours. Characters of scripts without spaces do not."""
    return char.isalnum() and unicodedata.east_asian_width(char) != "W"


def json_texts(value: Any) -> Iterator[str]:
    """Return the keys and values in a JSON value as texts."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from json_texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from json_texts(part)
    else:
        yield str(value)
