"""Items of an input that its client has sent before.

Semantic Kernel's agent for responses continues a response with all that it has sent since the user's question: the
question, the model's texts, and every output. For OpenAI's models the new output is the last item. Providers take it
directly after its call only, so the question would follow it, and the model would call the function again.
"""

from collections.abc import Iterator, Mapping, Sequence

from stint.domain.content import Content, TextContentItem, items_of
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import FunctionCallOutput, Message
from stint.loop.transcript import Transcript
from stint.services.responses.item_content import content_of, message_text

Words = tuple[object, ...]
"""What tells messages apart: their role, and their texts and images."""


def find_results(items: Mapping[int, StoredItem], transcript: Transcript) -> dict[str, Content]:
    """Return the results of a transcript by the ids of their calls, if the items have an output that repeats one."""
    answered = transcript.call_ids - transcript.open.keys()
    if not any(isinstance(each.item, FunctionCallOutput) and each.item.call_id in answered for each in items.values()):
        return {}
    return {each.call_id: each.content for each in transcript.messages if isinstance(each, ToolResult)}


def leave_out_repetitions(items: Mapping[int, StoredItem], transcript: Transcript) -> dict[int, StoredItem]:
    """Return items without the messages that repeat the exchange which an output after them continues."""
    last = max((place for place, stored in items.items() if continues(stored, transcript)), default=-1)
    before = {place: words for place, stored in items.items() if place < last and (words := words_of(stored))}
    said = exchange_of(transcript.messages) if before else set()
    return {place: stored for place, stored in items.items() if before.get(place) not in said}


def continues(stored: StoredItem, transcript: Transcript) -> bool:
    """Return whether an item is the output of a call that waits."""
    return isinstance(stored.item, FunctionCallOutput) and stored.item.call_id in transcript.open


def exchange_of(messages: Sequence[ModelMessage]) -> set[Words]:
    """Return what tells the messages after the last answer without calls apart."""
    said: set[Words] = set()
    for message in reversed(messages):
        match message:
            case AssistantAnswer(text=text, tool_calls=calls):
                if not calls:
                    break
                said.add(("assistant", text))
            case SystemText(text=text):
                said.add(("system", text))
            case UserInput(content=content):
                said.add(("user", *words_in(content)))
    return said


def words_of(stored: StoredItem) -> Words | None:
    """Return what tells an item that is a message apart; None for other items."""
    match stored.item:
        case Message(role="user", content=parts):
            return "user", *words_in(content_of(parts, iter(stored.texts)))
        case Message(role=role, content=parts):
            return "assistant" if role == "assistant" else "system", message_text(parts)
    return None


def words_in(content: Content) -> Iterator[object]:
    """Yield the texts and images of a content. Their hashes are kept, so that large ones are read once."""
    for item in items_of(content):
        if isinstance(item, TextContentItem):
            yield item.text
        else:
            yield item.image.data
            yield item.image.url.uri if item.image.url else None
