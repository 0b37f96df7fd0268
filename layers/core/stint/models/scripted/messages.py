"""The parts of a conversation that the scripted model reads."""

from stint.domain.content import ImageContentItem, items_of, text_of
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput

MOST_CHARACTERS = 20_000
"""Maximum characters of an input or a tool's result that have an effect."""

PIECE = 65_536
"""Characters that are searched at a time."""

RETRIEVED = ("Here are the retrieved documents", "knowledge_search tool found")
"""Beginnings of context that was retrieved before the model is called. It follows the user's message."""


def message_text(message: ModelMessage) -> str:
    """Return the text of a message."""
    return message.text if isinstance(message, SystemText | AssistantAnswer) else text_of(message.content)


def last_input(messages: tuple[ModelMessage, ...]) -> str:
    """Return the beginning of the user's last message, after the context that was retrieved for it."""
    places = [place for place, each in enumerate(messages) if isinstance(each, UserInput)]
    if not places:
        return ""
    text = message_text(messages[places[-1]])[:MOST_CHARACTERS]
    if not text.startswith(RETRIEVED) or places[-1] - 1 not in places:
        return text
    asked = message_text(messages[places[-2]])[:MOST_CHARACTERS]
    return f"{text[: MOST_CHARACTERS - len(asked)]}\n\n{asked}"


def count_words(text: str) -> int:
    """Count the words of a text in pieces. A list of three million words takes 170 MB."""
    count = 0
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE]
        divided = start > 0 and not text[start - 1].isspace() and not piece[0].isspace()
        count += len(piece.split()) - divided
    return count


def count_images(messages: tuple[ModelMessage, ...]) -> int:
    """Count the images of the user's last message."""
    last = next((each for each in reversed(messages) if isinstance(each, UserInput)), None)
    return sum(isinstance(item, ImageContentItem) for item in items_of(last.content)) if last else 0


def trailing_results(messages: tuple[ModelMessage, ...]) -> list[ToolResult]:
    """Return the tool results at the end."""
    results: list[ToolResult] = []
    for message in reversed(messages):
        if not isinstance(message, ToolResult):
            break
        results.insert(0, message)
    return results


def rounds_of(messages: tuple[ModelMessage, ...]) -> int:
    """Count the answers with tool calls since the last user message."""
    rounds = 0
    for message in reversed(messages):
        if isinstance(message, UserInput):
            break
        rounds += isinstance(message, AssistantAnswer) and bool(message.tool_calls)
    return rounds
