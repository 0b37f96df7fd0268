"""Conversion of a conversation to Converse messages.

Converse is stricter than the conversations that are stored, and one refused message would make a session unusable:

    roles alternate                           messages of one role in a row become blocks of one message
    no blank texts                            omitted, or replaced where a text is required
    no tool blocks without tools              calls and results become text, if the request has no tools
    tool results are messages of the user     as their role
    no names of participants                  a name is put before the text
    ids of certain characters only            others are replaced; the same way in a call and in its result

An answer without text and calls is omitted, and its reasoning with it.
"""

import re
from typing import Any

from stint.dataclasses import dataclass, field
from stint.domain.content import Content, TextContentItem, items_of, text_of
from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.tools import ToolCall
from stint.models.bedrock.cache_points import CachePoint
from stint.models.bedrock.reasoning import write_reasoning
from stint.models.images import InlineImage, read_image
from stint.models.participant_names import put_name_in_text
from stint.models.tool_arguments import read_call_arguments

Block = dict[str, Any]


@dataclass(slots=True)
class BedrockMessages:
    """`system` and `messages` of a Converse request, and the checkpoints that the caller named."""

    system: list[Block] = field(default_factory=list)
    messages: list[Block] = field(default_factory=list)
    breakpoints: list[CachePoint] = field(default_factory=list)

    def append_blocks(self, role: str, blocks: list[Block]) -> None:
        """Append blocks. Roles must alternate, so blocks of the same role join the previous message."""
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def append_input(self, message: UserInput) -> None:
        """Append a message of the user, with its breakpoints."""
        last = self.messages[-1] if self.messages else None
        # Counted before the append, which may join this message to the last one and so shift the places of its blocks.
        before = len(last["content"]) if last is not None and last["role"] == "user" else 0
        self.append_blocks("user", _content_blocks(message.content) or [{"text": "(empty message)"}])
        for place in message.breakpoints:
            blocks = before + len(_content_blocks(items_of(message.content)[: place + 1]))
            if blocks:
                self.breakpoints.append(CachePoint("messages", len(self.messages) - 1, blocks - 1))


def write_conversation(
    messages: tuple[ModelMessage, ...], *, with_tools: bool, with_reasoning: bool = False
) -> BedrockMessages:
    """Write a conversation for Converse (API reference, Message and ContentBlock).

    Tool results are user messages. Converse refuses blank texts, so they are omitted, or replaced where a text is
    required. It refuses tool blocks if the request has no tools, so earlier calls and results then become text. The
    reasoning of an answer is sent with it if the model reasons. Messages have no names, so a name is put before the
    text.

    Raises:
        InvalidRequest: an image cannot be read, or is a URL, which Bedrock does not support.
    """
    conversation = BedrockMessages()
    for message in map(put_name_in_text, messages):
        match message:
            case SystemText(text):
                conversation.system += _text_blocks(text)
            case UserInput():
                conversation.append_input(message)
            case AssistantAnswer(text=text, tool_calls=calls):
                write_call = _tool_use if with_tools else _call_as_text
                thoughts = write_reasoning(message.reasoning) if with_reasoning else []
                said = [*_text_blocks(text), *(write_call(call) for call in calls)]
                conversation.append_blocks("assistant", [*thoughts, *said] if said else [])
            case ToolResult():
                conversation.append_blocks("user", [_tool_result(message) if with_tools else _result_as_text(message)])
    return conversation


def _text_blocks(text: str) -> list[Block]:
    return [{"text": text}] if text.strip() else []


def _content_blocks(content: Content) -> list[Block]:
    blocks: list[Block] = []
    for item in items_of(content):
        if isinstance(item, TextContentItem):
            blocks += _text_blocks(item.text)
        else:
            image = read_image(item.image)
            if not isinstance(image, InlineImage):
                raise InvalidRequest(
                    f"Bedrock does not fetch images: send the bytes of {image} as base64 data", param="messages"
                )
            kind = image.media_type.removeprefix("image/")
            blocks.append({"image": {"format": kind, "source": {"bytes": image.data}}})
    return blocks


def _tool_use(call: ToolCall) -> Block:
    return {
        "toolUse": {"toolUseId": _tool_use_id(call.call_id), "name": call.tool_name, "input": read_call_arguments(call)}
    }


def _tool_result(result: ToolResult) -> Block:
    blocks = _content_blocks(result.content) or [{"text": "(empty result)"}]
    return {"toolResult": {"toolUseId": _tool_use_id(result.call_id), "content": blocks}}


def _call_as_text(call: ToolCall) -> Block:
    return {"text": f"(called {call.tool_name} with {read_call_arguments(call)})"}


def _result_as_text(result: ToolResult) -> Block:
    return {"text": f"({result.tool_name} answered: {text_of(result.content)})"}


def _tool_use_id(call_id: str) -> str:
    """Return an id, perhaps from another provider, in the form that ToolUseBlock requires."""
    return re.sub(r"[^a-zA-Z0-9_.:-]", "_", call_id)[:64]
