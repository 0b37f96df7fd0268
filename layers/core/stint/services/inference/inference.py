"""Inference without an agent: one model call per request. Nothing is stored.

It is Llama Stack's API, with chats and completions, one or a batch. Each operation is: check the images, admit the run
by its budgets, resolve the model, convert the request, start the calls. When that returns, only the model can fail. A
batch is all or nothing, because its answer has no place for an error.

Errors of the loop name its own fields. They are renamed to those of this API, so that a caller finds what to change.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from stint.dataclasses import dataclass
from stint.documents.document_reader import DocumentReader, images_of
from stint.domain.content import Content
from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest
from stint.domain.llama_stack.inference import (
    BatchChatCompletionResponse,
    BatchChatRequest,
    BatchCompletionRequest,
    BatchCompletionResponse,
    InferenceChatRequest,
    InferenceCompletionRequest,
    InferenceOptions,
)
from stint.metering import admit_run
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.services.inference.answers import to_chat_response, to_completion_response
from stint.services.inference.model_request import chat_call, completion_call
from stint.services.inference.runs import InferenceRun, LogprobDelta, read_answers, read_deltas, start_runs
from stint.services.registry.registry import Registry
from stint.spending.meters import Meters, metered

FIELDS = {"model": "model_id"}
"""Maps the loop's names of fields to those of inference requests."""


@dataclass(frozen=True, slots=True)
class ModelInference:
    """The inference of a tenant."""

    router: Router
    registry: Registry
    reader: DocumentReader
    meters: Meters

    @metered
    async def start_chat(self, request: InferenceChatRequest, deadline: float) -> InferenceRun:
        """Start an answer to messages. When this returns, the model call has started.

        Raises:
            InvalidRequest: the request refers to something unknown, contains something unreadable, or needs a feature
                that the model's provider lacks.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
        """
        # Before the run is admitted: a request that cannot be read costs nothing of a budget.
        await self.check_images("messages", [message.content for message in request.messages])
        model, model_id = await self.resolve(request)
        [run] = start(model, [chat_call(request, request.messages, model_id)], deadline)
        return run

    @metered
    async def start_completion(self, request: InferenceCompletionRequest, deadline: float) -> InferenceRun:
        """Start an answer to a content, which is one user message for the model. Raises as `start_chat` does."""
        await self.check_images("content", [request.content])
        model, model_id = await self.resolve(request)
        [run] = start(model, [completion_call(request, request.content, model_id)], deadline)
        return run

    @metered
    async def chat_batch(self, request: BatchChatRequest, deadline: float) -> BatchChatCompletionResponse:
        """Answer several chats concurrently. If one fails, all do. Raises as `start_chat` and `run` do."""
        for place, messages in enumerate(request.messages_batch):
            await self.check_images(f"messages_batch[{place}]", [message.content for message in messages])
        model, model_id = await self.resolve(request)
        calls = [chat_call(request, messages, model_id) for messages in request.messages_batch]
        runs = await read_all(start(model, calls, deadline))
        await self.meters.end()
        return BatchChatCompletionResponse(batch=[to_chat_response(run) for run in runs])

    @metered
    async def complete_batch(self, request: BatchCompletionRequest, deadline: float) -> BatchCompletionResponse:
        """Complete several contents concurrently. If one fails, all do. Raises as `start_chat` and `run` do."""
        await self.check_images("content_batch", request.content_batch)
        model, model_id = await self.resolve(request)
        calls = [completion_call(request, content, model_id) for content in request.content_batch]
        runs = await read_all(start(model, calls, deadline))
        await self.meters.end()
        return BatchCompletionResponse(batch=[to_completion_response(run) for run in runs])

    async def run(self, run: InferenceRun) -> AsyncGenerator[LogprobDelta, None]:
        """Yield the deltas of an answer. At the end, `run` is complete.

        Raises:
            ModelError: the model failed.
            InvalidRequest: the model's provider refused the request.
            DeadlineExceeded: the deadline passed before the end.
        """
        try:
            with inference_errors():
                async with aclosing(read_deltas(run)) as deltas:
                    async for delta in deltas:
                        yield delta
        finally:
            await self.meters.end()

    async def resolve(self, options: InferenceOptions) -> tuple[ChatModel, str]:
        """Admit a request, and return the adapter and the own id of its model. Raises as `start_chat` does."""
        await admit_run(find_model=lambda: self.registry.route(options.model_id))
        with inference_errors():
            return self.router.resolve(await self.registry.route(options.model_id))

    async def check_images(self, field: str, contents: list[Content]) -> None:
        await self.reader.check_images(images_of(field, contents))


def start(model: ChatModel, calls: list[InferenceRequest], deadline: float) -> list[InferenceRun]:
    with inference_errors():
        return start_runs(model, calls, deadline)


async def read_all(runs: list[InferenceRun]) -> list[InferenceRun]:
    with inference_errors():
        await read_answers(runs)
    return runs


@contextmanager
def inference_errors() -> Iterator[None]:
    """Rename the fields in a model call's errors to those of inference requests."""
    try:
        yield
    except InvalidRequest as error:
        param = FIELDS.get(error.param or "", error.param)
        raise InvalidRequest(error.message, code=error.code, param=param) from error
