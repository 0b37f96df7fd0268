"""The answer of a stored chat completion, in place of a model's."""

from collections.abc import AsyncIterator, Iterator

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound, NotSupported
from stint.domain.inference import (
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    TokenLogprob,
    ToolCallChunk,
    Usage,
)
from stint.domain.openai.chat_output import ChatCompletion, ChatTokenLogprob, CompletionUsage, TopLogprob
from stint.models.port import ChatModel
from stint.services.inference.chat.stored import StoredChats


@dataclass(frozen=True, slots=True)
class StoredCompletionModel:
    """A model that answers as a stored completion does."""

    completion: ChatCompletion

    def check(self, request: InferenceRequest) -> None:
        """Accept every request."""

    async def stream(self, request: InferenceRequest) -> AsyncIterator[ModelChunk]:  # noqa: ARG002 - it is answered
        """Yield the stored answer."""
        for chunk in chunks_of(self.completion):
            yield chunk

    async def count_tokens(self, request: InferenceRequest) -> int:  # noqa: ARG002 - it is answered
        raise NotSupported("A stored answer cannot count tokens.")


async def find_answer(stored: StoredChats, completion_id: str) -> ChatModel | None:
    """Return the answer of a stored completion; None if it does not exist."""
    try:
        return StoredCompletionModel((await stored.get(completion_id)).completion)
    except NotFound:
        return None


def chunks_of(completion: ChatCompletion) -> Iterator[ModelChunk]:
    """Yield an answer as its model did, in one piece for each part."""
    choice, usage = completion.choices[0], completion.usage
    message = choice.message
    if message.reasoning_content:
        yield ReasoningChunk(message.reasoning_content)
    if message.content:
        logprobs = choice.logprobs.content if choice.logprobs else []
        yield TextChunk(message.content, tuple(map(logprob_of, logprobs)))
    if message.refusal:
        yield RefusalChunk(message.refusal)
    for index, call in enumerate(message.tool_calls or []):
        yield ToolCallChunk(index, call.id, call.function.name, call.function.arguments)
    yield Finished(FinishReason(choice.finish_reason), usage_of(usage) if usage else None, completion.service_tier)


def logprob_of(each: ChatTokenLogprob | TopLogprob) -> TokenLogprob:
    top = each.top_logprobs if isinstance(each, ChatTokenLogprob) else []
    utf8 = None if each.bytes is None else tuple(each.bytes)
    return TokenLogprob(each.token, each.logprob, utf8, tuple(map(logprob_of, top)))


def usage_of(usage: CompletionUsage) -> Usage:
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        cached_tokens=usage.prompt_tokens_details.cached_tokens,
        cache_write_tokens=usage.prompt_tokens_details.cache_write_tokens,
        reasoning_tokens=usage.completion_tokens_details.reasoning_tokens,
    )
