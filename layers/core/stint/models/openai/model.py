"""Chat completions over HTTP: OpenAI, vLLM, Ollama, Bedrock's OpenAI-compatible endpoints."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

import httpx

from stint.domain.errors import InvalidRequest, ModelError, NotSupported
from stint.domain.inference import Accepted, Finished, InferenceRequest, ModelChunk
from stint.models.json_schemas import read_schema
from stint.models.openai.adaptations import Adaptations
from stint.models.openai.answer import ChatAnswer
from stint.models.openai.errors import FIELDS, Failure
from stint.models.openai.request import Body, write_body
from stint.models.openai.response import read_response

LONGEST_WAIT = 2.0
OPENAI = re.compile(r"https://(?:\w+\.)?api\.openai\.com/")
NOT_OF_OPENAI = ("top_k", "repetition_penalty")
NOT_A_URL = (httpx.InvalidURL, UnicodeError)
"""What httpx raises for the base URL, or that of a redirect: also idna's own error for a host in Punycode."""
NOT_REPEATED = (httpx.ReadTimeout, httpx.WriteTimeout, httpx.UnsupportedProtocol, *NOT_A_URL)


class OpenAICompatible:
    """Models behind `POST {base_url}/chat/completions`, streamed.

    Connection errors, 429, 500, 502, 503 and 504 are repeated `repeats` times while nothing of the answer has come,
    after `backoff` seconds, doubled each time and jittered, or after the server's Retry-After when that is at most 2 s.
    Time-outs are in seconds; `stall_timeout` is the longest silence of the server. A function as `api_key` is called
    in a thread before each request: it may ask a secret store, and should keep what it found.

    A model that refuses what it can be asked without, or in another way, is asked again so (see `Adaptations`); that is
    remembered for the model.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | Callable[[], str | None] | None = None,
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
        self._given_client = client
        self._own_client: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        self._adaptations = Adaptations()

    @property
    def is_of_openai(self) -> bool:
        """Tell whether the server is OpenAI's own."""
        return OPENAI.match(self._url) is not None

    def check(self, request: InferenceRequest) -> None:
        """Refuse grammars and, where the server is OpenAI's own, what only others take; see the port."""
        if request.response_format is not None:
            read_schema(request.response_format)
        if not self.is_of_openai:
            return
        for name in NOT_OF_OPENAI:
            if getattr(request.decoding, name) is not None:
                raise InvalidRequest(f"OpenAI's models have no {name}: leave it out.", param=FIELDS[name])

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Ask for an answer of one token, and read how many the messages had: chat completions count no other way.

        This costs what the messages cost. Raises NotSupported when the server counts nothing; see the port.
        """
        one_token = replace(request.decoding, max_tokens=1)
        async with aclosing(self.stream(replace(request, decoding=one_token))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Finished) and chunk.usage is not None:
                    return chunk.usage.input_tokens
        raise NotSupported(f"The server of model {request.model!r} tells no usage, so its tokens cannot be counted.")

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Begin a model call and give its chunks as they come; see the port."""
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
            except Failure as failure:
                if begun:
                    raise failure.error from failure.__cause__
                if failure.refusal is not None and self._adaptations.learn(request, failure.refusal):
                    continue
                pause = self._pause(failure, repeated)
                if pause is None:
                    raise failure.error from failure.__cause__
            repeated += 1
            await asyncio.sleep(pause)

    async def aclose(self) -> None:
        """Close the connections, unless they belong to a given client."""
        if self._own_client is not None:
            _, client = self._own_client
            self._own_client = None
            await client.aclose()

    async def _call(self, body: Body) -> AsyncGenerator[ModelChunk, None]:
        key = await self._read_key()
        headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        content = write_body(body)
        answer = ChatAnswer()
        try:
            call = self._client().stream("POST", self._url, content=content, headers=headers, timeout=self._timeout)
            async with call as response, aclosing(read_response(response, answer, key)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (httpx.RequestError, *NOT_A_URL) as error:
            if not answer.is_finished:
                raise Failure(self._explain(error), may_repeat=not isinstance(error, NOT_REPEATED)) from error
        for chunk in answer.finish():
            yield chunk

    def _client(self) -> httpx.AsyncClient:
        """Give the client of this event loop: connections cannot be used from another one."""
        if self._given_client is not None:
            return self._given_client
        loop = asyncio.get_running_loop()
        if self._own_client is None or self._own_client[0] is not loop:
            self._own_client = (loop, httpx.AsyncClient())
        return self._own_client[1]

    async def _read_key(self) -> str:
        key = await asyncio.to_thread(self._api_key) if callable(self._api_key) else self._api_key
        key = (key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ModelError("OPENAI_API_KEY holds characters that cannot be sent: set it again")
        return key

    def _explain(self, error: httpx.RequestError | httpx.InvalidURL | UnicodeError) -> ModelError:
        server = self._url.partition("://")[2].partition("/")[0].rpartition("@")[2] or self._url
        match error:
            case httpx.ReadTimeout() | httpx.WriteTimeout():
                return ModelError(f"The model's provider at {server} was silent for {self._timeout.read:g} s")
            case UnicodeError():
                return ModelError(f"{server}, or where it redirects to, is not a valid URL (check OPENAI_BASE_URL)")
            case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.UnsupportedProtocol() | httpx.InvalidURL():
                reason = str(error) or f"no connection within {self._timeout.connect:g} s"
                return ModelError(f"Cannot reach the model's provider at {server}: {reason} (check OPENAI_BASE_URL)")
            case _:
                return ModelError(f"The model's provider at {server} broke the connection ({type(error).__name__})")

    def _pause(self, failure: Failure, repeated: int) -> float | None:
        """Tell how many seconds to wait before the call is repeated; None when it is not."""
        wait = failure.refusal.retry_after if failure.refusal is not None else None
        if not failure.may_repeat or repeated >= self._repeats or (wait or 0.0) > LONGEST_WAIT:
            return None
        return wait or self._backoff * 2**repeated * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
