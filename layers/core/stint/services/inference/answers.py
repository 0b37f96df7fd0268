"""A model's answer in Llama Stack's form: whole, or as the events of a stream."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from stint.domain.inference import FinishReason
from stint.domain.llama_stack.inference import (
    ChatCompletionResponse,
    ChatCompletionResponseEvent,
    ChatCompletionResponseStreamChunk,
    CompletionResponse,
    CompletionResponseStreamChunk,
    metrics_of,
)
from stint.domain.run_events import Delta, TextDelta
from stint.domain.steps import CompletionMessage, StopReason
from stint.loop.answer import Answer

Deltas = AsyncGenerator[Delta, None]


def stop_reason_of(answer: Answer) -> StopReason:
    """Return why the model stopped. With `end_of_message`, the client runs the calls and sends their results."""
    if answer.finish is FinishReason.length:
        return "out_of_tokens"
    return "end_of_message" if answer.calls else "end_of_turn"


def to_chat_response(answer: Answer) -> ChatCompletionResponse:
    message = CompletionMessage(
        content="".join(answer.text), stop_reason=stop_reason_of(answer), tool_calls=answer.calls
    )
    return ChatCompletionResponse(completion_message=message, metrics=metrics_of(answer.usage))


def to_completion_response(answer: Answer) -> CompletionResponse:
    text, stop_reason = "".join(answer.text), stop_reason_of(answer)
    return CompletionResponse(content=text, stop_reason=stop_reason, metrics=metrics_of(answer.usage))


async def chat_chunks(answer: Answer, deltas: Deltas) -> AsyncGenerator[ChatCompletionResponseStreamChunk, None]:
    """Yield the events of a chat. The first and the last one have an empty text."""
    begun = False
    async with aclosing(deltas):
        async for delta in deltas:
            if not begun:
                yield chat_chunk(ChatCompletionResponseEvent(event_type="start", delta=TextDelta(text="")))
                begun = True
            yield chat_chunk(ChatCompletionResponseEvent(event_type="progress", delta=delta))
    if not begun:
        yield chat_chunk(ChatCompletionResponseEvent(event_type="start", delta=TextDelta(text="")))
    last = ChatCompletionResponseEvent(
        event_type="complete", delta=TextDelta(text=""), stop_reason=stop_reason_of(answer)
    )
    yield ChatCompletionResponseStreamChunk(event=last, metrics=metrics_of(answer.usage))


def chat_chunk(event: ChatCompletionResponseEvent) -> ChatCompletionResponseStreamChunk:
    return ChatCompletionResponseStreamChunk(event=event)


async def completion_chunks(answer: Answer, deltas: Deltas) -> AsyncGenerator[CompletionResponseStreamChunk, None]:
    """Yield the events of a completion. The last one has no text."""
    async with aclosing(deltas):
        async for delta in deltas:
            if isinstance(delta, TextDelta):
                yield CompletionResponseStreamChunk(delta=delta.text)
    stop_reason, metrics = stop_reason_of(answer), metrics_of(answer.usage)
    yield CompletionResponseStreamChunk(delta="", stop_reason=stop_reason, metrics=metrics)
