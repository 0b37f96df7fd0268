"""Names of participants, in a field of a message or in its text."""

import re

from stint.dataclasses import replace
from stint.domain.content import Content, TextContentItem, items_of
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, UserInput

LONGEST_NAME = 64
_PLAIN = re.compile(r"[^\s<|\\/>]+")


def is_plain_name(name: str) -> bool:
    r"""Return whether OpenAI accepts a name as a field: up to 64 characters, no whitespace and none of <|\/>."""
    return len(name) <= LONGEST_NAME and _PLAIN.fullmatch(name) is not None


def put_name_in_text(message: ModelMessage) -> ModelMessage:
    """Put a message's name before its text, as in `Ann: Hello`. An answer that only calls tools has no text."""
    match message:
        case UserInput(content=content, name=name) if name:
            prefixed = _prefix(content, name)
            added = len(items_of(prefixed)) - len(items_of(content))
            return UserInput(prefixed, breakpoints=tuple(place + added for place in message.breakpoints))
        case SystemText(text=text, name=name) if name:
            return SystemText(f"{name}: {text}")
        case AssistantAnswer(text=text, name=name) if name:
            return replace(message, text=f"{name}: {text}" if text else "", name="")
        case _:
            return message


def _prefix(content: Content, name: str) -> Content:
    if isinstance(content, str):
        return f"{name}: {content}"
    match items_of(content):
        case [TextContentItem(text=text), *rest]:
            return [TextContentItem(text=f"{name}: {text}"), *rest]
        case items:
            return [TextContentItem(text=f"{name}:"), *items]
