"""Models whose calls are counted, and admitted by the budgets of the run that makes them."""

from collections.abc import AsyncGenerator, AsyncIterator

from stint.domain.errors import StintError
from stint.domain.inference import InferenceRequest, ModelChunk
from stint.metering import find_meter
from stint.models.metered_call import MeteredCall
from stint.models.port import ChatModel, close_chunks
from stint.run_stop import admit_model_call, refuse_stopped


class MeteredModel:
    """A model of a provider. Outside of a run, nothing is counted."""

    def __init__(self, model: ChatModel, provider: str) -> None:
        self._model = model
        self._provider = provider

    def check(self, request: InferenceRequest) -> None:
        """Refuse parameters that the provider lacks; see the port."""
        self._model.check(request)

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count tokens; see the port."""
        return await self._model.count_tokens(request)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Start a model call once the budgets of the run admit it; see the port.

        The answer ends with the reason `budget` when the caller's money does.
        """
        meter = find_meter()
        call = MeteredCall(meter, f"{self._provider}/{request.model}", request) if meter else None
        await admit_model_call()
        if call:
            await call.admit()
        chunks, begun = self._open(call, request), False
        try:
            async for chunk in chunks:
                told = await call.follow(chunk) if call else chunk
                if not begun:
                    await refuse_stopped()
                    begun = True
                yield told
                if call and call.ended:
                    yield await call.end()
                    return
        finally:
            if call:
                await call.close()
            await close_chunks(chunks)

    def _open(self, call: MeteredCall | None, request: InferenceRequest) -> AsyncIterator[ModelChunk]:
        return self._model.stream(request) if call is None or call.limit is None else self._open_limited(call)

    async def _open_limited(self, call: MeteredCall) -> AsyncGenerator[ModelChunk, None]:
        """Yield the chunks of a call. One whose limit the model refuses is sent again without it."""
        while True:
            chunks, begun = self._model.stream(call.limited_request), False
            try:
                async for chunk in chunks:
                    begun = True
                    yield chunk
            except StintError as error:
                if begun or not call.omit_limit(error):
                    raise
            else:
                return
            finally:
                await close_chunks(chunks)
