"""The port every model adapter implements."""

from collections.abc import AsyncIterator
from typing import Protocol

from stint.domain.inference import InferenceRequest, ModelChunk


class Model(Protocol):
    """A provider of answers."""

    def stream(self, request: InferenceRequest) -> AsyncIterator[ModelChunk]:
        """Begin a model call and give its chunks as they come; the last one is `Finished`.

        The call begins with the first `anext`; closing the iterator (`aclose`) ends the call.

        Raises:
            ModelError: the provider failed or broke its protocol; ModelOverloaded when it throttles,
                ContextLengthExceeded when the messages do not fit. Repeated only before the first chunk.
            InvalidRequest: the request asks for something this provider does not have.
        """
        ...
