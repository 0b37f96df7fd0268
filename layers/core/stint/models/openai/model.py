"""Chat completions over HTTP: OpenAI, vLLM, Ollama, Bedrock's OpenAI-compatible endpoints."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Unpack

from stint.domain.errors import InvalidRequest
from stint.domain.inference import Accepted, InferenceRequest, ModelChunk
from stint.models.json_schemas import read_schema
from stint.models.openai.adaptations import Adaptations
from stint.models.openai.answer import ChatCompletionReader
from stint.models.openai.response import read_response
from stint.models.port import CountNeedsAnswer
from stint.providers.openai.connections import ConnectionTrace
from stint.providers.openai.errors import FIELDS, ErrorReader, ProviderFailure
from stint.providers.openai.server import REQUEST_ERRORS, OpenAIServer, ReadKey, ServerOptions

PATH = "chat/completions"
NOT_OF_OPENAI = ("top_k", "repetition_penalty")


class OpenAICompatible:
    """The models of `POST {base_url}/chat/completions`, streamed.

    Calls are retried before the answer starts; see `OpenAIServer`, which has the `options`. If a model refuses a
    parameter that can be omitted or written differently, the request is sent again, and later requests to the model are
    adapted at once (see `Adaptations`).
    """

    def __init__(self, base_url: str, api_key: str | ReadKey | None = None, **options: Unpack[ServerOptions]) -> None:
        self.server = OpenAIServer(base_url, api_key, **options)
        self._adaptations = Adaptations()

    @property
    def is_of_openai(self) -> bool:
        """Return whether the server is OpenAI's own."""
        return self.server.is_of_openai

    def check(self, request: InferenceRequest) -> None:
        """Refuse grammars and, for OpenAI's own server, parameters that only others support; see the port."""
        if request.response_format is not None:
            read_schema(request.response_format)
        if not self.is_of_openai:
            return
        for name in NOT_OF_OPENAI:
            if getattr(request.decoding, name) is not None:
                raise InvalidRequest(f"OpenAI's models do not support {name}. Remove it.", param=FIELDS[name])

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Raise CountNeedsAnswer: chat completions have no way to count."""
        raise CountNeedsAnswer(f"The server of model {request.model!r} counts the tokens of answers only.")

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Start a model call, and yield its chunks; see the port."""
        repeated = 0
        accepted = begun = False
        while True:
            refused = self._adaptations.refused_by(request.model)
            try:
                async with aclosing(self._call(self._adaptations.write(request, refused))) as chunks:
                    async for chunk in chunks:
                        if not isinstance(chunk, Accepted):
                            begun = True
                        elif accepted:
                            continue
                        accepted = True
                        yield chunk
                return
            except ProviderFailure as failure:
                if begun:
                    raise failure.error from failure.__cause__
                if failure.at_once:
                    continue
                if failure.refusal is not None and self._adaptations.learn(request, failure.refusal, refused):
                    continue
                delay = self.server.retry_delay(failure, repeated)
                if delay is None:
                    raise failure.error from failure.__cause__
            repeated += 1
            await asyncio.sleep(delay)

    async def aclose(self) -> None:
        """Close the connections, unless the client was passed in."""
        await self.server.connections.aclose()

    async def _call(self, body: bytes) -> AsyncGenerator[ModelChunk, None]:
        key = await self.server.read_key()
        answer, trace = ChatCompletionReader(), ConnectionTrace()
        options, errors = self.server.options(key, "text/event-stream", trace), ErrorReader(self.server.settings, key)
        try:
            call = self.server.connections.client().stream("POST", self.server.url(PATH), content=body, **options)
            async with call as response, aclosing(read_response(response, answer, errors)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except REQUEST_ERRORS as error:
            if not answer.is_finished:
                raise self.server.failure(error, trace) from error
        for chunk in answer.finish():
            yield chunk
