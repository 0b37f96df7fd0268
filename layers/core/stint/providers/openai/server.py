"""Requests to a server of OpenAI's API, or one that is compatible with it.

All of them reach the network through `OpenAIServer.open`.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypedDict, Unpack

import httpx
from httpx_sse import EventSource

from stint.dataclasses import dataclass
from stint.domain.errors import ModelError, ModelUnreachable
from stint.providers.openai.addresses import is_of_openai
from stint.providers.openai.errors import ErrorReader, ProviderFailure, ServerSettings

LONGEST_WAIT = 2.0
NOT_A_URL = (httpx.InvalidURL, UnicodeError)
"""The errors of httpx for an invalid base URL or redirect, and idna's for an invalid host in Punycode."""
NOT_REPEATED = (httpx.ReadTimeout, httpx.WriteTimeout, httpx.UnsupportedProtocol, *NOT_A_URL)
"""Errors that a retry meets again, or that have taken the whole time that a caller waits."""
REQUEST_ERRORS = (httpx.RequestError, *NOT_A_URL)
DRAIN_SECONDS = 0.2
"""Longest wait for the end of a body whose answer is complete, so that a server which keeps it open delays nothing."""
MAX_ERROR_BYTES = 65_536
DONE = "[DONE]"

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
    client: httpx.AsyncClient | None
    """A client for all requests; None for one of the server's own in each event loop."""
    sign: SignRequest | None
    """Signs requests, which then have no key."""


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """The response of a server, whose body has not been read. `errors` reads an error in it."""

    response: httpx.Response
    errors: ErrorReader

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def content_type(self) -> str:
        """Return the media type without parameters, or an empty text."""
        return str(self.response.headers.get("content-type", "")).partition(";")[0].strip()

    async def read(self) -> str:
        """Return the body, decoded as UTF-8 whatever is declared: httpx would use any codec of Python."""
        return (await self.response.aread()).decode(errors="replace")

    async def check_success(self) -> None:
        """Raise ProviderFailure if the status is an error, of whose body the beginning counts."""
        if self.response.is_success:
            return
        body = bytearray()
        async for part in self.response.aiter_bytes():
            body += part
            if len(body) >= MAX_ERROR_BYTES:
                break
        text = body[:MAX_ERROR_BYTES].decode(errors="replace")
        raise self.errors.read(self.status, text, self.response.headers)

    async def events(self) -> AsyncGenerator[str, None]:
        """Yield the data of each server-sent event, up to the end of the body or `DONE`, which is the last one."""
        self.response.encoding = "utf-8"
        async with aclosing(EventSource(self.response).aiter_sse()) as events:
            async for event in events:
                if event.data.strip() == DONE:
                    await drain(events)
                    yield DONE
                    return
                if event.data:
                    yield event.data


async def drain(events: AsyncGenerator[Any, None]) -> None:
    """Read the body to its end, so that the connection can be reused."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in events:
                pass
    except (TimeoutError, httpx.RequestError):
        return


LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=55.0)
"""The callers limit the calls at once. Load balancers and proxies close idle connections after 60 seconds, mostly."""


class Connections:
    """The client of each event loop, because connections cannot be used in another one."""

    def __init__(self, client: httpx.AsyncClient | None = None) -> None:
        self._given = client
        self._own: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None

    def client(self) -> httpx.AsyncClient:
        """Return the client of this event loop, or the one that was passed in."""
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if self._own is None or self._own[0] is not loop:
            self._own = (loop, httpx.AsyncClient(limits=LIMITS))
        return self._own[1]

    async def aclose(self) -> None:
        """Close the connections, unless the client was passed in."""
        if self._own is not None:
            _, client = self._own
            self._own = None
            await client.aclose()


class ConnectionTrace:
    """The events of one request, from httpcore: whether it was sent on an idle connection, and answered."""

    def __init__(self) -> None:
        self._is_new = self._is_sent = self._is_answered = False

    async def __call__(self, event: str, _: dict[str, Any]) -> None:
        self._is_new |= event.startswith("connection.")
        self._is_sent |= event.endswith("send_request_headers.started")
        self._is_answered |= event.endswith("receive_response_headers.complete")

    def has_lost_idle_connection(self, error: Exception) -> bool:
        """Return whether a request failed since its connection had been dropped, unnoticed, while it was idle.

        Servers and hosts between do so, also while this process is frozen.
        """
        is_lost = isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)
        return is_lost and self._is_sent and not (self._is_new or self._is_answered)


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
        self.timeout = httpx.Timeout(options.get("stall_timeout", 60.0), connect=options.get("connect_timeout", 5.0))
        self.connections = Connections(options.get("client"))
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

    @asynccontextmanager
    async def open(
        self, method: str, url: str, content: bytes = b"", accept: str = "application/json"
    ) -> AsyncIterator[ServerResponse]:
        """Send a request, and yield its response as soon as its headers have arrived.

        Raises:
            ProviderFailure: there is no response, or its body ends too early, which the reader of the body sees, too.
            ModelError: the key cannot be sent.
        """
        key, trace = await self.read_key(), ConnectionTrace()
        headers = {"Accept": accept, "Content-Type": "application/json"}
        if self._sign is not None:
            headers |= await self._sign(method, url, content)
        elif key:
            headers["Authorization"] = f"Bearer {key}"
        options: dict[str, Any] = {"headers": headers, "timeout": self.timeout, "extensions": {"trace": trace}}
        try:
            async with self.connections.client().stream(method, url, content=content, **options) as response:
                yield ServerResponse(response, ErrorReader(self.settings, key))
        except REQUEST_ERRORS as error:
            raise self.failure(error, trace) from error

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
            body = await response.response.aread()
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            message = f"The model's provider sent no valid JSON (check {self.settings.base_url})"
            raise ProviderFailure(ModelError(message, upstream_status=response.status)) from error

    def failure(
        self, error: httpx.RequestError | httpx.InvalidURL | UnicodeError, trace: ConnectionTrace
    ) -> ProviderFailure:
        """Return the failure of a request without an answer."""
        may_repeat = not isinstance(error, NOT_REPEATED)
        at_once = trace.has_lost_idle_connection(error)
        return ProviderFailure(self._explain(error), may_repeat=may_repeat, at_once=at_once, of_connection=True)

    def _explain(self, error: httpx.RequestError | httpx.InvalidURL | UnicodeError) -> ModelError:
        server = self.base_url.partition("://")[2].partition("/")[0].rpartition("@")[2] or self.base_url
        setting = self.settings.base_url
        match error:
            case httpx.ReadTimeout() | httpx.WriteTimeout():
                return ModelError(f"The model's provider at {server} sent nothing for {self.timeout.read:g} s")
            case UnicodeError():
                return ModelError(f"{server}, or its redirect, is not a valid URL (check {setting})")
            case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.UnsupportedProtocol() | httpx.InvalidURL():
                reason = str(error) or f"no connection within {self.timeout.connect:g} s"
                return ModelUnreachable(f"Cannot reach the model's provider at {server}: {reason} (check {setting})")
            case _:
                return ModelError(f"The model's provider at {server} closed the connection ({type(error).__name__})")

    def retry_delay(self, failure: ProviderFailure, repeated: int) -> float | None:
        """Return the seconds to wait before a retry; None if the call is not retried."""
        wait = failure.refusal.retry_after if failure.refusal is not None else None
        if not failure.may_repeat or repeated >= self._repeats or (wait or 0.0) > LONGEST_WAIT:
            return None
        return wait or self._backoff * 2**repeated * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
