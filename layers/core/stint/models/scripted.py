"""A scripted model: for the offline demo and for tests. It is not a language model."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator

from stint.domain.content import ImageContentItem, items_of, text_of
from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError, ModelOverloaded
from stint.domain.inference import (
    AssistantAnswer,
    Finished,
    FinishReason,
    InferenceRequest,
    JsonSchemaResponseFormat,
    ModelChunk,
    ModelMessage,
    SystemText,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
    Usage,
    UserInput,
)
from stint.domain.tools import ToolChoice
from stint.models.json_schemas import read_schema
from stint.models.scripted_arguments import fill_schema, read_arguments
from stint.models.scripted_directives import Directives, parse_directives

INTRODUCTION = (
    "I am the scripted model of Stint, not a language model: I repeat what you say. "
    "For real answers set OPENAI_BASE_URL and OPENAI_API_KEY, or use a model id that begins with bedrock/."
)
PIECE = re.compile(r"\S+\s*|\s+")
WHO = re.compile(r"\b(?:who|what) are you\b", re.IGNORECASE)


class Scripted:
    """A model that follows rules, the same answer to the same messages, word by word.

    **Ordinary input** is repeated; the first answer says what this model is. A json_schema response format is answered
    with an object made by the rule for arguments.

    **Tools**: it calls every offered tool that the last user message names (`get_weather`, or "get weather"), in the
    order in which they are named. Arguments are taken from the message (with several tools: from what follows each
    name): a JSON object; or `key=value` pairs, and for each other required parameter the numbers, the quoted texts
    and the last words of the message.
    `tool_choice` none calls nothing, required calls the first tool when none is named, a tool's name calls that one.
    When results have come, it answers with them: `get_weather answered: ...`.

    **Directives**, each on a line of its own in the last user message, provoke what is hard to get from a real model:

    - `say: TEXT` is the text of the answer, before calls if there are any; `say:` alone is no text at all.
    - `call: NAME TEXT` calls NAME, offered or not, with TEXT as its arguments, valid JSON or not.
    - `fail: before` fails before the first chunk, `fail: after 3 words` after three; `fail: overloaded` is throttled,
      `fail: context` means that the messages do not fit.
    - `slow: 5` waits five seconds before the first chunk.
    - `long: 1000 words` is a text of that length.
    - `cut: 3 words` ends the answer there, with finish reason length. `max_tokens` does the same.
    - `repeat: 3` does all this three times, once for each round of tool results, before it answers with the results.

    Of the sampling parameters only `max_tokens` has an effect: there is nothing to sample.
    Words are counted in place of tokens. `word_delay` is in seconds.
    """

    def __init__(self, word_delay: float = 0.02) -> None:
        self._word_delay = word_delay

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Answer by the rules above."""
        directives = parse_directives(_last_input(request.messages))
        chunks = _answer(request, directives)
        await asyncio.sleep(directives.slow)
        _raise_failure(directives)
        limits = [limit for limit in (request.decoding.max_tokens, directives.cut) if limit]
        sent = chunks[: min(limits, default=len(chunks))]
        for count, chunk in enumerate(sent):
            if count == directives.fail_after:
                break
            await asyncio.sleep(self._word_delay)
            yield chunk
        if directives.fail_after is not None:
            raise ModelError(f"the scripted model failed after {directives.fail_after} words, as the message asked")
        yield Finished(_reason(chunks, len(sent)), _usage(request, len(sent)))


def _raise_failure(directives: Directives) -> None:
    match directives.failure:
        case "before":
            raise ModelError("the scripted model failed before its first word, as the message asked")
        case "overloaded":
            raise ModelOverloaded("the scripted model is overloaded, as the message asked", retry_after=1.0)
        case "context":
            raise ContextLengthExceeded("the messages do not fit into the scripted model, as the message asked")


def _answer(request: InferenceRequest, directives: Directives) -> list[ModelChunk]:
    results = _trailing_results(request.messages)
    if results and _rounds(request.messages) >= directives.repeat:
        return _text_chunks("\n".join(f"{result.tool_name} answered: {text_of(result.content)}" for result in results))
    calls = _calls(request, directives)
    text = directives.says
    if text is None:
        text = "" if calls else _reply(request, directives.rest)
    first_id = 1 + sum(len(each.tool_calls) for each in request.messages if isinstance(each, AssistantAnswer))
    return _text_chunks(text) + _call_chunks(calls, first_id)


def _calls(request: InferenceRequest, directives: Directives) -> list[tuple[str, str]]:
    choice = request.tool_choice
    if choice == ToolChoice.none:
        return []
    if directives.calls:
        return directives.calls
    if choice == ToolChoice.auto or choice == ToolChoice.required:
        tools = _named_tools(request.tools, directives.rest)
        if not tools and choice == ToolChoice.required:
            tools = [(tool, directives.rest) for tool in request.tools[:1]]
    else:
        tools = [(tool, directives.rest) for tool in request.tools if tool.name == choice]
    return [(tool.name, json.dumps(read_arguments(text, tool.parameters), ensure_ascii=False)) for tool, text in tools]


def _named_tools(tools: tuple[ToolSignature, ...], text: str) -> list[tuple[ToolSignature, str]]:
    """Find the tools that a text names, each with the part of the text that its arguments are taken from."""
    places: list[tuple[int, int, ToolSignature]] = []
    for tool in tools:
        pattern = re.sub(r"[-_]", r"[-_\\s]", re.escape(tool.name).replace(r"\-", "-"))
        found = re.search(rf"(?<![\w-]){pattern}(?![\w-])", text, re.IGNORECASE)
        if found is not None:
            places.append((found.start(), found.end(), tool))
    places.sort(key=lambda place: place[:2])
    if len(places) == 1:
        start, end, tool = places[0]
        return [(tool, f"{text[:start]} {text[end:]}")]
    following = [*(start for start, _, _ in places[1:]), len(text)]
    return [(tool, text[end:stop]) for (_, end, tool), stop in zip(places, following, strict=False)]


def _reply(request: InferenceRequest, said: str) -> str:
    if isinstance(request.response_format, JsonSchemaResponseFormat):
        return json.dumps(fill_schema(said, read_schema(request.response_format).schema), ensure_ascii=False)
    if request.response_format is not None:
        raise InvalidRequest("the scripted model has no grammars: use a json_schema", param="response_format")
    images = _count_images(request.messages)
    repeated = f"You said: {said}" + (f" (with {images} image{'s' * (images > 1)})" if images else "")
    first = not any(isinstance(message, AssistantAnswer) for message in request.messages)
    return f"{repeated}\n\n{INTRODUCTION}{_offer(request)}" if first or WHO.search(said) else repeated


def _offer(request: InferenceRequest) -> str:
    if not request.tools or request.tool_choice == ToolChoice.none:
        return ""
    return f" I call a tool when you name it: {', '.join(tool.name for tool in request.tools)}."


def _text_chunks(text: str) -> list[ModelChunk]:
    return [TextChunk(piece) for piece in PIECE.findall(text)]


def _call_chunks(calls: list[tuple[str, str]], first_id: int) -> list[ModelChunk]:
    chunks: list[ModelChunk] = []
    for index, (name, arguments) in enumerate(calls):
        chunks.append(ToolCallChunk(index, call_id=f"call_{first_id + index}", name=name))
        chunks += [ToolCallChunk(index, arguments=piece) for piece in PIECE.findall(arguments)]
    return chunks


def _reason(chunks: list[ModelChunk], sent: int) -> FinishReason:
    if sent < len(chunks):
        return FinishReason.length
    called = any(isinstance(chunk, ToolCallChunk) for chunk in chunks)
    return FinishReason.tool_calls if called else FinishReason.stop


def _usage(request: InferenceRequest, output: int) -> Usage:
    words = sum(len(_text_of(message).split()) for message in request.messages)
    return Usage(input_tokens=words, output_tokens=output, total_tokens=words + output)


def _text_of(message: ModelMessage) -> str:
    return message.text if isinstance(message, SystemText | AssistantAnswer) else text_of(message.content)


def _last_input(messages: tuple[ModelMessage, ...]) -> str:
    return next((text_of(each.content) for each in reversed(messages) if isinstance(each, UserInput)), "")


def _count_images(messages: tuple[ModelMessage, ...]) -> int:
    last = next((each for each in reversed(messages) if isinstance(each, UserInput)), None)
    return sum(isinstance(item, ImageContentItem) for item in items_of(last.content)) if last else 0


def _trailing_results(messages: tuple[ModelMessage, ...]) -> list[ToolResult]:
    results: list[ToolResult] = []
    for message in reversed(messages):
        if not isinstance(message, ToolResult):
            break
        results.insert(0, message)
    return results


def _rounds(messages: tuple[ModelMessage, ...]) -> int:
    """Count the answers with tool calls since the last user message."""
    rounds = 0
    for message in reversed(messages):
        if isinstance(message, UserInput):
            break
        rounds += isinstance(message, AssistantAnswer) and bool(message.tool_calls)
    return rounds
