"""What the scripted model reads in a conversation."""

from stint.domain.content import ImageContentItem, items_of, text_of
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput


def message_text(message: ModelMessage) -> str:
    """Give what a message says."""
    return message.text if isinstance(message, SystemText | AssistantAnswer) else text_of(message.content)


def last_input(messages: tuple[ModelMessage, ...]) -> str:
    """Give the last message of the user."""
    return next((text_of(each.content) for each in reversed(messages) if isinstance(each, UserInput)), "")


def count_images(messages: tuple[ModelMessage, ...]) -> int:
    """Count the images of the last message of the user."""
    last = next((each for each in reversed(messages) if isinstance(each, UserInput)), None)
    return sum(isinstance(item, ImageContentItem) for item in items_of(last.content)) if last else 0


def trailing_results(messages: tuple[ModelMessage, ...]) -> list[ToolResult]:
    """Give the results behind everything else."""
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
