"""The texts of messages that shields check."""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from stint.domain.content import TextContentItem, items_of
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.tools import ToolCall

IMAGE = "[image]"


def spoken(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the last messages of one side: those after the last one of the other side."""
    said: list[ModelMessage] = [message for message in messages if not isinstance(message, SystemText)]
    last = len(said)
    while last and isinstance(said[last - 1], AssistantAnswer) is isinstance(said[-1], AssistantAnswer):
        last -= 1
    return said[last:]


def read(message: ModelMessage) -> str:
    """Write a message as one text, with images as a note and tool calls with their arguments as JSON."""
    match message:
        case SystemText(text=text):
            return text
        case AssistantAnswer(text=text, tool_calls=calls):
            return "\n".join([*([text] if text else []), *(write_call(call) for call in calls)])
        case UserInput(content=content) | ToolResult(content=content):
            items = items_of(content)
            return "\n".join(item.text if isinstance(item, TextContentItem) else IMAGE for item in items)


def write_call(call: ToolCall) -> str:
    arguments = call.arguments
    return f"{call.tool_name}({arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)})"


def strings(message: ModelMessage) -> Iterator[str]:
    """Return every text of a message separately; those of tool calls without JSON escapes."""
    match message:
        case SystemText(text=text):
            yield text
        case AssistantAnswer(text=text, tool_calls=calls):
            yield text
            for call in calls:
                yield call.tool_name
                yield from leaves(call.arguments)
        case UserInput() | ToolResult():
            yield read(message)


def is_in_word(char: str) -> bool:
    """Return whether a character forms words with its neighbours. Characters of scripts without spaces do not."""
    return char.isalnum() and unicodedata.east_asian_width(char) != "W"


def leaves(value: Any) -> Iterator[str]:
    """Return the keys and values in a JSON value as texts."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield str(value)
