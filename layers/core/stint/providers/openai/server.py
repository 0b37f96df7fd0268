"""Requests to a server of OpenAI's API, or one that is compatible with it.

All of them reach the network through `OpenAIServer.open`.
"""

import asyncio
import json
import os
import random
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypedDict, Unpack

from stint.dataclasses import dataclass
from stint.domain.errors import ModelError, ModelUnreachable
from stint.http1.client import HttpClient, HttpStream, HttpTimeouts, split_url
from stint.http1.parser import MalformedResponse
from stint.http1.pool import TransportError
from stint.http1.proxies import InvalidProxy, read_proxies
from stint.http1.urls import InvalidURL
from stint.providers.openai.addresses import is_of_openai
from stint.providers.openai.errors import ErrorReader, ProviderFailure, ServerSettings
from stint.providers.openai.event_stream import EventStreamDecoder, EventTooLarge
from stint.providers.refusals import shorten

LONGEST_WAIT = 2.0
DRAIN_SECONDS = 0.2
"""Longest wait for the end of a body whose answer is complete, so that a server which keeps it open delays nothing."""
MAX_ERROR_BYTES = 65_536
DONE = "[DONE]"
ALWAYS = {"Accept-Encoding": "identity", "User-Agent": "stint"}
"""Headers of all requests. Some firewalls refuse those without a User-Agent."""
RequestError = TransportError | InvalidURL | InvalidProxy | EventTooLarge
REQUEST_ERRORS = (TransportError, InvalidURL, InvalidProxy, EventTooLarge)

ReadKey = Callable[[], Awaitable[str | None]]
SignRequest = Callable[[str, str, bytes], Awaitable[Mapping[str, str]]]
"""A function of method, URL and body that returns the headers of a signature. Raises ModelError."""


class ServerOptions(TypedDict, total=False):
    """Options of a server."""

    settings: ServerSettings
    """The names of settings in error messages."""
    connect_timeout: float
    """Seconds, by default 5."""
    stall_timeout: float
    """Longest silence of the server in seconds, by default 60."""
    repeats: int
    """Maximum retries of a request, by default 2."""
    backoff: float
    """Seconds before the first retry, by default 0.25. They double each time."""
    client: HttpClient
    """The client for all requests, by default one of the server's own, with the proxies of the environment."""
    sign: SignRequest | None
    """Signs requests, which then have no key."""


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """The response of a server, whose body has not been read. `errors` reads an error in it.

    Each method raises TransportError if the body does not arrive.
    """

    stream: HttpStream
    errors: ErrorReader

    @property
    def status(self) -> int:
        return self.stream.status

    @property
    def content_type(self) -> str:
        """Return the media type without parameters, or an empty text."""
        return self.stream.headers.get("content-type", "").partition(";")[0].strip()

    async def read(self) -> str:
        """Return the body, decoded as UTF-8 whatever is declared."""
        return (await self.stream.read()).decode(errors="replace")

    async def check_success(self) -> None:
        """Raise ProviderFailure if the status is an error, of whose body the beginning counts."""
        if 200 <= self.status < 300:
            return
        body = bytearray()
        async with aclosing(aiter(self.stream)) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) >= MAX_ERROR_BYTES:
                    break
        text = body[:MAX_ERROR_BYTES].decode(errors="replace")
        raise self.errors.read(self.status, text, self.stream.headers)

    async def events(self) -> AsyncGenerator[str, None]:
        """Yield the data of each server-sent event, up to the end of the body or `DONE`, which is the last one."""
        decoder = EventStreamDecoder()
        async with aclosing(aiter(self.stream)) as pieces:
            async for piece in pieces:
                for data in decoder.feed(piece):
                    if data.strip() == DONE:
                        await drain(pieces)
                        yield DONE
                        return
                    yield data


async def drain(pieces: AsyncGenerator[Any, None]) -> None:
    """Read the body to its end, so that the connection can be reused."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in pieces:
                pass
    except (TimeoutError, TransportError, EventTooLarge):
        return


def make_client(timeouts: HttpTimeouts) -> HttpClient:
    """Make a client with the proxies of the environment."""
    return HttpClient(read_proxies(), timeouts, ca_bundle=system_certificates())


def system_certificates() -> str:
    """Return the file of certificates to verify servers by; empty for those of the system."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile and paths.cafile != paths.openssl_cafile:
        return paths.cafile  # SSL_CERT_FILE, and no others
    if paths.cafile or (paths.capath and any(os.scandir(paths.capath))):
        return ""
    import certifi  # noqa: PLC0415 - for systems without certificates, such as some of macOS

    return certifi.where()


class OpenAIServer:
    """A server: its URLs, its key, its connections, and what its errors mean.

    Connection errors, 429, 500, 502, 503, 504 and 529 are retried `repeats` times, after `backoff` seconds, doubled
    each time and jittered, or after the Retry-After of the server if that is at most 2 s. Timeouts are in seconds;
    `stall_timeout` is the longest silence of the server. If `api_key` is a function, it is called before each request;
    it may read a secret store, and should cache the key. A request that meets a connection which was dropped while idle
    is sent again at once. `settings` are the names of the settings in error messages. With `sign`, requests are signed,
    and have no key.
    """

    def __init__(self, base_url: str, api_key: str | ReadKey | None = None, **options: Unpack[ServerOptions]) -> None:
        self.base_url = base_url.strip().rstrip("/")
        self.settings = options.get("settings", ServerSettings())
        self.timeouts = HttpTimeouts(options.get("connect_timeout", 5.0), options.get("stall_timeout", 60.0))
        self.client = options.get("client") or make_client(self.timeouts)
        self._api_key = api_key
        self._repeats = options.get("repeats", 2)
        self._backoff = options.get("backoff", 0.25)
        self._sign = options.get("sign")

    @property
    def is_of_openai(self) -> bool:
        """Return whether the server is OpenAI's own."""
        return is_of_openai(self.base_url)

    def url(self, path: str) -> str:
        """Return the URL of an operation."""
        return f"{self.base_url}/{path}"

    async def read_key(self) -> str:
        """Return the key, which may be empty. Raises ModelError if it cannot be sent."""
        key = await self._api_key() if callable(self._api_key) else self._api_key
        key = (key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ModelError(f"{self.settings.key} contains characters that cannot be sent. Set it again")
        return key

    async def connect(self) -> None:
        """Read the key, and open a connection. Raises TransportError, and what `read_key` does."""
        await self.read_key()
        await self.client.connect(self.base_url)

    @asynccontextmanager
    async def open(
        self, method: str, url: str, content: bytes = b"", accept: str = "application/json"
    ) -> AsyncIterator[ServerResponse]:
        """Send a request, and yield its response as soon as its headers have arrived.

        Raises:
            ProviderFailure: there is no response, or its body ends too early, which the reader of the body sees, too.
            ModelError: the key cannot be sent.
        """
        key = await self.read_key()
        headers = {"Accept": accept, "Content-Type": "application/json", **ALWAYS}
        if self._sign is not None:
            headers |= await self._sign(method, url, content)
        elif key:
            headers["Authorization"] = f"Bearer {key}"
        try:
            async with self.client.stream(method, url, headers, content) as stream:
                self._check_encoding(stream)
                yield ServerResponse(stream, ErrorReader(self.settings, key))
        except REQUEST_ERRORS as error:
            raise self.failure(error) from error

    async def post(self, path: str, body: Any) -> Any:
        """Send JSON, and return the JSON of the answer. Raises the errors of `stint.domain.errors`."""
        content, repeated = json.dumps(body).encode(), 0
        while True:
            try:
                return await self._post_once(path, content)
            except ProviderFailure as failure:
                if failure.at_once:
                    continue
                delay = self.retry_delay(failure, repeated)
                if delay is None:
                    raise failure.error from failure.__cause__
            repeated += 1
            await asyncio.sleep(delay)

    async def _post_once(self, path: str, content: bytes) -> Any:
        async with self.open("POST", self.url(path), content) as response:
            await response.check_success()
            body = await response.stream.read()
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            message = f"The model's provider sent no valid JSON (check {self.settings.base_url})"
            raise ProviderFailure(ModelError(message, upstream_status=response.status)) from error

    def _check_encoding(self, stream: HttpStream) -> None:
        encoding = stream.headers.get("content-encoding", "identity").lower()
        if 200 <= stream.status < 300 and encoding not in ("", "identity"):
            message = f"sent a body with the encoding {shorten(encoding)}, which was not requested"
            raise ProviderFailure(ModelError(f"The model's provider {message}", upstream_status=stream.status))

    def failure(self, error: RequestError) -> ProviderFailure:
        """Return the failure of a request without a complete answer."""
        if not isinstance(error, TransportError):
            return ProviderFailure(self._explain(error), of_connection=True)
        # Silence has taken the whole time that a caller waits.
        may_repeat = not (error.sent and error.timed_out)
        return ProviderFailure(self._explain(error), may_repeat=may_repeat, at_once=error.stale, of_connection=True)

    def _explain(self, error: RequestError) -> ModelError:
        setting = self.settings.base_url
        if isinstance(error, InvalidURL):  # which may have a password at any place
            return ModelUnreachable(f"The URL of the model's provider is not a valid URL: {error} (check {setting})")
        server = split_url(self.base_url).origin.authority
        match error:
            case InvalidProxy():
                return ModelUnreachable(f"Cannot reach the model's provider at {server}: {error}")
            case EventTooLarge():
                return ModelError(f"The model's provider at {server} sent too much: {error}")
            case TransportError(sent=False, timed_out=True):
                reason = f"no connection within {self.timeouts.connect:g} s"
                return ModelUnreachable(f"Cannot reach the model's provider at {server}: {reason} (check {setting})")
            case TransportError(sent=False, __cause__=cause):
                return ModelUnreachable(f"Cannot reach the model's provider at {server}: {cause} (check {setting})")
            case TransportError(timed_out=True):
                return ModelError(f"The model's provider at {server} sent nothing for {self.timeouts.silence:g} s")
            case TransportError(__cause__=MalformedResponse()):
                return ModelError(f"The model's provider at {server} sent no valid HTTP response: {error}")
            case _:
                return ModelError(f"The model's provider at {server} closed the connection")

    def retry_delay(self, failure: ProviderFailure, repeated: int) -> float | None:
        """Return the seconds to wait before a retry; None if the call is not retried."""
        wait = failure.refusal.retry_after if failure.refusal is not None else None
        if not failure.may_repeat or repeated >= self._repeats or (wait or 0.0) > LONGEST_WAIT:
            return None
        return wait or self._backoff * 2**repeated * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
