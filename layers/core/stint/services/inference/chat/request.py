"""Conversion of chat completions requests to model calls.

The neutral messages of `domain/inference.py` have rules that OpenAI's do not: each result follows the answer with its
call, and each call has a result. `Transcript` keeps them: a result without an open call is refused here with its place,
and a call without a result gets one that says so, since providers refuse such histories with messages that no caller
understands.

Tools that the choice excludes are left out of the request, so that the model cannot call them. Files are converted to
texts, and are marked as documents, so that their text is not mistaken for the user's words.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from stint.documents.document_reader import DocumentReader
from stint.documents.marker import mark_document
from stint.domain.content import Content, ContentItem, ImageContentItem, TextContentItem, image_at
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AnswerFormat,
    AssistantAnswer,
    InferenceRequest,
    JsonObjectResponseFormat,
    JsonSchemaResponseFormat,
    ModelMessage,
    Reasoning,
    ReasoningOptions,
    SystemText,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.openai.chat import ChatCompletionRequest, ChatFormat, ChatSchemaFormat, ChatToolChoice
from stint.domain.openai.chat_input import (
    AnswerPart,
    ChatAllowedToolsChoice,
    ChatAssistantMessage,
    ChatFile,
    ChatFunctionChoice,
    ChatImage,
    ChatMessage,
    ChatRefusal,
    ChatSystemMessage,
    ChatText,
    ChatTool,
    ChatToolMessage,
    ChatUserMessage,
    UserPart,
)
from stint.domain.openai.parts import InputFile
from stint.domain.openai.prompt_cache import breakpoints_in, choose_cache
from stint.domain.openai.response_options import JsonObject
from stint.domain.openai.stored_responses import tier_of
from stint.domain.tools import ToolChoice
from stint.loop.structured_output import check_schema
from stint.loop.transcript import Transcript
from stint.models.json_schemas import ANY_OBJECT
from stint.services.conversations.item_files import read_parts
from stint.services.responses.items_to_messages import call_of
from stint.services.responses.planner import NO_PARAMETERS


async def read_request(request: ChatCompletionRequest, model_id: str, reader: DocumentReader) -> InferenceRequest:
    """Convert a request to a model call, and read its files and check its images.

    Raises:
        InvalidRequest: a file, an image, a schema or a call's result is invalid. The message names its location.
    """
    tools, choice = choose(request.tool_choice, signatures_of(request.tools))
    response_format = format_of(request.response_format)
    # After the checks that need no read.
    texts = await read_content(request.messages, reader)
    return InferenceRequest(
        model=model_id,
        messages=read_messages(request.messages, iter(texts)),
        tools=tools,
        tool_choice=choice,
        decoding=request.to_decoding(),
        response_format=response_format,
        parallel_tool_calls=request.parallel_tool_calls,
        reasoning=ReasoningOptions(effort=request.reasoning_effort) if request.reasoning_effort else None,
        verbosity=request.verbosity,
        top_logprobs=(request.top_logprobs or 0) if request.logprobs else None,
        cache=choose_cache(request.prompt_cache_options, request.prompt_cache_retention, None),
        service_tier=tier_of(request.service_tier),
    )


async def read_content(messages: Sequence[ChatMessage], reader: DocumentReader) -> list[str]:
    """Check the images of messages, and return the texts of their files in order."""
    await reader.check_images(
        (f"{where}.image_url.url", image_at(part.image_url.url, "auto"))
        for where, part in parts_of(messages)
        if isinstance(part, ChatImage)
    )
    files = [
        (f"{where}.file.{'file_id' if part.file.file_id else 'file_data'}", InputFile(**dict(part.file)))
        for where, part in parts_of(messages)
        if isinstance(part, ChatFile)
    ]
    return await read_parts(reader, files)


def parts_of(messages: Sequence[ChatMessage]) -> Iterator[tuple[str, UserPart | AnswerPart]]:
    """Yield the content parts of messages with their locations."""
    for index, message in enumerate(messages):
        for place, part in enumerate(message.content):
            yield f"messages[{index}].content[{place}]", part


def read_messages(messages: Sequence[ChatMessage], texts: Iterator[str]) -> tuple[ModelMessage, ...]:
    """Convert messages for models. A call without an answer gets a result that says so.

    Raises:
        InvalidRequest: a message answers a call that is not open.
    """
    transcript = Transcript()
    for index, message in enumerate(messages):
        match message:
            case ChatSystemMessage():
                transcript.append_message(SystemText(join_texts(message.content), message.name or ""))
            case ChatUserMessage():
                content = content_of(message.content, texts)
                transcript.append_message(UserInput(content, message.name or "", breakpoints_in(message.content)))
            case ChatAssistantMessage():
                transcript.append_message(answer_of(message))
            case ChatToolMessage():
                transcript.append_message(result_of(message, transcript, f"messages[{index}].tool_call_id"))
    transcript.close()
    return tuple(transcript.messages)


def answer_of(message: ChatAssistantMessage) -> AssistantAnswer:
    text = "\n".join(filter(None, [join_texts(message.content), message.refusal or ""]))
    calls = tuple(call_of(call.id, call.function.name, call.function.arguments) for call in message.tool_calls)
    thought = message.reasoning_content
    return AssistantAnswer(text, calls, Reasoning(text=thought) if thought else None, message.name or "")


def result_of(message: ChatToolMessage, transcript: Transcript, where: str) -> ToolResult:
    call = transcript.open.get(message.tool_call_id)
    if call is None:
        raise InvalidRequest(
            f"{where}: There is no unanswered call {message.tool_call_id!r}. A message of role tool must follow the "
            "assistant message that has its call in tool_calls.",
            param=where,
        )
    return ToolResult(call.call_id, call.tool_name, join_texts(message.content))


def join_texts(parts: Sequence[ChatText | ChatRefusal]) -> str:
    return "\n".join(part.refusal if isinstance(part, ChatRefusal) else part.text for part in parts)


def content_of(parts: Sequence[UserPart], texts: Iterator[str]) -> Content:
    match parts:
        case [ChatText(text=text)]:
            return text
        case _:
            return [content_item_of(part, texts) for part in parts]


def content_item_of(part: UserPart, texts: Iterator[str]) -> ContentItem:
    match part:
        case ChatText():
            return TextContentItem(text=part.text)
        case ChatImage():
            return ImageContentItem(image=image_at(part.image_url.url, part.image_url.detail))
        case ChatFile():
            # The name is outside of the markers: it comes from the user, as the message does.
            name = f"File {part.file.filename}:\n" if part.file.filename else ""
            return TextContentItem(text=name + mark_document(next(texts), ""))


def signatures_of(tools: Sequence[ChatTool]) -> tuple[ToolSignature, ...]:
    """Convert tools for models. Raises InvalidRequest if two have the same name."""
    functions = [tool.function for tool in tools]
    for name, count in Counter(function.name for function in functions).items():
        if count > 1:
            message = f"Tool {name!r} is declared {count} times. Tool names must be unique."
            raise InvalidRequest(message, code="duplicate_tool", param="tools")
    return tuple(
        ToolSignature(each.name, each.description or "", each.parameters or NO_PARAMETERS, each.strict)
        for each in functions
    )


def choose(
    choice: ChatToolChoice | None, tools: tuple[ToolSignature, ...]
) -> tuple[tuple[ToolSignature, ...], ToolChoice | str]:
    """Return the tools that the model sees, and the choice among them. It cannot call a tool that it does not see."""
    match choice:
        case None:
            return tools, ToolChoice.auto
        case ChatFunctionChoice(function=function):
            return tools, function.name
        case ChatAllowedToolsChoice(allowed_tools=allowed):
            names = {each.function.name for each in allowed.tools}
            return tuple(tool for tool in tools if tool.name in names), ToolChoice(allowed.mode)
        case _:
            return tools, ToolChoice(choice)


def format_of(wanted: ChatFormat) -> AnswerFormat | None:
    """Convert the response format for models. Raises InvalidRequest if its schema is invalid."""
    match wanted:
        case ChatSchemaFormat(json_schema=named) if named.json_schema is not None:
            check_schema(named.json_schema, "response_format.json_schema.schema")
            form: dict[str, Any] = {"name": named.name, "schema": named.json_schema, "strict": named.strict}
            described = {"description": named.description} if named.description else {}
            return JsonSchemaResponseFormat(json_schema=form | described)
        case ChatSchemaFormat():
            return JsonSchemaResponseFormat(json_schema=ANY_OBJECT)
        case JsonObject():
            return JsonObjectResponseFormat()
        case _:
            return None
