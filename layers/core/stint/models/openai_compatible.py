"""Models over HTTP by OpenAI's APIs: OpenAI, vLLM, Ollama, Bedrock's OpenAI-compatible endpoints.

A server may have Chat Completions, the Responses API, or both, and Bedrock has some models in one of them only. The
operations that may have a model are its routes. The first is used until the server says that it lacks it; then the
next one is, and the one that answered is remembered.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Literal, NamedTuple, Protocol, Unpack

from stint.domain.inference import Accepted, InferenceRequest, ModelChunk
from stint.models.openai.request import CHAT_ONLY
from stint.models.openai.streamed_answer import AnswerReader, stream_answer
from stint.models.port import CountNeedsAnswer
from stint.providers.openai.errors import ProviderFailure, Refusal
from stint.providers.openai.server import OpenAIServer, ReadKey, ServerOptions

ApiName = Literal["chat", "responses"]


class ModelApi(Protocol):
    """An API of model servers: the form of a request, and of its answer. `path` is that of its operation."""

    path: str

    def check(self, request: InferenceRequest) -> None:
        """Refuse what the API lacks; see `ChatModel.check`."""
        ...

    def refused_by(self, model: str) -> frozenset[str]:
        """Return what a model is known to refuse."""
        ...

    def find_refused(self, request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> frozenset[str]:
        """Return what a refusal seems to be about, of what can be omitted or written otherwise.

        `adapted` is what the refused request was adapted to.
        """
        ...

    def remember_refused(self, model: str, names: frozenset[str]) -> None:
        """Remember what a model refuses."""
        ...

    def write(self, request: InferenceRequest, refused: frozenset[str]) -> bytes:
        """Write the body of a request, without what its model refuses. Raises InvalidRequest."""
        ...

    def reader(self, request: InferenceRequest) -> AnswerReader:
        """Return the reader of the request's answer."""
        ...


class ModelRoute(NamedTuple):
    """An operation that may have a model."""

    base_url: str
    api: ApiName


FindRoutes = Callable[[InferenceRequest], Sequence[ModelRoute]]
"""A function that returns the routes to the model of a request, the first choice first."""


class OpenAICompatible:
    """The models of a server, streamed.

    `api` is the only one to use. Without it, OpenAI's own server is called by the Responses API, except for requests
    with fields that only Chat Completions have; another one by Chat Completions, or, if it lacks them, by the
    Responses API. `routes` overrides both. `provider` is the id of the server, which gets its own reasoning only.

    Calls are retried before the answer starts; see `OpenAIServer`, which has the `options`. If a model refuses a
    parameter that can be omitted or written differently, the request is sent again. If that is accepted, later requests
    to the model are adapted at once. A refusal may quote the caller, so it proves nothing by itself.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | ReadKey | None = None,
        *,
        api: ApiName | None = None,
        routes: FindRoutes | None = None,
        provider: str = "",
        **options: Unpack[ServerOptions],
    ) -> None:
        self.server = OpenAIServer(base_url, api_key, **options)
        self._api = api
        self._provider = provider
        self._routes = routes or self._routes_of_server
        self._apis: dict[ApiName, ModelApi] = {}
        self._answered: dict[str, ModelRoute] = {}

    @property
    def is_of_openai(self) -> bool:
        """Return whether the server is OpenAI's own."""
        return self.server.is_of_openai

    def check(self, request: InferenceRequest) -> None:
        """Refuse grammars, and parameters that the API lacks; see the port."""
        self._api_of(self._routes_to(request)[0]).check(request)

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Raise CountNeedsAnswer: not every server has a way to count."""
        raise CountNeedsAnswer(f"The server of model {request.model!r} counts the tokens of answers only.")

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Start a model call, and yield its chunks; see the port."""
        routes, missing = list(self._routes_to(request)), None
        repeated = 0
        accepted = begun = False
        seeming = frozenset[str]()
        while True:
            api = self._api_of(routes[0])
            refused = api.refused_by(request.model) | seeming
            body = api.write(request, refused)
            url = f"{routes[0].base_url}/{api.path}"
            try:
                async with aclosing(stream_answer(self.server, url, body, api.reader(request))) as chunks:
                    async for chunk in chunks:
                        if not isinstance(chunk, Accepted):
                            begun = True
                        elif accepted:
                            continue
                        else:
                            api.remember_refused(request.model, seeming)
                            self._remember(routes[0], request, missing)
                        accepted = True
                        yield chunk
                return
            except ProviderFailure as failure:
                if begun:
                    raise failure.error from failure.__cause__
                if failure.at_once:
                    continue
                found = api.find_refused(request, failure.refusal, refused) if failure.refusal else frozenset()
                if not found <= refused:
                    seeming |= found
                    continue
                if failure.refusal is not None and failure.refusal.is_about_operation and (missing or routes[1:]):
                    missing = missing or failure
                    if routes[1:]:
                        routes.pop(0)
                        continue
                    raise missing.error from missing.__cause__
                delay = self.server.retry_delay(failure, repeated)
                if delay is None:
                    raise failure.error from failure.__cause__
            repeated += 1
            await asyncio.sleep(delay)

    async def aclose(self) -> None:
        """Close the connections, unless the client was passed in."""
        await self.server.connections.aclose()

    def _routes_to(self, request: InferenceRequest) -> Sequence[ModelRoute]:
        """Return the routes to try. One that answered comes first, unless it lacks what the request has."""
        routes = self._routes(request)
        answered = self._answered.get(request.model) or self._answered.get("")
        if answered is None or answered not in routes:
            return routes
        if answered.api == "responses" and needs_chat_completions(request):
            return sorted(routes, key=lambda route: route.api == "responses")
        return [answered, *(route for route in routes if route != answered)]

    def _remember(self, route: ModelRoute, request: InferenceRequest, missing: ProviderFailure | None) -> None:
        """Remember the route that answered after another one was missing.

        It is that of the model, if the server has the other operation for other models.
        """
        if missing is None:
            return
        is_about_server = missing.refusal is not None and missing.refusal.is_about_server
        self._answered["" if is_about_server else request.model] = route

    def _routes_of_server(self, request: InferenceRequest) -> Sequence[ModelRoute]:
        base_url = self.server.base_url
        if self._api is not None:
            return [ModelRoute(base_url, self._api)]
        if not self.is_of_openai:
            return [ModelRoute(base_url, "chat"), ModelRoute(base_url, "responses")]
        return [ModelRoute(base_url, "chat" if needs_chat_completions(request) else "responses")]

    def _api_of(self, route: ModelRoute) -> ModelApi:
        """Return the API of a route, made when first used."""
        if route.api not in self._apis:
            self._apis[route.api] = self._make_api(route.api)
        return self._apis[route.api]

    def _make_api(self, name: ApiName) -> ModelApi:
        if name == "chat":
            from stint.models.openai.chat_completions import ChatCompletions  # noqa: PLC0415 - loaded when used

            return ChatCompletions(strict=self.is_of_openai)
        from stint.models.openai_responses.api import ResponsesApi  # noqa: PLC0415 - loaded when used

        return ResponsesApi(self.server.base_url, self._provider)


LEAST_OUTPUT_TOKENS = 16
"""OpenAI's minimum of `max_output_tokens`."""


def needs_chat_completions(request: InferenceRequest) -> bool:
    """Return whether a request has fields that the Responses API of OpenAI lacks, and Chat Completions have."""
    longest = request.decoding.max_tokens
    has_others = any(getattr(request.decoding, name) is not None for name in CHAT_ONLY)
    return has_others or (longest is not None and longest < LEAST_OUTPUT_TOKENS)
