"""Inference without an agent: one model call per request. Nothing is stored."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field

from stint.domain.content import Content
from stint.domain.errors import DeadlineExceeded, InvalidRequest
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
from stint.domain.run_events import Delta, TextDelta, ToolCallDelta
from stint.loop.answer import Answer
from stint.loop.model_call import Inference
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.services.document_reader import DocumentReader, images_of
from stint.services.inference.answers import to_chat_response, to_completion_response
from stint.services.inference.model_request import chat_call, completion_call
from stint.services.registry.registry import Registry

TIME_IS_OVER = (
    "The time limit of this request was reached before the answer ended. Request less, or raise StreamTimeoutSeconds "
    "in the template."
)
FIELDS = {"model": "model_id"}
"""Maps the loop's names of fields to those of inference requests."""

NO_LOGPROBS = "No provider supports log probabilities. Remove logprobs."


@dataclass(frozen=True, slots=True)
class InferenceRun:
    """An answer whose model call has started. `deadline` is a time of the event loop's clock."""

    call: Inference
    deadline: float
    answer: Answer = field(default_factory=lambda: Answer(run_id=""))


@dataclass(frozen=True, slots=True)
class ModelInference:
    """The inference of a tenant."""

    router: Router
    registry: Registry
    reader: DocumentReader

    async def start_chat(self, request: InferenceChatRequest, deadline: float) -> InferenceRun:
        """Start an answer to messages. When this returns, the model call has started.

        Raises:
            InvalidRequest: the request refers to something unknown, contains something unreadable, or needs a feature
                that the model's provider lacks.
        """
        await self.check_images("messages", [message.content for message in request.messages])
        model, model_id = await self.resolve(request)
        return start(model, chat_call(request, request.messages, model_id), deadline)

    async def start_completion(self, request: InferenceCompletionRequest, deadline: float) -> InferenceRun:
        """Start an answer to a content, which is one user message for the model. Raises as `start_chat` does."""
        await self.check_images("content", [request.content])
        model, model_id = await self.resolve(request)
        return start(model, completion_call(request, request.content, model_id), deadline)

    async def chat_batch(self, request: BatchChatRequest, deadline: float) -> BatchChatCompletionResponse:
        """Answer several chats concurrently. If one fails, all do. Raises as `start_chat` and `run` do."""
        for place, messages in enumerate(request.messages_batch):
            await self.check_images(f"messages_batch[{place}]", [message.content for message in messages])
        model, model_id = await self.resolve(request)
        calls = [chat_call(request, messages, model_id) for messages in request.messages_batch]
        answers = await self.run_all(model, calls, deadline)
        return BatchChatCompletionResponse(batch=[to_chat_response(answer) for answer in answers])

    async def complete_batch(self, request: BatchCompletionRequest, deadline: float) -> BatchCompletionResponse:
        """Complete several contents concurrently. If one fails, all do. Raises as `start_chat` and `run` do."""
        await self.check_images("content_batch", request.content_batch)
        model, model_id = await self.resolve(request)
        calls = [completion_call(request, content, model_id) for content in request.content_batch]
        answers = await self.run_all(model, calls, deadline)
        return BatchCompletionResponse(batch=[to_completion_response(answer) for answer in answers])

    async def run(self, run: InferenceRun) -> AsyncGenerator[Delta, None]:
        """Yield the deltas of an answer. At the end, `run.answer` is complete.

        Raises:
            ModelError: the model failed.
            InvalidRequest: the model's provider refused the request.
            DeadlineExceeded: the deadline passed before the end.
        """
        try:
            with inference_errors():
                async with aclosing(run.call.read(run.deadline)) as chunks:
                    async for chunk in chunks:
                        for delta in run.answer.add_chunk(chunk):
                            if isinstance(delta, TextDelta | ToolCallDelta):  # there is no event for reasoning
                                yield delta
        finally:
            await run.call.close()

    async def run_all(self, model: ChatModel, calls: list[InferenceRequest], deadline: float) -> list[Answer]:
        """Run several model calls concurrently. The first error ends the others."""
        runs = [start(model, call, deadline) for call in calls]
        tasks = [asyncio.create_task(self.read_answer(run)) for run in runs]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def read_answer(self, run: InferenceRun) -> Answer:
        """Read an answer to its end. Raises as `run` does."""
        async with aclosing(self.run(run)) as deltas:
            async for _ in deltas:
                pass
        return run.answer

    async def resolve(self, options: InferenceOptions) -> tuple[ChatModel, str]:
        """Return the adapter of the request's model, and its own id. Raises InvalidRequest."""
        if options.logprobs is not None:
            raise InvalidRequest(NO_LOGPROBS, param="logprobs")
        with inference_errors():
            return self.router.resolve(await self.registry.route(options.model_id))

    async def check_images(self, field: str, contents: list[Content]) -> None:
        await self.reader.check_images(images_of(field, contents))


def start(model: ChatModel, call: InferenceRequest, deadline: float) -> InferenceRun:
    with inference_errors():
        model.check(call)
    return InferenceRun(Inference(model, call), deadline)


@contextmanager
def inference_errors() -> Iterator[None]:
    """Rename the fields in a model call's errors to those of inference requests."""
    try:
        yield
    except InvalidRequest as error:
        param = FIELDS.get(error.param or "", error.param)
        raise InvalidRequest(error.message, code=error.code, param=param) from error
    except DeadlineExceeded:
        raise DeadlineExceeded(TIME_IS_OVER) from None
