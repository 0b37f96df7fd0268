"""The client of DynamoDB.

A write whose answer is lost may have taken effect; see `stint.aws.service_client` for retries and `unsure`.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from stint.aws.credentials import Credentials, CredentialsSource
from stint.aws.endpoints import dynamodb_endpoint
from stint.aws.environment import AwsEnvironment
from stint.aws.errors import DynamoDBError as DynamoDBError
from stint.aws.errors import NoResponse as NoResponse
from stint.aws.service_client import USER_AGENT, Call, ClientOptions, ServiceClient
from stint.aws.signature import amz_date, authorize
from stint.http1.parser import HttpResponse

API = "DynamoDB_20120810"
CONTENT_TYPE = "application/x-amz-json-1.0"

CANONICAL = "The Canonical String"
"""The rest of a message about a wrong signature: AWS quotes the signed headers, with the session token."""


class DynamoDBClient(ServiceClient[dict[str, Any]]):
    """Client for any number of event loops and threads. `credentials` replace those of the environment."""

    def __init__(
        self,
        environment: AwsEnvironment,
        *,
        credentials: CredentialsSource | None = None,
        options: ClientOptions | None = None,
    ) -> None:
        super().__init__(environment, dynamodb_endpoint(environment), credentials, options or ClientOptions())
        start = f"POST {self._connector.target} HTTP/1.1\r\n{self._connector.headers}"
        self._start = f"{start}user-agent: {USER_AGENT}\r\n"

    async def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        credentials: Credentials | None = None,
        repeat_throttled: bool = True,
    ) -> dict[str, Any]:
        """Call an operation with DynamoDB's JSON, whose binary values are bytes, and return the response.

        Raises DynamoDBError or NoResponse after the last attempt. The credentials replace those of the environment.
        Without `repeat_throttled`, a throttled attempt is the last one, because the caller has another place to read.
        """
        call = Call(operation, encode_request(request), credentials, repeat_throttled=repeat_throttled)
        return await self._call(call)

    def _encode_head(self, call: Call, credentials: Credentials) -> bytes:
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

    def _decode(self, response: HttpResponse) -> dict[str, Any]:
        return decode_response(response)


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
