"""Conversion of tool names that providers refuse. MCP servers use any name, and models invent some.

The conversion is a function of the name alone. It has no table that a process keeps: another one that continues the run
writes the same names, and the provider finds its cached input. It loses information, so two tools can get one name:
this is refused when the request is checked, because the answer could not be read. Names of earlier calls are converted
as well, also those of tools that no longer exist. They are never read back.
"""

import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence

from stint.dataclasses import replace
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    InferenceRequest,
    ModelChunk,
    ModelMessage,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
)
from stint.domain.tools import LONGEST_TOOL_NAME, ToolChoice
from stint.models.port import ChatModel, close_chunks

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_DIGITS = 8


class SanitizedToolNames:
    """A model whose provider accepts only names of letters, digits, _ and -, as OpenAI and Bedrock do.

    Requests get sanitized names in their tools and messages. The calls of the answer get the real names back.
    """

    def __init__(self, model: ChatModel) -> None:
        self.wrapped = model

    def check(self, request: InferenceRequest) -> None:
        """Refuse two tools that would have the same name, and parameters that the provider lacks; see the port."""
        real_names(request.tools)
        self.wrapped.check(sanitize_request(request))

    def stream(self, request: InferenceRequest) -> AsyncIterator[ModelChunk]:
        """Start a model call; see the port. Without tools, the chunks are those of the model itself."""
        chunks = self.wrapped.stream(sanitize_request(request))
        return self._name_calls(chunks, request.tools) if request.tools else chunks

    async def _name_calls(
        self, chunks: AsyncIterator[ModelChunk], tools: Sequence[ToolSignature]
    ) -> AsyncGenerator[ModelChunk, None]:
        """Yield the chunks with the real names of tools."""
        names = real_names(tools)
        try:
            async for chunk in chunks:
                if isinstance(chunk, ToolCallChunk) and chunk.name:
                    chunk = replace(chunk, name=names.get(chunk.name, chunk.name))
                yield chunk
        finally:
            await close_chunks(chunks)

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count tokens; see the port."""
        return await self.wrapped.count_tokens(sanitize_request(request))


def sanitize_name(name: str) -> str:
    """Return a name in which all characters but letters, digits, _ and - are replaced by _.

    A name that is too long is cut, and ends in digits of its hash.
    """
    written = _REFUSED.sub("_", name) or "_"
    if len(written) <= LONGEST_TOOL_NAME:
        return written
    digits = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{written[: LONGEST_TOOL_NAME - _DIGITS - 1]}_{digits}"


def real_names(tools: Iterable[ToolSignature]) -> dict[str, str]:
    """Return the names of tools by their converted names. Raises InvalidRequest if two are equal."""
    names: dict[str, str] = {}
    for tool in tools:
        other = names.setdefault(sanitize_name(tool.name), tool.name)
        if other != tool.name:
            raise InvalidRequest(
                f"The tools {other!r} and {tool.name!r} would both have the name {sanitize_name(tool.name)!r} for the "
                "model, whose provider accepts only letters, digits, _ and -. Remove or rename one of them.",
                code="duplicate_tool",
                param="tools",
            )
    return names


def sanitize_request(request: InferenceRequest) -> InferenceRequest:
    """Return a request with converted names."""
    choice = request.tool_choice
    return replace(
        request,
        messages=tuple(map(sanitize_message, request.messages)),
        tools=tuple(replace(tool, name=sanitize_name(tool.name)) for tool in request.tools),
        tool_choice=choice if isinstance(choice, ToolChoice) else sanitize_name(choice),
    )


def sanitize_message(message: ModelMessage) -> ModelMessage:
    """Return a message with converted names: the same object if they are plain."""
    if isinstance(message, ToolResult):
        name = sanitize_name(message.tool_name)
        return message if name == message.tool_name else replace(message, tool_name=name)
    if not isinstance(message, AssistantAnswer) or not message.tool_calls:
        return message
    names = [sanitize_name(call.tool_name) for call in message.tool_calls]
    if all(name == call.tool_name for name, call in zip(names, message.tool_calls, strict=True)):
        return message
    renamed = (
        call.model_copy(update={"tool_name": name}) for call, name in zip(message.tool_calls, names, strict=True)
    )
    return replace(message, tool_calls=tuple(renamed))
