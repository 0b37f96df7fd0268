"""A scripted model for the offline demo and for tests. It is not a language model.

It is an adapter like any other, so that a demo or a test runs through all the code that a real model does: streaming,
calls, reasoning with a signature, limits, usage, refusals and failures. Its answer is a function of the request alone.
It keeps no state between calls: what it did before is read from the messages, and another process that continues a run
gets the same answer.

An answer is made whole as a list of chunks, one for each word, and then cut and streamed. A word counts as a token, so
that limits and usage can be foreseen by counting.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Collection, Iterable

from stint.dataclasses import replace
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.inference import (
    DEFAULT_TIER,
    Accepted,
    AnswerFormat,
    AssistantAnswer,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    ModelMessage,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    TokenLogprob,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
    Usage,
)
from stint.domain.tools import ToolChoice
from stint.models.json_schemas import read_schema
from stint.models.scripted.arguments import fill_schema, read_arguments
from stint.models.scripted.directives import Directives, parse_directives, raise_failure
from stint.models.scripted.messages import (
    MOST_CHARACTERS,
    count_images,
    count_words,
    last_input,
    message_text,
    rounds_of,
    trailing_results,
)

DEMO = "demo"
INTRODUCTION = (
    "I am the scripted model of Stint, not a language model: I repeat what you say. "
    "For real answers set OPENAI_BASE_URL and OPENAI_API_KEY, or use a model id that begins with bedrock/."
)
GETTER = re.compile(r"get[-_]\w")
WHO = re.compile(r"\b(?:who|what) are you\b", re.IGNORECASE)


PIECE = re.compile(r"\S+\s*|\s+")
MARK = "scripted-"

LONGEST_REPETITION = 3.0
"""Maximum seconds in which an answer repeats a message or the results of tools, such as those of a search."""


class Scripted:
    """A model that follows rules. The same messages always get the same answer, word by word.

    **Ordinary input** is repeated. The first answer says what this model is. A json_schema response format gets a value
    that is made like arguments. A reasoning effort other than none adds reasoning before the answer.

    **Tools**: it calls every offered tool that the last user message names (`get_weather`, or "get weather"), in that
    order. A question that names none calls the tool that it is about ("What is the weather in Bern?").
    Arguments come from the message (with several tools: from the text after each name): a JSON object; or `key=value`
    pairs and, for each other required parameter, the numbers, the quoted texts and the last words of the message.
    `tool_choice` none calls nothing, required calls the first tool if none is named, and a tool's name calls that one.
    It answers results with `get_weather answered: ...`, or with a value of the response format.

    **Directives**, each on a line of its own in the last user message, cause behaviour that is rare in a real model:

    - `think: TEXT` sets the reasoning, `think: TEXT | ANSWER` the answer, too.
    - `say: TEXT` sets the text of the answer, before any calls. `say:` alone means no text.
    - `refuse: TEXT` refuses with this text.
    - `call: NAME TEXT` calls NAME, offered or not, with TEXT as its arguments, valid JSON or not.
    - `fail: before` fails before the first chunk, `fail: after 3 words` after three words. `fail: throttled` is a rate
      limit, `fail: overloaded` a lack of capacity, `fail: context` a conversation that is too long.
    - `slow: 5` waits five seconds before the first chunk.
    - `long: 1000 words` answers with a text of that length, at most 20,000 words.
    - `cut: 3 words` ends the answer there, with finish reason length. `max_tokens` does the same.
    - `filter: after 3 words` ends the answer there as a content filter does.
    - `repeat: 3` does all this three times, once for each round of tool results, before it answers with the results.

    **Sampling**: `max_tokens` and `stop` end an answer. Temperature, top_p, top_k, penalties and seed are accepted and
    have no effect, because there is only one answer. Each word has the log probability 0.
    Only the first 20,000 characters of an input have an effect. Words are counted instead of tokens. `word_delay` is
    in seconds, and less for repetitions of many words. All `names` are the same model.
    """

    def __init__(self, word_delay: float = 0.02, names: Collection[str] = (DEMO,), provider: str = "scripted") -> None:
        self._word_delay = word_delay
        self._names, self._provider = names, provider

    def check(self, request: InferenceRequest) -> None:
        """Refuse grammars, service tiers and unknown names; see the port."""
        if request.model not in self._names:
            raise InvalidRequest(
                f"There is no scripted model '{self._provider}/{request.model}'. GET /v1/models lists the models. "
                "A real model's id begins with openai/ or bedrock/.",
                code="model_not_found",
                param="model",
            )
        if request.response_format is not None:
            read_schema(request.response_format)
        if request.service_tier not in (None, DEFAULT_TIER):
            raise InvalidRequest(
                f"The scripted model has no service tier {request.service_tier!r}. Remove service_tier.",
                param="service_tier",
            )

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count the words of the messages, as in the usage of an answer. Tools and formats do not count."""
        return _usage(request, []).input_tokens

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Answer by the rules above."""
        self.check(request)
        yield Accepted()
        check_thoughts(request.messages)
        directives = parse_directives(last_input(request.messages))
        chunks = _answer(request, directives)
        # After `Accepted`, as with a slow model: the status has arrived, and the first word has not.
        await asyncio.sleep(directives.slow)
        raise_failure(directives)
        limits = (request.decoding.max_tokens, directives.cut, directives.filter_after)
        sent = chunks[: min((limit for limit in limits if limit is not None), default=len(chunks))]
        delay = self._word_delay if directives.says is not None else repetition_delay(len(sent), self._word_delay)
        for count, chunk in enumerate(sent):
            if count == directives.fail_after:
                break
            await asyncio.sleep(delay)
            yield _scored(chunk, request.top_logprobs)
        if directives.fail_after is not None:
            raise ModelError(f"The scripted model failed after {directives.fail_after} words, as the message asked")
        yield Finished(_reason(chunks, sent, directives), _usage(request, sent))


def repetition_delay(words: int, longest: float) -> float:
    """Return the seconds before each word of an answer that repeats so many words."""
    return min(longest, LONGEST_REPETITION / max(words, 1))


def _answer(request: InferenceRequest, directives: Directives) -> list[ModelChunk]:
    thoughts = think(request, directives)
    results = trailing_results(request.messages)
    if results and rounds_of(request.messages) >= directives.repeat:
        return thoughts + _text_chunks(_stopped(request, _conclude(request, results))[0])
    if directives.refuses is not None:
        return thoughts + [RefusalChunk(piece) for piece in PIECE.findall(directives.refuses)]
    calls = _calls(request, directives)
    text = directives.says
    if text is None:
        text = "" if calls else _reply(request, directives.rest)
    text, is_stopped = _stopped(request, text)
    # Unique in the conversation, although no state is kept.
    first_id = 1 + sum(len(each.tool_calls) for each in request.messages if isinstance(each, AssistantAnswer))
    return thoughts + _text_chunks(text) + ([] if is_stopped else _call_chunks(calls, first_id))


def _stopped(request: InferenceRequest, text: str) -> tuple[str, bool]:
    """Cut a text at the first stop sequence, and return whether there was one."""
    places = [place for place in map(text.find, request.decoding.stop or ()) if place >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _conclude(request: InferenceRequest, results: list[ToolResult]) -> str:
    texts = [text_of(result.content)[:MOST_CHARACTERS] for result in results]
    if request.response_format is not None:
        return _fill(request.response_format, "\n".join(texts))
    return "\n".join(f"{result.tool_name} answered: {text}" for result, text in zip(results, texts, strict=True))


def _fill(response_format: AnswerFormat, text: str) -> str:
    return json.dumps(fill_schema(text, read_schema(response_format).schema), ensure_ascii=False)


def _calls(request: InferenceRequest, directives: Directives) -> list[tuple[str, str]]:
    choice = request.tool_choice
    if choice == ToolChoice.none:
        return []
    if directives.calls:
        return directives.calls
    if choice == ToolChoice.auto or choice == ToolChoice.required:
        tools = _named_tools(request.tools, directives.rest) or _requested_tools(request.tools, directives.rest)
        if not tools and choice == ToolChoice.required:
            tools = [(tool, directives.rest) for tool in request.tools[:1]]
    else:
        tools = [(tool, directives.rest) for tool in request.tools if tool.name == choice]
    return [(tool.name, json.dumps(read_arguments(text, tool.parameters), ensure_ascii=False)) for tool, text in tools]


def _requested_tools(tools: tuple[ToolSignature, ...], text: str) -> list[tuple[ToolSignature, str]]:
    """Find the tools for a question's subject: get_weather for the weather."""
    getters = {tool.name[4:]: tool for tool in tools if GETTER.match(tool.name)}
    subjects = tuple(replace(tool, name=name) for name, tool in getters.items())
    found = _named_tools(subjects, text) if text.rstrip().endswith("?") else []
    return [(getters[tool.name], rest) for tool, rest in found]


def _named_tools(tools: tuple[ToolSignature, ...], text: str) -> list[tuple[ToolSignature, str]]:
    """Find the tools that a text names, each with the part of the text that has its arguments."""
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
    if request.response_format is not None:
        return _fill(request.response_format, said)
    images = count_images(request.messages)
    repeated = f"You said: {said}" + (f" (with {images} image{'s' * (images > 1)})" if images else "")
    first = not any(isinstance(message, AssistantAnswer) for message in request.messages)
    return f"{repeated}\n\n{INTRODUCTION}{_offer(request)}" if first or WHO.search(said) else repeated


def _offer(request: InferenceRequest) -> str:
    if not request.tools or request.tool_choice == ToolChoice.none:
        return ""
    return f" I call a tool when you name it: {', '.join(tool.name for tool in request.tools)}."


def _text_chunks(text: str) -> list[ModelChunk]:
    return [TextChunk(piece) for piece in PIECE.findall(text)]


def _scored(chunk: ModelChunk, top: int | None) -> ModelChunk:
    """Add the log probability of a word, which is certain."""
    if top is None or not isinstance(chunk, TextChunk):
        return chunk
    score = TokenLogprob(chunk.text, 0.0)
    return replace(chunk, logprobs=(replace(score, top=(score,) if top else ()),))


def _call_chunks(calls: list[tuple[str, str]], first_id: int) -> list[ModelChunk]:
    chunks: list[ModelChunk] = []
    for index, (name, arguments) in enumerate(calls):
        chunks.append(ToolCallChunk(index, call_id=f"call_{first_id + index}", name=name))
        chunks += [ToolCallChunk(index, arguments=piece) for piece in PIECE.findall(arguments)]
    return chunks


def _reason(chunks: list[ModelChunk], sent: list[ModelChunk], directives: Directives) -> FinishReason:
    if len(sent) < len(chunks):
        return FinishReason.content_filter if len(sent) == directives.filter_after else FinishReason.length
    called = any(isinstance(chunk, ToolCallChunk) for chunk in chunks)
    return FinishReason.tool_calls if called else FinishReason.stop


def _usage(request: InferenceRequest, sent: list[ModelChunk]) -> Usage:
    words = sum(count_words(message_text(message)) for message in request.messages)
    return Usage(
        input_tokens=words,
        output_tokens=len(sent),
        total_tokens=words + len(sent),
        reasoning_tokens=sum(isinstance(chunk, ReasoningChunk) for chunk in sent),
    )


def think(request: InferenceRequest, directives: Directives) -> list[ModelChunk]:
    """Yield the reasoning word by word, with the signature at the end; nothing if none is requested."""
    effort = request.reasoning.effort if request.reasoning is not None else None
    by_itself = "The user wants an answer, so I give one." if effort not in (None, "none") else ""
    text = directives.thinks if directives.thinks is not None else by_itself
    *pieces, last = PIECE.findall(text) or [""]
    return [*map(ReasoningChunk, pieces), ReasoningChunk(last, signature=sign(text))] if text else []


def sign(text: str) -> str:
    """Return the signature of a text."""
    return MARK + hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def check_thoughts(messages: Iterable[ModelMessage]) -> None:
    """Refuse reasoning that does not match its signature, as real providers do. Reasoning without one passes.

    Raises:
        InvalidRequest: the reasoning of an earlier answer was changed.
    """
    for message in messages:
        if not isinstance(message, AssistantAnswer) or message.reasoning is None:
            continue
        signature = message.reasoning.signature
        if signature.startswith(MARK) and signature != sign(message.reasoning.text):
            raise InvalidRequest("The reasoning of an earlier answer was changed. Send it back unchanged.")
