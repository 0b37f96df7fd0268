"""Chat completions over HTTP: OpenAI, vLLM, Ollama, Bedrock's OpenAI-compatible endpoints."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx

from stint.domain.errors import InvalidRequest, ModelError, NotSupported
from stint.domain.inference import Accepted, Finished, InferenceRequest, ModelChunk
from stint.models.json_schemas import read_schema
from stint.models.openai.adaptations import Adaptations
from stint.models.openai.answer import ChatCompletionReader
from stint.models.openai.response import read_response
from stint.providers.openai.connections import Connections, ConnectionTrace
from stint.providers.openai.errors import FIELDS, ProviderFailure

LONGEST_WAIT = 2.0
OPENAI = re.compile(r"https://(?:\w+\.)?api\.openai\.com/")
NOT_OF_OPENAI = ("top_k", "repetition_penalty")
NOT_A_URL = (httpx.InvalidURL, UnicodeError)
"""The errors of httpx for an invalid base URL or redirect, and idna's for an invalid host in Punycode."""
NOT_REPEATED = (httpx.ReadTimeout, httpx.WriteTimeout, httpx.UnsupportedProtocol, *NOT_A_URL)


class OpenAICompatible:
    """The models of `POST {base_url}/chat/completions`, streamed.

    Before the answer starts, connection errors, 429, 500, 502, 503 and 504 are retried `repeats` times, after `backoff`
    seconds, doubled each time and jittered, or after the server's Retry-After if that is at most 2 s. Timeouts are in
    seconds; `stall_timeout` is the longest silence of the server. If `api_key` is a function, it is called before each
    request; it may read a secret store, and should cache the key. A request that meets a connection which was dropped
    while idle is sent again at once.

    If a model refuses a parameter that can be omitted or written differently, the request is sent again, and later
    requests to the model are adapted at once (see `Adaptations`).
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | Callable[[], Awaitable[str | None]] | None = None,
        *,
        connect_timeout: float = 5.0,
        stall_timeout: float = 60.0,
        repeats: int = 2,
        backoff: float = 0.25,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._url = f"{base_url.strip().rstrip('/')}/chat/completions"
        self._api_key = api_key
        self._timeout = httpx.Timeout(stall_timeout, connect=connect_timeout)
        self._repeats = repeats
        self._backoff = backoff
        self._connections = Connections(client)
        self._adaptations = Adaptations()

    @property
    def is_of_openai(self) -> bool:
        """Return whether the server is OpenAI's own."""
        return OPENAI.match(self._url) is not None

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
        """Request an answer of one token, and return its input tokens: chat completions have no other way to count.

        This costs as much as the messages. Raises NotSupported if the server counts nothing; see the port.
        """
        one_token = replace(request.decoding, max_tokens=1)
        async with aclosing(self.stream(replace(request, decoding=one_token))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Finished) and chunk.usage is not None:
                    return chunk.usage.input_tokens
        raise NotSupported(f"The server of model {request.model!r} reports no usage, so its tokens cannot be counted.")

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Start a model call, and yield its chunks; see the port."""
        repeated = 0
        accepted = begun = False
        while True:
            try:
                async with aclosing(self._call(self._adaptations.write(request))) as chunks:
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
                if failure.refusal is not None and self._adaptations.learn(request, failure.refusal):
                    continue
                pause = self._pause(failure, repeated)
                if pause is None:
                    raise failure.error from failure.__cause__
            repeated += 1
            await asyncio.sleep(pause)

    async def aclose(self) -> None:
        """Close the connections, unless the client was passed in."""
        await self._connections.aclose()

    async def _call(self, body: bytes) -> AsyncGenerator[ModelChunk, None]:
        key = await self._read_key()
        headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        answer, trace = ChatCompletionReader(), ConnectionTrace()
        options: Any = {"headers": headers, "timeout": self._timeout, "extensions": {"trace": trace}}
        try:
            call = self._connections.client().stream("POST", self._url, content=body, **options)
            async with call as response, aclosing(read_response(response, answer, key)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (httpx.RequestError, *NOT_A_URL) as error:
            if not answer.is_finished:
                raise self._failure(error, trace) from error
        for chunk in answer.finish():
            yield chunk

    async def _read_key(self) -> str:
        key = await self._api_key() if callable(self._api_key) else self._api_key
        key = (key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ModelError("OPENAI_API_KEY contains characters that cannot be sent. Set it again")
        return key

    def _failure(
        self, error: httpx.RequestError | httpx.InvalidURL | UnicodeError, trace: ConnectionTrace
    ) -> ProviderFailure:
        may_repeat = not isinstance(error, NOT_REPEATED)
        at_once = trace.has_lost_idle_connection(error)
        return ProviderFailure(self._explain(error), may_repeat=may_repeat, at_once=at_once)

    def _explain(self, error: httpx.RequestError | httpx.InvalidURL | UnicodeError) -> ModelError:
        server = self._url.partition("://")[2].partition("/")[0].rpartition("@")[2] or self._url
        match error:
            case httpx.ReadTimeout() | httpx.WriteTimeout():
                return ModelError(f"The model's provider at {server} sent nothing for {self._timeout.read:g} s")
            case UnicodeError():
                return ModelError(f"{server}, or its redirect, is not a valid URL (check OPENAI_BASE_URL)")
            case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.UnsupportedProtocol() | httpx.InvalidURL():
                reason = str(error) or f"no connection within {self._timeout.connect:g} s"
                return ModelError(f"Cannot reach the model's provider at {server}: {reason} (check OPENAI_BASE_URL)")
            case _:
                return ModelError(f"The model's provider at {server} closed the connection ({type(error).__name__})")

    def _pause(self, failure: ProviderFailure, repeated: int) -> float | None:
        """Return the seconds to wait before a retry; None if the call is not retried."""
        wait = failure.refusal.retry_after if failure.refusal is not None else None
        if not failure.may_repeat or repeated >= self._repeats or (wait or 0.0) > LONGEST_WAIT:
            return None
        return wait or self._backoff * 2**repeated * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
