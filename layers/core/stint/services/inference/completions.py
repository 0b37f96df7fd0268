"""OpenAI's text completions, each of which is a chat of one message. Nothing is stored.

Models are called with messages, so a prompt becomes a user message: Bedrock has nothing else. No instruction to
continue the text is added, because it would change the answers of instruction models. The route for completions of vLLM
and Ollama is not used, because it would need a second request, reader and table of errors.

A request has a model call for each prompt and each of `n`. They run concurrently, their pieces are mixed in one stream,
and the first error ends all of them. `echo` is added here.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import reduce
from operator import add

from stint.dataclasses import dataclass, field
from stint.domain.ids import new_name
from stint.domain.inference import FinishReason, InferenceRequest, Usage, UserInput
from stint.domain.openai.chat_output import CompletionUsage
from stint.domain.openai.completions import TextChoice, TextCompletion, TextCompletionRequest, TextFinish
from stint.domain.run_events import TextDelta
from stint.loop.answer import Answer
from stint.metering import admit_run
from stint.models.labels import name_end_user
from stint.models.routing import Router
from stint.services.inference.runs import InferenceRun, merge_deltas, start_runs
from stint.services.registry.registry import Registry
from stint.spending.meters import Meters, metered


@dataclass(frozen=True, slots=True)
class TextCompletionRun:
    """Completions whose model calls have started: one for each prompt and each of `n`."""

    request: TextCompletionRequest
    runs: list[InferenceRun]
    completion_id: str = field(default_factory=lambda: new_name("cmpl"))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def usage(self) -> Usage | None:
        """Return the usage of all calls; None if the provider counts nothing."""
        counted = [run.answer.usage for run in self.runs if run.answer.usage is not None]
        return reduce(add, counted) if counted else None

    def whole(self) -> TextCompletion:
        """Return the completions after the model has finished all."""
        prompts = self.request.prompts if self.request.echo else [""] * len(self.runs)
        choices = [
            TextChoice(text=prompt + "".join(run.answer.text), index=index, finish_reason=finish_of(run.answer))
            for index, (prompt, run) in enumerate(zip(prompts, self.runs, strict=True))
        ]
        return self.completion(choices, self.usage)

    def chunk(self, index: int, text: str, finish_reason: TextFinish | None = None) -> TextCompletion:
        return self.completion([TextChoice(text=text, index=index, finish_reason=finish_reason)])

    def completion(self, choices: list[TextChoice], usage: Usage | None = None) -> TextCompletion:
        return TextCompletion(
            id=self.completion_id,
            created=self.created,
            model=self.request.model,
            choices=choices,
            usage=CompletionUsage.of(usage) if usage else None,
        )


@dataclass(frozen=True, slots=True)
class TextCompletions:
    """The text completions of a tenant."""

    router: Router
    registry: Registry
    meters: Meters

    @metered
    async def start(self, request: TextCompletionRequest, deadline: float) -> TextCompletionRun:
        """Start completions. When this returns, the model calls have started.

        Raises:
            InvalidRequest: the model is unknown, or its provider lacks a feature.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
        """
        await admit_run(find_model=lambda: self.registry.route(request.model))
        model, model_id = self.router.resolve(await self.registry.route(request.model))
        name_end_user(request.user)
        decoding = request.to_decoding()
        calls = [InferenceRequest(model_id, (UserInput(text),), decoding=decoding) for text in request.prompts]
        return TextCompletionRun(request, start_runs(model, calls, deadline))

    async def run(self, run: TextCompletionRun) -> AsyncGenerator[TextCompletion, None]:
        """Yield completions in chunks, as they come. At the end, `run.whole()` has all.

        Raises:
            ModelError: the model failed.
            InvalidRequest: the model's provider refused the request.
            DeadlineExceeded: the deadline passed before the end.
        """
        begun: set[int] = set()
        try:
            async with aclosing(merge_deltas(run.runs)) as deltas:
                async for index, delta in deltas:
                    if run.request.echo and index not in begun:
                        begun.add(index)
                        yield run.chunk(index, run.request.prompts[index])
                    if delta is not None and isinstance(delta.delta, TextDelta):
                        yield run.chunk(index, delta.delta.text)
                    elif delta is None:
                        yield run.chunk(index, "", finish_of(run.runs[index].answer))
        finally:
            await self.meters.end()
        options = run.request.stream_options
        if options is not None and options.include_usage and run.usage is not None:
            yield run.completion([], run.usage)


def finish_of(answer: Answer) -> TextFinish:
    match answer.finish:
        case FinishReason.length | FinishReason.budget:
            return "length"
        case FinishReason.content_filter:
            return "content_filter"
    return "stop"
