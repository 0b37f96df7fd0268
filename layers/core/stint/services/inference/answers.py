"""A model's answer in Llama Stack's form: whole, or as the events of a stream."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from stint.domain.inference import TokenLogprob
from stint.domain.llama_stack.inference import (
    ChatCompletionResponse,
    ChatCompletionResponseEvent,
    ChatCompletionResponseStreamChunk,
    CompletionResponse,
    CompletionResponseStreamChunk,
    TokenLogProbs,
    metrics_of,
)
from stint.domain.run_events import TextDelta
from stint.domain.steps import CompletionMessage, StopReason
from stint.loop.answer import Answer
from stint.services.inference.runs import InferenceRun, LogprobDelta

Deltas = AsyncGenerator[LogprobDelta, None]
NOTHING = TextDelta(text="")


def stop_reason_of(answer: Answer) -> StopReason:
    """Return why the model stopped. With `end_of_message`, the client runs the calls and sends their results."""
    if answer.finish is not None and answer.finish.is_out_of_tokens:
        return "out_of_tokens"
    return "end_of_message" if answer.calls else "end_of_turn"


def to_logprobs(logprobs: Sequence[TokenLogprob]) -> list[TokenLogProbs] | None:
    """Return the log probabilities at each position: those of the likely tokens, and of the token itself."""
    if not logprobs:
        return None
    return [
        TokenLogProbs(logprobs_by_token={other.token: other.logprob for other in (*each.top, each)})
        for each in logprobs
    ]


def to_chat_response(run: InferenceRun) -> ChatCompletionResponse:
    text, stop_reason = "".join(run.answer.text), stop_reason_of(run.answer)
    message = CompletionMessage(content=text, stop_reason=stop_reason, tool_calls=run.answer.calls)
    return ChatCompletionResponse(
        completion_message=message, metrics=metrics_of(run.answer.usage), logprobs=to_logprobs(run.logprobs)
    )


def to_completion_response(run: InferenceRun) -> CompletionResponse:
    return CompletionResponse(
        content="".join(run.answer.text),
        stop_reason=stop_reason_of(run.answer),
        metrics=metrics_of(run.answer.usage),
        logprobs=to_logprobs(run.logprobs),
    )


async def chat_chunks(run: InferenceRun, deltas: Deltas) -> AsyncGenerator[ChatCompletionResponseStreamChunk, None]:
    """Yield the events of a chat. The first and the last one have an empty text."""
    start = ChatCompletionResponseEvent(event_type="start", delta=NOTHING)
    begun = False
    async with aclosing(deltas):
        async for scored in deltas:
            if not begun:
                yield ChatCompletionResponseStreamChunk(event=start)
                begun = True
            event = ChatCompletionResponseEvent(
                event_type="progress", delta=scored.delta, logprobs=to_logprobs(scored.logprobs)
            )
            yield ChatCompletionResponseStreamChunk(event=event)
    if not begun:
        yield ChatCompletionResponseStreamChunk(event=start)
    last = ChatCompletionResponseEvent(event_type="complete", delta=NOTHING, stop_reason=stop_reason_of(run.answer))
    yield ChatCompletionResponseStreamChunk(event=last, metrics=metrics_of(run.answer.usage))


async def completion_chunks(run: InferenceRun, deltas: Deltas) -> AsyncGenerator[CompletionResponseStreamChunk, None]:
    """Yield the events of a completion. The last one has no text."""
    async with aclosing(deltas):
        async for scored in deltas:
            if isinstance(scored.delta, TextDelta):
                logprobs = to_logprobs(scored.logprobs)
                yield CompletionResponseStreamChunk(delta=scored.delta.text, logprobs=logprobs)
    stop_reason, metrics = stop_reason_of(run.answer), metrics_of(run.answer.usage)
    yield CompletionResponseStreamChunk(delta="", stop_reason=stop_reason, metrics=metrics)
