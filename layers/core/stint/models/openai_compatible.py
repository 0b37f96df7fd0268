"""Models over HTTP by OpenAI's APIs: OpenAI, vLLM, Ollama, Bedrock's OpenAI-compatible endpoints.

A server may have Chat Completions, the Responses API, or both, and Bedrock has some models in one of them only. The
operations that may have a model are its routes. The first is used until the server says that it lacks it; then the
next one is, and the one that answered is remembered.

No list says what a model accepts either. So a call is sent as the request asks, and adapted to what its model refuses.
Both are learned from the words of errors, which may quote the caller: see `Adaptation`.

docs/decisions.md, entry 29, has the reasons.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Literal, NamedTuple, Protocol, Unpack

from stint.domain.errors import ModelError, StintError
from stint.domain.inference import Accepted, InferenceRequest, ModelChunk
from stint.models.openai.refused_fields import RefusedFields
from stint.models.openai.request import CHAT_ONLY
from stint.models.openai.streamed_answer import AnswerReader, stream_answer
from stint.models.port import CountNeedsAnswer
from stint.providers.openai.errors import ProviderFailure, Refusal
from stint.providers.openai.server import OpenAIServer, ReadKey, ServerOptions

ApiName = Literal["chat", "responses"]


class ModelApi(Protocol):
    """An API of model servers: the form of a request, and of its answer.

    `path` is that of its operation. `refused` has what each model is known to refuse.
    """

    path: str
    refused: RefusedFields

    def check(self, request: InferenceRequest) -> None:
        """Refuse what the API lacks; see `ChatModel.check`."""
        ...

    def find_refused(self, request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> set[str]:
        """Return what a refusal may be about, of what can be omitted or written differently.

        `adapted` is what the refused request was adapted to.
        """
        ...

    def name_field(self, param: str) -> str:
        """Return the name in chat completions of a field that an error names."""
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


class Adaptation:
    """Adapts a call to what its model refuses: fields are omitted, or written differently.

    Servers quote what callers have written, so a refusal may seem to be about something else. What it may be about is
    tried by this call only, and remembered for the model once the adapted call is answered, unless the same refusal
    came again, or may have been about several things.
    """

    def __init__(self, api: ModelApi, request: InferenceRequest) -> None:
        self.api = api
        self._request = request
        self._sent: frozenset[str] = frozenset()
        self._tried: frozenset[str] = frozenset()
        self._found: dict[Refusal, set[str]] = {}

    def write(self) -> bytes:
        """Write the body of the request. Raises InvalidRequest."""
        self._sent = self.api.refused.of(self._request.model) | self._tried
        return self.api.write(self._request, self._sent)

    def change(self, refusal: Refusal | None) -> bool:
        """Adapt the call to a refusal, and return whether that changes it."""
        if refusal is None or not refusal.may_be_about_field:
            return False
        found = self.api.find_refused(self._request, refusal, self._sent) - self._sent
        # When the same refusal comes again, it replaces what it seemed to be about: that did not help.
        self._found[refusal] = found if len(found) == 1 else set()
        self._tried |= found
        return bool(found)

    def remember(self) -> None:
        """Remember what the model refuses, after it has answered."""
        self.api.refused.add(self._request.model, set().union(*self._found.values()))


class OpenAICompatible:
    """The models of a server, streamed.

    `api` is the only one to use. Without it, OpenAI's own server is called by the Responses API, except for requests
    with fields that only Chat Completions have; another one by Chat Completions, or, if it lacks them, by the
    Responses API. `routes` overrides both. `provider` is the id of the server, which gets its own reasoning only.

    Calls are retried before the answer starts; see `OpenAIServer`, which has the `options`. If a model refuses a
    parameter that can be omitted or written differently, the request is sent again, and if that one is answered, later
    requests to the model are adapted at once.
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
        repeated, accepted, begun = 0, False, False
        adaptation = Adaptation(self._api_of(routes[0]), request)
        while True:
            url, body = f"{routes[0].base_url}/{adaptation.api.path}", adaptation.write()
            reader = adaptation.api.reader(request)
            try:
                async with aclosing(stream_answer(self.server, url, body, reader)) as chunks:
                    async for chunk in chunks:
                        if not isinstance(chunk, Accepted):
                            if not begun:
                                adaptation.remember()
                                self._remember(routes[0], request, missing)
                            begun = True
                        elif accepted:
                            continue
                        accepted = True
                        yield chunk
                return
            except ProviderFailure as failure:
                # Callers know the names of one API, whichever the server has.
                failure.error.param = adaptation.api.name_field(failure.error.param or "") or None
                # Reasoning that is not shown has begun, too: a second call would be paid for again.
                if begun or reader.has_begun:
                    raise failure.error from failure.__cause__
                if failure.at_once or adaptation.change(failure.refusal):
                    continue
                if failure.refusal is not None and failure.refusal.is_about_operation:
                    # The first error is the one to explain: it is about the operation that was most likely meant.
                    missing = missing or failure
                    if len(routes) == 1:
                        raise self._explain_missing(missing, adaptation.api.path) from missing.__cause__
                    routes.pop(0)
                    adaptation = Adaptation(self._api_of(routes[0]), request)
                    continue
                delay = self.server.retry_delay(failure, repeated)
                if delay is None:
                    raise failure.error from failure.__cause__
            repeated += 1
            await asyncio.sleep(delay)

    def _explain_missing(self, missing: ProviderFailure, path: str) -> StintError:
        """Return the error of a server without the operation, which the operator must correct if they chose it."""
        refusal = missing.refusal
        if self._api is None or refusal is None or not refusal.is_about_server:
            return missing.error
        told = f"The model's provider answered {refusal.status}: it has no POST /{path}"
        return ModelError(
            f"{told} (check its api, and {self.server.settings.base_url})", upstream_status=refusal.status
        )

    async def connect(self, model_id: str) -> None:
        """Load the API of a model, read the key, and open a connection to the server; see the port."""
        self._api_of(self._routes_to(InferenceRequest(model_id, ()))[0])
        await self.server.connect()

    async def aclose(self) -> None:
        """Close the idle connections, also those of others that share the client."""
        await self.server.client.close()

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

            return ChatCompletions(is_of_openai=self.is_of_openai)
        from stint.models.openai_responses.api import ResponsesApi  # noqa: PLC0415 - loaded when used

        return ResponsesApi(self.server.base_url, self._provider)


LEAST_OUTPUT_TOKENS = 16
"""OpenAI's minimum of `max_output_tokens`."""


def needs_chat_completions(request: InferenceRequest) -> bool:
    """Return whether a request has fields that the Responses API of OpenAI lacks, and Chat Completions have."""
    longest = request.decoding.max_tokens
    has_others = any(getattr(request.decoding, name) is not None for name in CHAT_ONLY)
    return has_others or (longest is not None and longest < LEAST_OUTPUT_TOKENS)
