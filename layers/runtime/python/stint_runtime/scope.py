"""Conversion of an API Gateway REST proxy event to an ASGI request.

Event: https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
Scope: https://asgi.readthedocs.io/en/latest/specs/www.html
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, TypeGuard
from urllib.parse import quote, unquote, urlencode

from stint_runtime.context import LambdaContext

Event = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]

_PARAMETER = re.compile(r"\{([^{}+]+)\+?\}")
_PATH_CHARACTERS = "/%:@!$&'()*+,;=~-._"


def is_proxy_event(event: object) -> TypeGuard[Event]:
    """Return whether an event is a REST proxy event (payload version 1)."""
    return (
        isinstance(event, dict)
        and isinstance(event.get("requestContext"), dict)
        and isinstance(event.get("httpMethod"), str)
        and isinstance(event.get("path"), str)
    )


def http_scope(event: Event, context: LambdaContext) -> Scope:
    """Return the ASGI scope.

    `root_path` is the mount path of the API: the stage in an execute-api URL, the base path of a custom domain. As
    ASGI requires, `path` contains `root_path`. So routes match without the mount path, and absolute URLs and FastAPI's
    documentation pages include it.
    """
    headers = list(_headers(event))
    lookup = dict(reversed(headers))
    root_path, raw_path = _mount(event)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": event["httpMethod"].upper(),
        "scheme": lookup.get(b"x-forwarded-proto", b"https").decode("latin-1"),
        "path": unquote(raw_path) or "/",
        "raw_path": quote(raw_path, safe=_PATH_CHARACTERS).encode("ascii"),
        "root_path": root_path,
        "query_string": _query_string(event),
        "headers": headers,
        "client": _client(event),
        "server": _server(lookup),
        "aws.event": event,
        "aws.context": context,
    }


def take_body(event: Event) -> bytes:
    """Remove the body from the event, and return it as bytes. API Gateway sends binary bodies in base64."""
    body = event.pop("body", None) or ""
    return b64decode(body) if event.get("isBase64Encoded") else body.encode()


def _headers(event: Event) -> Iterator[tuple[bytes, bytes]]:
    for name, value in _pairs(event.get("multiValueHeaders"), event.get("headers")):
        yield name.lower().encode("latin-1"), _header_value(value)


def _header_value(value: str) -> bytes:
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        # API Gateway decodes UTF-8 that a client has sent in a header.
        return value.encode()


def _query_string(event: Event) -> bytes:
    """Return the query string; the values are encoded because version 1 events have them decoded."""
    pairs = _pairs(event.get("multiValueQueryStringParameters"), event.get("queryStringParameters"))
    return urlencode(list(pairs)).encode("ascii")


def _pairs(multiple: Mapping[str, list[str]] | None, single: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    if not multiple:
        yield from (single or {}).items()
        return
    for name, values in multiple.items():
        for value in values or ():
            yield name, value


def _mount(event: Event) -> tuple[str, str]:
    """Return root path and raw path. Only the request context's path contains the stage.

    The root path is the part before the matched resource, or before `path` if the event's parameters do not fill the
    resource.
    """
    parameters = event.get("pathParameters") or {}
    route = _PARAMETER.sub(lambda match: parameters.get(match[1]) or match[0], event.get("resource") or "")
    raw = event["requestContext"].get("path") or event["path"]
    path = unquote(raw).rstrip("/")
    for end in (unquote(route or event["path"]).rstrip("/"), unquote(event["path"]).rstrip("/")):
        if path.endswith(end):
            return path.removesuffix(end), raw
    return "", event["path"]


def _client(event: Event) -> tuple[str, int] | None:
    address = (event["requestContext"].get("identity") or {}).get("sourceIp")
    return (address, 0) if address else None


def _server(headers: Mapping[bytes, bytes]) -> tuple[str, int | None] | None:
    host, _, port = headers.get(b"host", b"").decode("latin-1").partition(":")
    port = port or headers.get(b"x-forwarded-port", b"443").decode("latin-1")
    return (host, int(port) if port.isdecimal() else None) if host else None
