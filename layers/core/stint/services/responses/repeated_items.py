"""Items of an input that its client has sent before.

Semantic Kernel's agent for responses continues a response with all that it has sent since the user's question: the
question, the model's texts, and every output. For OpenAI's models the new output is the last item. Providers take it
directly after its call only, so the question would follow it, and the model would call the function again.
"""

from collections.abc import Mapping, Sequence

from stint.domain.content import Content
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import FunctionCallOutput, Message
from stint.loop.transcript import Transcript
from stint.services.responses.item_content import content_of, message_text

Words = tuple[str, str]


def find_results(items: Mapping[int, StoredItem], transcript: Transcript) -> dict[str, Content]:
    """Return the results of a transcript by the ids of their calls, if the items have outputs."""
    if not any(isinstance(stored.item, FunctionCallOutput) for stored in items.values()):
        return {}
    return {each.call_id: each.content for each in transcript.messages if isinstance(each, ToolResult)}


def leave_out_repetitions(items: Mapping[int, StoredItem], transcript: Transcript) -> dict[int, StoredItem]:
    """Return items without the messages that repeat the exchange which an output after them continues."""
    last = max((place for place, stored in items.items() if continues(stored, transcript)), default=-1)
    said = exchange_of(transcript.messages) if last >= 0 else set()
    return {place: stored for place, stored in items.items() if not (place < last and words_of(stored) in said)}


def continues(stored: StoredItem, transcript: Transcript) -> bool:
    """Return whether an item is the output of a call that waits."""
    return isinstance(stored.item, FunctionCallOutput) and stored.item.call_id in transcript.open


def exchange_of(messages: Sequence[ModelMessage]) -> set[Words]:
    """Return the roles and words of the messages after the last answer without calls."""
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
                said.add(("user", comparable(content)))
    return said


def words_of(stored: StoredItem) -> Words | None:
    """Return the role and the words of an item that is a message."""
    match stored.item:
        case Message(role="user", content=parts):
            return "user", comparable(content_of(parts, iter(stored.texts)))
        case Message(role=role, content=parts):
            return "assistant" if role == "assistant" else "system", message_text(parts)
    return None


def comparable(content: Content) -> str:
    """Return a text that differs for different contents."""
    return content if isinstance(content, str) else repr(content)
