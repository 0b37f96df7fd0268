"""Summaries of conversations, which a model writes. They replace what they summarize.

A conversation that does not fit into one model call is summarized in parts: each call has the summary of the parts
before it. How much fits is found out by the model's refusals, which cost nothing.
"""

import asyncio
from collections.abc import Sequence
from itertools import accumulate

from stint.dataclasses import dataclass, replace
from stint.domain.content import text_of
from stint.domain.errors import ContextLengthExceeded, ModelError, QuotaExceeded
from stint.domain.inference import (
    AssistantAnswer,
    FinishReason,
    InferenceRequest,
    ModelMessage,
    PromptCache,
    SystemText,
    ToolResult,
    Usage,
    UserInput,
)
from stint.domain.stored_messages import SUMMARY
from stint.domain.token_estimates import length_of
from stint.loop.answer import Answer
from stint.loop.model_call import Inference
from stint.models.port import ChatModel

TASK = (
    "Write a summary that replaces the conversation so far. Of it, the next reader sees only the summary and {rest}. "
    "Keep names, numbers, decisions, the user's goals, the results of tools, and open questions. "
    "Write only the summary."
)
MAX_CALLS = 40
"""Maximum model calls of one summary, including refused ones."""
LEAST_CHARACTERS = 400
"""Smallest part that is tried. No model has a smaller context."""
OMITTED = "\n[{count} characters are omitted here.]\n"


@dataclass(slots=True)
class Summarizer:
    """Writes summaries."""

    model: ChatModel
    model_id: str
    """The provider's name of the model."""
    instructions: str
    """The conversation's instructions, which each call of the summary begins with; empty for none."""
    rest: str
    """Names what the reader of the summary sees besides it."""
    deadline: float
    """A time of the event loop's clock."""
    service_tier: str | None = None
    cache: PromptCache | None = None
    cache_key: str = ""
    """As those of a run's plan."""
    usage: Usage | None = None
    """The usage of all calls so far; None if the provider counts nothing."""

    async def summarize(self, messages: Sequence[ModelMessage]) -> str:
        """Return a summary of messages.

        Raises:
            ModelError: the model failed, or returned no text.
            QuotaExceeded: the money of the caller's budget did not suffice.
        """
        left, most, summary = exchanges_of(messages), None, ""
        for _ in range(MAX_CALLS):
            count = len(left) if most is None else fitting(left, most)
            part = [message for exchange in left[:count] for message in exchange]
            if count == 1 and most is not None:
                part = cut(part, most)
            try:
                summary = await self.ask(part, summary)
            except ContextLengthExceeded:
                # Halved, not searched: a refusal costs nothing, but each one is a round trip of the user's wait.
                most = (sum(map(length_of, part)) if most is None else most) // 2
                if most < LEAST_CHARACTERS:
                    raise
                continue
            left = left[count:]
            if not left:
                return summary
        raise ModelError("The conversation is too long to be summarized by this model.")

    async def ask(self, messages: Sequence[ModelMessage], summary: str) -> str:
        """Return the model's summary of messages that follow another summary. Raises as `summarize`."""
        system = (SystemText(self.instructions),) if self.instructions else ()
        before = (UserInput(f"{SUMMARY}\n{summary}"),) if summary else ()
        task = UserInput(TASK.format(rest=self.rest))
        asked = InferenceRequest(
            model=self.model_id,
            messages=(*system, *before, *messages, task),
            cache=self.cache,
            cache_key=self.cache_key,
            service_tier=self.service_tier,
        )
        self.model.check(asked)
        answer = await read_answer(Inference(self.model, asked), self.deadline)
        if answer.usage is not None:
            self.usage = answer.usage if self.usage is None else self.usage + answer.usage
        if answer.finish is FinishReason.budget:
            raise QuotaExceeded("The money of the caller's budget did not suffice for the whole summary.")
        text = text_of(answer.to_step().model_response.content).strip()
        if not text:
            raise ModelError("The model wrote no summary. Try again, or use another model.")
        return text


async def read_answer(inference: Inference, deadline: float) -> Answer:
    """Read a whole answer."""
    answer = Answer("")
    try:
        async for chunk in inference.read(deadline):
            for _ in answer.add_chunk(chunk):
                pass
    finally:
        # Shielded, because the run may be cancelled here: a call that is not closed continues to cost money.
        await asyncio.shield(inference.close())
    return answer


def exchanges_of(messages: Sequence[ModelMessage]) -> list[list[ModelMessage]]:
    """Cut messages into parts that providers accept as a beginning. Results stay with their calls."""
    parts: list[list[ModelMessage]] = []
    for message in messages:
        if isinstance(message, ToolResult) and parts:
            parts[-1].append(message)
        else:
            parts.append([message])
    return parts


def fitting(parts: Sequence[Sequence[ModelMessage]], most: int) -> int:
    """Return how many leading parts have at most some characters, at least one."""
    totals = accumulate(sum(map(length_of, part)) for part in parts)
    return max(sum(total <= most for total in totals), 1)


def cut(messages: Sequence[ModelMessage], most: int) -> list[ModelMessage]:
    """Cut the middle of the longest texts, so that messages have at most about `most` characters.

    All of the messages are cut to one length, so that short ones stay whole. Images are omitted, and the reasoning of
    answers that are cut.
    """
    lengths = sorted(map(length_of, messages))
    left, limit = most, most
    for place, length in enumerate(lengths):
        limit = left // (len(lengths) - place)
        if length > limit:
            break
        left -= length
    return [cut_message(message, limit) for message in messages]


def cut_message(message: ModelMessage, most: int) -> ModelMessage:
    if length_of(message) <= most:
        return message
    match message:
        case SystemText(text=text):
            return replace(message, text=cut_text(text, most))
        case AssistantAnswer(text=text):
            return replace(message, text=cut_text(text, most), reasoning=None)
    return replace(message, content=cut_text(text_of(message.content), most))


def cut_text(text: str, most: int) -> str:
    """Return a text without its middle if it is too long."""
    if len(text) <= most:
        return text
    return text[: most // 2] + OMITTED.format(count=len(text) - 2 * (most // 2)) + text[len(text) - most // 2 :]
