"""Calls of an AWS service: credentials, signatures, connections and retries.

A call has up to three attempts (`Retries.max_attempts`) with one id. After each failure, `_plan_retry` decides:

  failure                                            the next attempt
  signature refused for its time, first time         at once, with the server's time
  credentials refused, first time                    at once, if there are other ones
  throttled                                          after a backoff of up to 1 s, doubled each time, unless the caller
                                                     has another place (`repeat_throttled`)
  5xx, timeout, cut or damaged answer, no connection after a backoff of up to 25 ms, doubled each time
  reused connection closed without a byte            at once, on a new connection
  no usable credentials                              none
  another error, the last attempt, or no quota left  none

A write whose answer is lost may have taken effect. The next attempt of it may then fail because of its own effect, for
example with a failed condition. So each error has `unsure`: whether this attempt or an earlier one may have taken
effect. The store decides by it whether a record that it finds may be its own.
"""

import asyncio
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from os import urandom
from typing import Generic, TypeVar

from stint.aws.credentials import (
    REFUSED_CREDENTIALS,
    Credentials,
    CredentialsError,
    CredentialsSource,
    RefreshedCredentials,
)
from stint.aws.credentials_chain import choose_provider
from stint.aws.environment import AwsEnvironment
from stint.aws.errors import NoResponse, ServiceError
from stint.aws.retries import Retries, is_throttled, is_transient, retry_after
from stint.aws.signature import SignatureClock
from stint.dataclasses import dataclass, field
from stint.http1.connector import Connector
from stint.http1.parser import BODY_LIMIT, HttpResponse
from stint.http1.pool import CONNECTIONS, ConnectionPools, PoolOptions, TransportError
from stint.http1.urls import Origin

T = TypeVar("T")
USER_AGENT = f"stint lang/python#{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class ClientOptions:
    """Options of a client. `now` is the time of signatures, and `clock` measures timeouts, which are in seconds."""

    retries: Retries | None = None
    connect_timeout: float = 2.0
    read_timeout: float = 5.0
    connections: int = CONNECTIONS
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


def new_uuid() -> str:
    """Return the text of a random UUID (version 4, RFC 9562) in one call; `uuid` takes four, six times in a turn."""
    digits = urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


@dataclass(slots=True)
class Call:
    """The state of a call between its attempts."""

    operation: str
    """The name of the operation, or the path of an object."""
    body: bytes
    """The body of the request. It is the same in all attempts."""
    credentials: Credentials | None = None
    """Credentials of this call only; None: those of the client."""
    fields: str = ""
    """Headers that are not signed, each with its line break."""
    repeat_throttled: bool = True
    """Whether there is another attempt after one that was throttled."""
    id: str = field(default_factory=new_uuid)
    """The same for all attempts, so that AWS can recognize them as one call."""
    attempt: int = 0
    """Number of the attempt, from 1; 0 before the first one."""
    used: Credentials | None = None
    """The credentials of the last attempt."""
    signed_at: float = 0.0
    """Time of the last signature, in seconds of the Unix epoch."""
    unsure: bool = False
    """Whether an attempt may have taken effect."""
    lost: TransportError | None = None
    """The error of the last attempt if it had no response."""
    renewed: bool = False
    """Whether the credentials have been renewed, which happens once per call."""
    corrected: bool = False
    """Whether the clock has been corrected, which happens once per call."""
    cost: int = 0
    """Tokens of the retry quota that the last retry took. A success returns them."""


class ServiceClient(ABC, Generic[T]):
    """Client for any number of event loops and threads. Each event loop has its own connections.

    `credentials` replace those of the environment.
    """

    max_body: int | None = BODY_LIMIT
    """Maximum bytes of a response; None: no limit."""

    def __init__(
        self, environment: AwsEnvironment, origin: Origin, credentials: CredentialsSource | None, options: ClientOptions
    ) -> None:
        proxy = environment.proxy(origin.scheme, origin.host, origin.port)
        bundle = environment.get("AWS_CA_BUNDLE")
        connector = Connector(origin, proxy, ca_bundle=bundle, timeout=options.connect_timeout, clock=options.clock)
        self._connector, self._host, self._region = connector, origin.authority, environment.region
        self._pools = ConnectionPools(connector.connect, PoolOptions(size=options.connections, clock=options.clock))
        provider = credentials or RefreshedCredentials(choose_provider(environment, options.sleep), options.now)
        self._credentials = provider
        self._retries = options.retries or Retries()
        self._read_timeout, self._sleep = options.read_timeout, options.sleep
        self._signature_clock = SignatureClock(options.now)

    async def connect(self, count: int) -> None:
        """Open connections and load the credentials before the first call, which meets what fails here."""
        with suppress(TransportError):
            await self._pools.open_ahead(count)
        with suppress(CredentialsError):
            await self._credentials.get()

    async def close(self) -> None:
        """Close the connections of the running event loop, and load the credentials again for the next call."""
        self._credentials.forget()
        await self._pools.close()

    @abstractmethod
    def _encode_head(self, call: Call, credentials: Credentials) -> bytes:
        """Sign an attempt, and return the head of its request."""

    @abstractmethod
    def _decode(self, response: HttpResponse) -> T:
        """Return the result of a successful response. Raises NoResponse for a damaged one, and ServiceError."""

    async def _call(self, call: Call) -> T:
        """Make attempts until one succeeds. Raises ServiceError or NoResponse after the last one."""
        while True:
            call.attempt += 1
            try:
                result = await self._try(call)
            except (ServiceError, NoResponse) as error:
                # The last error has the doubt of all attempts: a sure refusal after a lost answer may be due to the
                # lost one.
                call.unsure = error.unsure = call.unsure or error.unsure
                delay = await self._plan_retry(call, error)
                if delay is None:
                    raise
            else:
                self._retries.succeed(call.cost)
                return result
            if delay:
                await self._sleep(delay)

    async def _try(self, call: Call) -> T:
        """Make an attempt."""
        try:
            call.used = call.credentials or await self._credentials.get()
        except CredentialsError as error:
            raise NoResponse(str(error), unsure=False) from error
        request = self._encode_head(call, call.used) + call.body
        try:
            response = await self._pools.send(request, self._read_timeout, after=call.lost, max_body=self.max_body)
        except TransportError as error:
            call.lost = error
            raise NoResponse(str(error), unsure=error.sent) from error
        call.lost = None
        return self._decode(response)

    async def _plan_retry(self, call: Call, error: ServiceError | NoResponse) -> float | None:
        """Return the time until the next attempt, or None if there is to be none."""
        if call.attempt >= self._retries.max_attempts:
            return None
        throttled, after = False, 0.0
        if isinstance(error, ServiceError):
            # Neither waits nor takes tokens of the quota: the cause is removed, so the service is not the one that is
            # in trouble.
            if self._correct_clock(call, error) or await self._renew_credentials(call, error):
                return 0
            throttled = is_throttled(error.code, error.status)
            if not call.repeat_throttled if throttled else not is_transient(error.code, error.status):
                return None
            after = retry_after(error.headers)
        elif call.lost is not None and call.lost.stale:  # the server had closed the idle connection
            return 0
        # The provider has made its own attempts.
        elif isinstance(error.__cause__, CredentialsError):
            return None
        planned = self._retries.delay(call.attempt, throttled=throttled, after=after)
        if planned is None:
            return None
        call.cost = planned[1]
        return planned[0]

    def _correct_clock(self, call: Call, error: ServiceError) -> bool:
        """Take over the time of the server if the signature was refused for that of the client, once per call."""
        if call.corrected:
            return False
        call.corrected = self._signature_clock.correct(error.code, error.headers, call.signed_at)
        return call.corrected

    async def _renew_credentials(self, call: Call, error: ServiceError) -> bool:
        """Load the credentials again if AWS refused them, once per call. Return whether they are others."""
        if call.renewed or call.credentials is not None or call.used is None:
            return False
        # Credentials of a call are its caller's; nothing here can replace them.
        call.renewed = error.code in REFUSED_CREDENTIALS
        return call.renewed and await self._credentials.renew(call.used)
