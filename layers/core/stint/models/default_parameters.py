"""Default parameters of a provider's chats."""

from collections.abc import AsyncGenerator

from stint.dataclasses import asdict, replace
from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.inference import Decoding, InferenceRequest, ModelChunk
from stint.models.port import ChatModel, close_chunks

SAMPLING = ("temperature", "top_p", "top_k")


class DefaultParameters:
    """A model whose requests get the parameters that they do not set. `place` names the setting in errors."""

    def __init__(self, model: ChatModel, defaults: Decoding, place: str) -> None:
        self.wrapped, self._place = model, place
        self._defaults = {name: value for name, value in asdict(defaults).items() if value is not None}

    def check(self, request: InferenceRequest) -> None:
        """Refuse parameters that the provider lacks; see the port.

        Raises ModelError for a default that it lacks, because the caller cannot remove it.
        """
        self.wrapped.check(request)
        try:
            self.wrapped.check(self._fill(request))
        except InvalidRequest as error:
            raise ModelError(f"The model does not support {self._place}: {error.message}") from error

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Start a model call; see the port."""
        chunks = self.wrapped.stream(self._fill(request))
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await close_chunks(chunks)

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count tokens; see the port."""
        return await self.wrapped.count_tokens(self._fill(request))

    def _fill(self, request: InferenceRequest) -> InferenceRequest:
        """Return the request with the defaults.

        A temperature, top_p, top_k or reasoning effort excludes the defaults of the first three, because many models
        accept only one of the four.
        """
        given = asdict(request.decoding)
        thinks = request.reasoning is not None and request.reasoning.effort not in (None, "none")
        excluded = SAMPLING if thinks or any(given[name] is not None for name in SAMPLING) else ()
        added = {name: value for name, value in self._defaults.items() if given[name] is None and name not in excluded}
        return replace(request, decoding=replace(request.decoding, **added))
