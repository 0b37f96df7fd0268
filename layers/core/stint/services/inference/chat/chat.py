"""Chat completions. One is stored if its request says so.

`start` does all that can fail with an HTTP status, and starts the model call; `run` reads it. The order in `start` is:
budgets and rights, the files of the request, the features of the model. `run` stores the completion after its last
chunk from the model and before the chunk that announces the end, so a caller that has seen the end can read it.

A repetition with the same idempotency key has the same id. If the first request has stored its completion, the
repetition streams that one, and calls no model.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING

from stint.caller import find_attempt, next_object_id
from stint.dataclasses import dataclass, replace
from stint.documents.document_reader import DocumentReader
from stint.domain.errors import DeadlineExceeded, InvalidRequest
from stint.domain.ids import name_of
from stint.domain.inference import Finished
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.chat_output import ChatCompletionChunk
from stint.loop.model_call import ANSWER_TIME_IS_OVER, Inference
from stint.metering import admit_run
from stint.models.labels import name_end_user
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.services.inference.chat.chunks import Completion
from stint.services.inference.chat.request import read_request
from stint.services.registry.registry import Registry
from stint.spending.meters import Meters, metered

if TYPE_CHECKING:
    from stint.services.inference.chat.stored import StoredChats
    from stint.services.runs.cache_keys import FindCacheKeys

FIELDS = {"reasoning.effort": "reasoning_effort"}
"""Maps the loop's names of fields to those of chat completions."""

MakeStoredChats = Callable[[], "StoredChats"]
"""A function that makes the use case of stored completions, whose modules few requests need."""


@dataclass(frozen=True, slots=True)
class ChatRun:
    """A completion whose model call has started. `deadline` is a time of the event loop's clock.

    `stored`: an earlier request with the same idempotency key stored it, and nothing calls a model.
    """

    completion: Completion
    inference: Inference
    deadline: float
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    """The chat completions of a tenant."""

    router: Router
    registry: Registry
    reader: DocumentReader
    make_stored: MakeStoredChats
    meters: Meters
    find_cache_keys: "FindCacheKeys"

    @metered
    async def start(self, request: ChatCompletionRequest, deadline: float) -> ChatRun:
        """Start a completion. When this returns, the model call has started.

        Raises:
            InvalidRequest: the request refers to something unknown, contains something unreadable, or needs a feature
                that the model's provider lacks.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
        """
        # Before anything is read that the request can make large.
        await admit_run(find_model=lambda: self.registry.route(request.model))
        model, model_id = self.router.resolve(await self.registry.route(request.model))
        name_end_user(request.safety_identifier, request.user)
        asked = await read_request(request, model_id, self.reader)
        if (keys := await self.find_cache_keys(model)) is not None:
            asked = replace(asked, cache_key=keys.derive_of_caller(request.prompt_cache_key))
        with rename_chat_fields():
            model.check(asked)
        completion = Completion(request, name_of("chatcmpl", next_object_id()))
        stored = await self.find_answer(completion.completion_id) if request.store else None
        return ChatRun(completion, Inference(stored or model, asked), deadline, stored is not None)

    async def run(self, run: ChatRun) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield a completion in chunks, with the model's first chunk first. At the end, `run.completion` is complete.

        It is stored before its end is announced.

        Raises:
            StoreUnavailable: the completion was to be stored, and is not.
            ModelError: the model failed.
            InvalidRequest: the model's provider refused the request.
            DeadlineExceeded: the deadline passed before the end.
        """
        begun = False
        try:
            with rename_chat_fields():
                async with aclosing(run.inference.read(run.deadline)) as chunks:
                    async for chunk in chunks:
                        if not begun:
                            yield run.completion.first_chunk()
                            begun = True
                        told = list(run.completion.add_chunk(chunk))
                        if isinstance(chunk, Finished) and run.completion.request.store and not run.stored:
                            # Before the chunks of the end: a process that dies after them has stored it.
                            await self.make_stored().save(run.completion.request, run.completion.whole())
                        for each in told:
                            yield each
        # Also when the caller has gone: the model call ends, and what it has used is counted.
        finally:
            await run.inference.close()
            await self.meters.end()

    async def find_answer(self, completion_id: str) -> ChatModel | None:
        """Return the answer that an earlier request with the same idempotency key has stored."""
        if not find_attempt().repeated:
            return None
        from stint.services.inference.chat.stored_completion_model import find_answer  # noqa: PLC0415 - few requests are repeated

        return await find_answer(self.make_stored(), completion_id)


@contextmanager
def rename_chat_fields() -> Iterator[None]:
    """Rename the fields in a model call's errors to those of chat completions."""
    try:
        yield
    except InvalidRequest as error:
        param = FIELDS.get(error.param or "", error.param)
        raise InvalidRequest(error.message, code=error.code, param=param) from error
    except DeadlineExceeded:
        raise DeadlineExceeded(ANSWER_TIME_IS_OVER) from None
