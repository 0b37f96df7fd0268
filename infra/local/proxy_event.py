"""The event of a Lambda proxy integration for an HTTP request (REST API, version 1).

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

import base64
import secrets
import time
import uuid
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl

from infra.local.intrinsics import ACCOUNT
from infra.local.routing import Match

# Hop-by-hop headers, https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"})
API_ID = "local"
_IDENTITY = (
    *("accessKey", "accountId", "apiKey", "apiKeyId", "caller", "cognitoAuthenticationProvider"),
    *("cognitoAuthenticationType", "cognitoIdentityId", "cognitoIdentityPoolId", "principalOrgId", "user", "userArn"),
)


@dataclass(frozen=True)
class HttpRequest:
    """An HTTP request."""

    method: str
    path: str
    """The raw path without the stage."""
    base_path: str
    """The stage's part of the path, empty if the request had none."""
    query: str
    """The raw query."""
    headers: list[tuple[str, str]]
    body: bytes
    client: str
    """The address of the client."""
    host: str
    """The value of the Host header."""
    port: int
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    trace_id: str = field(default_factory=lambda: f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)}")

    def header(self, name: str) -> str:
        """Return the last value of a header, or an empty string if it was not sent."""
        return next((value for key, value in reversed(self.headers) if key.lower() == name), "")


def make_event(request: HttpRequest, match: Match, stage: str, binary_media_types: tuple[str, ...]) -> dict[str, Any]:
    """Return the proxy event. A body of a binary media type is encoded in base64."""
    headers = group(forwarded(request))
    query = group(parse_qsl(request.query, keep_blank_values=True))
    binary = is_binary(request.header("content-type"), binary_media_types)
    body = base64.b64encode(request.body) if binary else request.body
    return {
        "resource": match.route.path,
        "path": request.path,
        "httpMethod": request.method,
        "headers": last(headers),
        "multiValueHeaders": headers,
        "queryStringParameters": last(query) or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": match.path_parameters or None,
        "stageVariables": None,
        "requestContext": request_context(request, match.route.path, stage),
        "body": body.decode("utf-8", "replace") if body else None,
        "isBase64Encoded": bool(binary and body),
    }


def authorizer_event(request: HttpRequest, match: Match, stage: str, region: str) -> dict[str, Any]:
    """Return the event of a Lambda authorizer of type REQUEST, which has no body. Its absent parts are empty objects.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-lambda-authorizer-input.html
    """
    event = make_event(request, match, stage, ())
    del event["body"], event["isBase64Encoded"]
    path = request.path.removeprefix("/")
    method_arn = f"arn:aws:execute-api:{region}:{ACCOUNT}:{API_ID}/{stage}/{request.method}/{path}"
    parts = {name: value if value is not None else {} for name, value in event.items()}
    return {"type": "REQUEST", "methodArn": method_arn, **parts}


def request_context(request: HttpRequest, resource: str, stage: str) -> dict[str, Any]:
    identity: dict[str, Any] = dict.fromkeys(_IDENTITY)
    identity |= {"sourceIp": request.client, "userAgent": request.header("user-agent") or None}
    now = time.time()
    return {
        "accountId": ACCOUNT,
        "apiId": API_ID,
        "deploymentId": "local",
        "domainName": request.host,
        "domainPrefix": request.host.split(".")[0].split(":")[0],
        "extendedRequestId": request.request_id,
        "httpMethod": request.method,
        "identity": identity,
        "path": request.base_path + request.path,
        "protocol": "HTTP/1.1",
        "requestId": request.request_id,
        "requestTime": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
        "requestTimeEpoch": int(now * 1000),
        "resourceId": "local",
        "resourcePath": resource,
        "stage": stage,
    }


def forwarded(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the client's headers without hop-by-hop headers, and the headers that API Gateway adds."""
    sent = [(name, value) for name, value in request.headers if name.lower() not in HOP_BY_HOP | {"x-amzn-trace-id"}]
    previous = request.header("x-forwarded-for")
    kept = [(name, value) for name, value in sent if not name.lower().startswith("x-forwarded-")]
    return [
        *kept,
        ("X-Amzn-Trace-Id", request.header("x-amzn-trace-id") or request.trace_id),
        ("X-Forwarded-For", f"{previous}, {request.client}" if previous else request.client),
        ("X-Forwarded-Port", str(request.port)),
        ("X-Forwarded-Proto", "http"),
    ]


def group(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return all values of each name, in order."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def last(values: dict[str, list[str]]) -> dict[str, str]:
    """Return the last value of each name."""
    return {name: several[-1] for name, several in values.items()}


def is_binary(content_type: str, binary_media_types: tuple[str, ...]) -> bool:
    """Return whether the API declares this media type as binary; `*/*` and `image/*` are wildcards."""
    message = Message()
    message["content-type"] = content_type or "application/json"
    media_type = message.get_content_type()
    return not {media_type, f"{media_type.split('/')[0]}/*", "*/*"}.isdisjoint(binary_media_types)
