"""A model's answer as a chat completion, in chunks and as a whole.

The chunks of a model are collected while they are passed on, because the whole answer is needed at the end: to be
stored, or returned without `stream`. The last chunk has the reason of the end; the usage follows in a chunk without
choices, if the request asks for it, as OpenAI's API does.

Models number their calls as they like. A completion numbers them in the order in which they begin (`StreamedCall`).
"""

import time
from collections.abc import Iterator, Sequence

from stint.dataclasses import dataclass, field
from stint.domain.ids import new_name
from stint.domain.inference import (
    DEFAULT_TIER,
    Finished,
    FinishReason,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    TokenLogprob,
    ToolCallChunk,
    Usage,
)
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.chat_input import CalledFunction, ChatToolCall
from stint.domain.openai.chat_output import (
    ChatAnswer,
    ChatChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChatDelta,
    ChatFinish,
    ChatLogprobs,
    ChunkChoice,
    CompletionUsage,
    FunctionDelta,
    ToolCallPiece,
)
from stint.domain.openai.item_events import padding_of
from stint.domain.openai.response_resource import show_tier


@dataclass(slots=True)
class StreamedCall:
    """A call whose arguments come in pieces. `place` is its index in the completion."""

    place: int
    call_id: str
    name: str
    arguments: list[str]

    def whole(self) -> ChatToolCall:
        function = CalledFunction(name=self.name, arguments="".join(self.arguments))
        return ChatToolCall(id=self.call_id, function=function)


@dataclass(slots=True)
class Completion:
    """An answer that is built from the model's chunks and emitted as completion chunks."""

    request: ChatCompletionRequest
    """The request, whose model and options the answer repeats."""
    completion_id: str
    """The id of the completion."""
    created: int = field(default_factory=lambda: int(time.time()))
    """Seconds of the Unix epoch."""
    text: list[str] = field(default_factory=list)
    """The pieces of the answer."""
    thought: list[str] = field(default_factory=list)
    """The pieces of the reasoning."""
    refusal: list[str] = field(default_factory=list)
    """The pieces of a refusal."""
    calls: dict[int, StreamedCall] = field(default_factory=dict)
    """Calls by the model's own numbers."""
    finish_reason: ChatFinish = "stop"
    """The reason of the end; meaningless before it."""
    usage: Usage | None = None
    """The tokens, after the end."""
    logprobs: list[TokenLogprob] = field(default_factory=list)
    """Log probabilities of the tokens of the text."""
    service_tier: str = field(init=False)
    """The requested tier, and after the end the one that served."""

    def __post_init__(self) -> None:
        """Show the tier that the request asks for until the end, which has the one that served."""
        self.service_tier = self.request.service_tier or DEFAULT_TIER

    def first_chunk(self) -> ChatCompletionChunk:
        """Yield the first chunk, which has the role."""
        return self.chunk(ChatDelta(role="assistant", content=""))

    def add_chunk(self, chunk: ModelChunk) -> Iterator[ChatCompletionChunk]:
        """Add a piece of the answer, and yield its chunks. The end is emitted together with the usage."""
        match chunk:
            case TextChunk(text=text, logprobs=logprobs) if text:
                self.text.append(text)
                self.logprobs += logprobs
                yield self.chunk(ChatDelta(content=text), padded=text, logprobs=logprobs)
            case RefusalChunk(text=text) if text:
                self.refusal.append(text)
                yield self.chunk(ChatDelta(refusal=text), padded=text)
            case ReasoningChunk(text=text) if text:
                self.thought.append(text)
                yield self.chunk(ChatDelta(reasoning_content=text), padded=text)
            case ToolCallChunk():
                piece = self.add_call_piece(chunk)
                if piece is not None:
                    yield self.chunk(ChatDelta(tool_calls=[piece]), padded=chunk.arguments)
            case Finished():
                yield from self.finish(chunk)

    def add_call_piece(self, chunk: ToolCallChunk) -> ToolCallPiece | None:
        """Add a piece of a call. A second call is ignored if parallel calls are off."""
        known = self.calls.get(chunk.index)
        if known is None:
            # Some models make several calls although they are told not to.
            if self.calls and self.request.parallel_tool_calls is False:
                return None
            call_id = chunk.call_id or new_name("call")
            known = StreamedCall(len(self.calls), call_id, chunk.name, [chunk.arguments])
            self.calls[chunk.index] = known
            told = FunctionDelta(name=chunk.name, arguments=chunk.arguments)
            return ToolCallPiece(index=known.place, id=call_id, type="function", function=told)
        known.arguments.append(chunk.arguments)
        return ToolCallPiece(index=known.place, function=FunctionDelta(arguments=chunk.arguments))

    def finish(self, finished: Finished) -> Iterator[ChatCompletionChunk]:
        self.finish_reason = finish_of(finished.reason, called=bool(self.calls))
        self.usage = finished.usage
        self.service_tier = show_tier(finished.service_tier)
        yield self.chunk(ChatDelta(), self.finish_reason)
        options = self.request.stream_options
        if options is not None and options.include_usage and self.usage is not None:
            yield self.chunk(None).model_copy(update={"usage": CompletionUsage.of(self.usage)})

    def chunk(
        self,
        delta: ChatDelta | None,
        finish_reason: ChatFinish | None = None,
        *,
        padded: str = "",
        logprobs: Sequence[TokenLogprob] = (),
    ) -> ChatCompletionChunk:
        options = self.request.stream_options
        pads = options is not None and options.include_obfuscation and bool(padded)
        return ChatCompletionChunk(
            id=self.completion_id,
            created=self.created,
            model=self.request.model,
            choices=[] if delta is None else [choice_of(delta, finish_reason, logprobs)],
            service_tier=self.service_tier,
            obfuscation=padding_of(padded) if pads else None,
        )

    def whole(self) -> ChatCompletion:
        """Return the whole completion after the model has finished."""
        calls = [call.whole() for call in self.calls.values()]
        # OpenAI's API has null instead of an empty text beside calls or a refusal.
        silent = not self.text and (bool(calls) or bool(self.refusal))
        message = ChatAnswer(
            content=None if silent else "".join(self.text),
            reasoning_content="".join(self.thought) or None,
            refusal="".join(self.refusal) or None,
            tool_calls=calls or None,
        )
        return ChatCompletion(
            id=self.completion_id,
            created=self.created,
            model=self.request.model,
            choices=[
                ChatChoice(message=message, finish_reason=self.finish_reason, logprobs=ChatLogprobs.of(self.logprobs))
            ],
            usage=CompletionUsage.of(self.usage) if self.usage else None,
            service_tier=self.service_tier,
            metadata=self.request.metadata or None,
        )


def finish_of(reason: FinishReason, *, called: bool) -> ChatFinish:
    """Return the reason in OpenAI's words, which has none for a budget."""
    if reason.is_out_of_tokens:
        return "length"
    if reason is FinishReason.content_filter:
        return "content_filter"
    return "tool_calls" if called or reason is FinishReason.tool_calls else "stop"


def choice_of(delta: ChatDelta, finish_reason: ChatFinish | None, logprobs: Sequence[TokenLogprob]) -> ChunkChoice:
    return ChunkChoice(delta=delta, finish_reason=finish_reason, logprobs=ChatLogprobs.of(logprobs))
