"""The port every model adapter implements."""

from collections.abc import AsyncIterator
from typing import Protocol

from stint.domain.inference import InferenceRequest, ModelChunk


class Model(Protocol):
    """A provider of answers."""

    def check(self, request: InferenceRequest) -> None:
        """Refuse what this provider lacks, before anything is sent. The messages are not looked at.

        Asking for no more than one tool call at once is never refused: who reads the answer takes the first one.

        Raises:
            InvalidRequest: `param` names the field of the request.
        """
        ...

    def stream(self, request: InferenceRequest) -> AsyncIterator[ModelChunk]:
        """Begin a model call and yield its chunks as they come; the first may be `Accepted`, the last is `Finished`.

        The call begins with the first `anext`; closing the iterator (`aclose`) ends the call.

        Raises:
            ModelError: the provider failed or broke its protocol; RateLimited or ModelOverloaded when it cannot answer
                now, ContextLengthExceeded when the messages do not fit, ModelUnauthorized when it refuses this server.
                Repeated only before the first chunk.
            InvalidRequest: the provider refuses the request; `param` is the field as chat completions name it.
        """
        ...

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count the tokens that a request would send to the model: messages, tools and response format.

        Raises:
            NotSupported: neither the provider nor the model can count them.
            InvalidRequest, ModelError: as `stream`.
        """
        ...
