"""Stored chat completions, and the objects of their API."""

from collections.abc import Sequence
from typing import Any, Literal

from stint.domain.fields import Metadata
from stint.domain.openai.chat_input import (
    ChatAssistantMessage,
    ChatMessage,
    ChatRefusal,
    ChatText,
    ChatToolCall,
    ChatToolMessage,
)
from stint.domain.openai.chat_output import ChatCompletion
from stint.domain.openai.lists import ListObject
from stint.domain.schema import Request, Schema


class StoredChatCompletion(Schema):
    """A completion and the messages of its request."""

    messages: list[ChatMessage]
    completion: ChatCompletion

    @property
    def id(self) -> str:
        return self.completion.id


class CompletionWithInputMessages(ChatCompletion):
    """A stored completion in Llama Stack's form."""

    input_messages: list[ChatMessage]

    @classmethod
    def of(cls, stored: StoredChatCompletion) -> "CompletionWithInputMessages":
        return cls.model_construct(**dict(stored.completion), input_messages=stored.messages)


class ChatCompletionList(ListObject[ChatCompletion]):
    """A page of stored completions."""


class CompletionsWithInputMessages(ListObject[CompletionWithInputMessages]):
    """A page of stored completions in Llama Stack's form."""


class UpdateChatCompletion(Request):
    metadata: Metadata


class DeletedChatCompletion(Schema):
    id: str
    object: Literal["chat.completion.deleted"] = "chat.completion.deleted"
    deleted: bool = True


class ChatCompletionStoreMessage(Schema):
    """A message of a stored request. `content_parts` is null if the content is one text."""

    id: str
    role: str
    content: str | None = None
    content_parts: list[dict[str, Any]] | None = None
    refusal: str | None = None
    name: str | None = None
    tool_calls: list[ChatToolCall] | None = None
    tool_call_id: str | None = None


class ChatMessageList(ListObject[ChatCompletionStoreMessage]):
    """A page of the messages of a stored request."""


def store_messages(stored: StoredChatCompletion) -> list[ChatCompletionStoreMessage]:
    """Return the messages of a stored request with their ids."""
    return [store_message(f"{stored.id}-{index}", message) for index, message in enumerate(stored.messages)]


def store_message(message_id: str, message: ChatMessage) -> ChatCompletionStoreMessage:
    assistant = message if isinstance(message, ChatAssistantMessage) else None
    parts: Sequence[Schema] = message.content
    texts = [part.text for part in parts if isinstance(part, ChatText)]
    refusals = [part.refusal for part in parts if isinstance(part, ChatRefusal)]
    several = len(parts) > 1 or len(texts) + len(refusals) < len(parts)
    return ChatCompletionStoreMessage(
        id=message_id,
        role=message.role,
        content="\n".join(texts) if texts else None,
        content_parts=[part.model_dump(mode="json") for part in parts] if several else None,
        refusal=(assistant.refusal if assistant else None) or "\n".join(refusals) or None,
        name=None if isinstance(message, ChatToolMessage) else message.name,
        tool_calls=(assistant.tool_calls if assistant else None) or None,
        tool_call_id=message.tool_call_id if isinstance(message, ChatToolMessage) else None,
    )
