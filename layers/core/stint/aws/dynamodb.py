"""The client of DynamoDB.

A call has up to three attempts (`Retries.max_attempts`) with one id. After each failure, `_plan_retry` decides:

  failure                                            the next attempt
  signature refused for its time, first time         at once, with the server's time
  credentials refused, first time                    at once, if there are other ones
  throttled                                          after a backoff of up to 1 s, doubled each time
  5xx, timeout, cut or damaged answer, no connection after a backoff of up to 25 ms, doubled each time
  reused connection closed without a byte            at once, on a new connection
  no usable credentials                              none
  another error, the last attempt, or no quota left  none

A write whose answer is lost may have taken effect. The next attempt of it may then fail because of its own effect, for
example with a failed condition. So each error has `unsure`: whether this attempt or an earlier one may have taken
effect. The store decides by it whether a record that it finds may be its own.
"""

import asyncio
import json
import sys
import time
import uuid
import zlib
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic_core import from_json

from stint.aws.connector import Connector
from stint.aws.credentials import (
    REFUSED_CREDENTIALS,
    Credentials,
    CredentialsError,
    CredentialsSource,
    RefreshedCredentials,
)
from stint.aws.credentials_chain import choose_provider
from stint.aws.endpoints import dynamodb_endpoint
from stint.aws.environment import AwsEnvironment
from stint.aws.errors import DynamoDBError as DynamoDBError
from stint.aws.errors import NoResponse as NoResponse
from stint.aws.http1 import HttpResponse
from stint.aws.pool import CONNECTIONS, ConnectionPools, TransportError
from stint.aws.retries import Retries, is_throttled, is_transient, retry_after
from stint.aws.signature import SignatureClock, amz_date, authorize
from stint.dataclasses import dataclass

API = "DynamoDB_20120810"
CONTENT_TYPE = "application/x-amz-json-1.0"
USER_AGENT = f"stint lang/python#{sys.version_info.major}.{sys.version_info.minor}"

CANONICAL = "The Canonical String"
"""The rest of a message about a wrong signature: AWS quotes the signed headers, with the session token."""


@dataclass(slots=True)
class Call:
    """The state of a call between its attempts."""

    operation: str
    """The name of DynamoDB's operation."""
    body: bytes
    """The request as JSON. It is the same in all attempts."""
    credentials: Credentials | None
    """Credentials of this call only; None: those of the client."""
    id: str
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


class DynamoDBClient:
    """Client for any number of event loops and threads. Each event loop has its own connections.

    `credentials` replace those of the environment. `now` is the time of signatures, and `clock` measures timeouts.
    """

    def __init__(
        self,
        environment: AwsEnvironment,
        *,
        credentials: CredentialsSource | None = None,
        retries: Retries | None = None,
        connect_timeout: float = 2.0,
        read_timeout: float = 5.0,
        connections: int = CONNECTIONS,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        endpoint = dynamodb_endpoint(environment)
        proxy = environment.proxy(endpoint.scheme, endpoint.host, endpoint.port)
        bundle = environment.get("AWS_CA_BUNDLE")
        connector = Connector(endpoint, proxy, ca_bundle=bundle, timeout=connect_timeout, clock=clock)
        self._pools = ConnectionPools(connector.connect, size=connections, clock=clock)
        self._credentials = credentials or RefreshedCredentials(choose_provider(environment, sleep), now)
        self._region, self._host = environment.region, endpoint.authority
        self._start = f"POST {connector.target} HTTP/1.1\r\n{connector.headers}user-agent: {USER_AGENT}\r\n"
        self._retries = retries or Retries()
        self._read_timeout, self._sleep = read_timeout, sleep
        self._signature_clock = SignatureClock(now)

    async def call(
        self, operation: str, request: Mapping[str, Any], *, credentials: Credentials | None = None
    ) -> dict[str, Any]:
        """Call an operation with DynamoDB's JSON, whose binary values are bytes, and return the response.

        Raises DynamoDBError or NoResponse after the last attempt. The credentials replace those of the environment.
        """
        call = Call(operation, encode_request(request), credentials, str(uuid.uuid4()))
        while True:
            call.attempt += 1
            try:
                document = await self._try(call)
            except (DynamoDBError, NoResponse) as error:
                # The last error has the doubt of all attempts: a sure refusal after a lost answer may be due to the
                # lost one.
                call.unsure = error.unsure = call.unsure or error.unsure
                delay = await self._plan_retry(call, error)
                if delay is None:
                    raise
            else:
                self._retries.succeed(call.cost)
                return document
            if delay:
                await self._sleep(delay)

    async def close(self) -> None:
        """Close the connections of the running event loop, and load the credentials again for the next call."""
        self._credentials.forget()
        await self._pools.close()

    async def _try(self, call: Call) -> dict[str, Any]:
        """Make an attempt."""
        try:
            call.used = call.credentials or await self._credentials.get()
        except CredentialsError as error:
            raise NoResponse(str(error), unsure=False) from error
        request = self._head(call, call.used) + call.body
        try:
            response = await self._pools.send(request, self._read_timeout, after=call.lost)
        except TransportError as error:
            call.lost = error
            raise NoResponse(str(error), unsure=error.sent) from error
        call.lost = None
        return decode_response(response)

    def _head(self, call: Call, credentials: Credentials) -> bytes:
        call.signed_at = self._signature_clock()
        headers = {
            "content-type": CONTENT_TYPE,
            "host": self._host,
            "x-amz-date": amz_date(call.signed_at),
            "x-amz-security-token": credentials.token,
            "x-amz-target": f"{API}.{call.operation}",
        }
        # The headers above are in alphabetical order, as the signature needs them.
        if not credentials.token:
            del headers["x-amz-security-token"]
        authorization = authorize(credentials, headers, call.body, region=self._region)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = (
            f"{self._start}{lines}authorization: {authorization}\r\namz-sdk-invocation-id: {call.id}\r\n"
            f"amz-sdk-request: attempt={call.attempt}; max={self._retries.max_attempts}\r\n"
            f"content-length: {len(call.body)}\r\n\r\n"
        )
        return head.encode("latin-1")

    async def _plan_retry(self, call: Call, error: DynamoDBError | NoResponse) -> float | None:
        """Return the time until the next attempt, or None if there is to be none."""
        if call.attempt >= self._retries.max_attempts:
            return None
        throttled, after = False, 0.0
        if isinstance(error, DynamoDBError):
            # Neither waits nor takes tokens of the quota: the cause is removed, so the service is not the one that is
            # in trouble.
            if self._correct_clock(call, error) or await self._renew_credentials(call, error):
                return 0
            throttled = is_throttled(error.code, error.status)
            if not throttled and not is_transient(error.code, error.status):
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

    def _correct_clock(self, call: Call, error: DynamoDBError) -> bool:
        """Take over the time of the server if the signature was refused for that of the client, once per call."""
        if call.corrected:
            return False
        call.corrected = self._signature_clock.correct(error.code, error.headers, call.signed_at)
        return call.corrected

    async def _renew_credentials(self, call: Call, error: DynamoDBError) -> bool:
        """Load the credentials again if AWS refused them, once per call. Return whether they are others."""
        if call.renewed or call.credentials is not None or call.used is None:
            return False
        # Credentials of a call are its caller's; nothing here can replace them.
        call.renewed = error.code in REFUSED_CREDENTIALS
        return call.renewed and await self._credentials.renew(call.used)


def encode_request(request: Mapping[str, Any]) -> bytes:
    """Return the body of a request, whose binary values are bytes."""
    return _encode(request).encode()


def decode_response(response: HttpResponse) -> dict[str, Any]:
    """Return the document of a successful response.

    Raises NoResponse for a damaged one, and DynamoDBError for an error.
    """
    # DynamoDB sends the checksum with each response. A damaged answer of a write does not tell whether it took effect.
    checksum = response.headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(zlib.crc32(response.body)):
        raise NoResponse("The response does not match its checksum.", unsure=True)
    document = _parse(response)
    if response.status == 200:
        if document is None:
            raise NoResponse("The response is not a JSON object.", unsure=True)
        return document
    raise _error(response, document or {})


def _parse(response: HttpResponse) -> dict[str, Any] | None:
    """Return the JSON object of a response, or None."""
    try:
        # The hook is called for each object, and most documents have no binary value.
        document = _decode(response.body.decode()) if b'"B' in response.body else from_json(response.body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _error(response: HttpResponse, document: dict[str, Any]) -> DynamoDBError:
    kind = document.get("__type") or response.headers.get("x-amzn-errortype", "").split(":")[0]
    item, reasons = document.get("Item"), document.get("CancellationReasons")
    return DynamoDBError(
        # The name of an error has its service in front:
        # `com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException`.
        str(kind).rpartition("#")[2] or str(response.status),
        response.status,
        str(document.get("message") or document.get("Message") or "").partition(CANONICAL)[0].rstrip(),
        item=item if isinstance(item, dict) else None,
        reasons=reasons if isinstance(reasons, list) else (),
        headers=response.headers,
    )


def _encode_binary(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not a type of DynamoDB's JSON.")


def _decode_binary(value: dict[str, Any]) -> dict[str, Any]:
    """Decode the binary value or set of binary values in `{"B": "..."}` or `{"BS": ["..."]}`.

    An attribute or table of that name has no text as its value.
    """
    if "B" in value:
        if len(value) == 1 and isinstance(value["B"], str):
            value["B"] = b64decode(value["B"])
    elif len(value) == 1 and "BS" in value and isinstance(value["BS"], list):
        value["BS"] = [b64decode(each) if isinstance(each, str) else each for each in value["BS"]]
    return value


_encode = json.JSONEncoder(default=_encode_binary, separators=(",", ":")).encode
_decode = json.JSONDecoder(object_hook=_decode_binary).decode
