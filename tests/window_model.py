"""A model with a limited context that knows nothing but what it is given."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from tests.script_model import CALLED, words_of

from stint.domain.errors import ContextLengthExceeded, ModelError, StintError
from stint.domain.inference import (
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    Usage,
)
from stint.domain.token_estimates import CHARACTERS_PER_TOKEN, length_of

FACT, RECALL, RUN = "fact: ", "recall ", "run "


def is_task(text: str) -> bool:
    """Return whether a text asks for a summary."""
    return text.startswith("Write a summary")


@dataclass
class WindowModel:
    """Refuses an input of more than `window` tokens. A token has four characters, or `characters`.

    It calls the tool that "run ..." names, answers "recall x" by the fact with the word x in its input, and all else
    with "Fine". Its summary has the lines of its input that state a fact, the `failures` come first. Its next answers
    break off, as many as `breaks`.
    """

    window: int
    characters: int = CHARACTERS_PER_TOKEN
    failures: list[StintError] = field(default_factory=list)
    breaks: int = 0
    requests: list[InferenceRequest] = field(default_factory=list)
    refused: int = 0
    calls: int = 0

    @property
    def summaries(self) -> list[InferenceRequest]:
        """Return the accepted requests for a summary."""
        return [request for request in self.requests if is_task(words_of(request.messages[-1]))]

    @property
    def answered(self) -> list[InferenceRequest]:
        """Return the accepted requests for anything else."""
        return [request for request in self.requests if not is_task(words_of(request.messages[-1]))]

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return sum(map(length_of, request.messages)) // self.characters

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        tokens = await self.count_tokens(request)
        if tokens > self.window:
            self.refused += 1
            raise ContextLengthExceeded(f"The input has {tokens} tokens, more than {self.window}.")
        last = words_of(request.messages[-1])
        if is_task(last) and self.failures:
            raise self.failures.pop(0)
        self.requests.append(request)
        if self.breaks and not is_task(last):
            self.breaks -= 1
            raise ModelError("The line is dead.")
        if last.startswith(RUN) and not isinstance(request.messages[-1], ToolResult):
            for name in last.removeprefix(RUN).split():
                self.calls += 1
                yield ToolCallChunk(self.calls, f"call_{self.calls}", name, "{}")
            yield CALLED
            return
        text = self.answer_to(request, last)
        yield TextChunk(text)
        yield Finished(FinishReason.stop, Usage(input_tokens=tokens, output_tokens=5, total_tokens=tokens + 5))

    def answer_to(self, request: InferenceRequest, last: str) -> str:
        lines = [line for message in request.messages[:-1] for line in words_of(message).splitlines()]
        facts = list(dict.fromkeys(line for line in lines if line.startswith(FACT)))
        if is_task(last):
            return "\n".join(facts) or "Nothing happened."
        if last.startswith(RECALL):
            wanted = last.removeprefix(RECALL)
            return next((fact for fact in facts if wanted in fact.split()), "I do not know.")
        return "Fine"
