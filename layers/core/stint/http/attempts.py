"""Attempts of clients: the fingerprint that all attempts of a request have, and their count.

Clients of OpenAI and Llama Stack retry a request by themselves, without an idempotency key, but with the number of the
attempt (`x-stainless-retry-count`). The first attempt may have started a run whose answer was lost on its way. Its
record has the fingerprint of its request; a retry with the same fingerprint gets that run instead of a second one:

    part of the fingerprint             because
    caller, end user, user agent        others may send the same body
    source address                      without authentication all callers are one; otherwise it may change in between
    method, path, query, Llama Stack    a body means different things at different routes
    hash of the body                    without the boundary of a form, which clients make anew for each attempt

Two requests that a client means to be different have the same fingerprint if they are equal, so it counts only together
with a number of attempts above 0 (`RequestAttempt.is_retry`).
"""

import json
import re
from hashlib import sha256

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stint.caller import NO_ATTEMPT, RequestAttempt, find_end_user, require_principal, set_attempt
from stint.domain.json_text import parse_json
from stint.domain.principals import ANONYMOUS

RETRY_COUNT = "x-stainless-retry-count"
COUNT = re.compile(r"[0-9]{1,3}")
BOUNDARY = re.compile(r'multipart/[^;]+;.*?boundary="?([^";]{1,70})', re.IGNORECASE)
FINGERPRINT_CHARACTERS = 32

CALLS = frozenset({"tools/call", "SendMessage", "SendStreamingMessage", "CancelTask"})
"""The methods of JSON-RPC that do something. Clients may send one key with all their requests, so others have none."""

CHANGING = ("progressToken", "traceparent", "tracestate", "baggage")
"""The keys of `params._meta` that clients of MCP make anew for each attempt."""


async def handle_attempt(handle: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Handle a request, whose attempt is then known to the services."""
    body, receive_again = await read_body(receive)
    set_attempt(RequestAttempt(fingerprint_of(scope, body), retry_count_of(scope)))
    del body  # a large one would take memory until the end of the request
    try:
        await handle(scope, receive_again, send)
    finally:
        set_attempt(NO_ATTEMPT)


async def read_body(receive: Receive) -> tuple[bytes, Receive]:
    """Return the body of a request, whose size was checked before, and a function that receives it again."""
    messages = [await receive()]
    while messages[-1].get("more_body", False):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)

    async def receive_again() -> Message:
        return messages.pop(0) if messages else await receive()

    return body, receive_again


def receive_body(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives a body, and then what follows it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def fingerprint_of(scope: Scope, body: bytes) -> str:
    """Return a text that all attempts of a request have, and that requests of others do not have."""
    headers = Headers(scope=scope)
    source = source_of(scope) if require_principal() == ANONYMOUS else ""
    place = [source, headers.get("user-agent", ""), *place_of_request(scope), hash_body(headers, body)]
    return sha256(json.dumps(place).encode()).hexdigest()[:FINGERPRINT_CHARACTERS]


def place_of_request(scope: Scope) -> list[str | bool | None]:
    """Return the caller, the end user and the route of a request. The tenant leads all keys of the store."""
    caller = require_principal()
    path, query = scope["path"].removeprefix(scope.get("root_path", "")), scope["query_string"].decode("latin-1")
    where = [scope["method"], path, query, bool(scope.get("stint.llama_stack"))]
    return [caller.key_id, caller.subject, find_end_user(), *where]


def hash_body(headers: Headers, body: bytes) -> str:
    """Return the SHA-256 of a body. The boundary of a form is left out, because clients make a new one each time."""
    found = BOUNDARY.match(headers.get("content-type", ""))
    stable = body.replace(found.group(1).encode("latin-1"), b"") if found else body
    return sha256(stable).hexdigest()


def hash_call(body: bytes) -> str | None:
    """Return the SHA-256 of a call by JSON-RPC without its id and all else that differs in each attempt of a client.

    None for a call that only reads, or is malformed.
    """
    try:
        call = parse_json(body)
    except ValueError:
        return None
    if not isinstance(call, dict) or not isinstance(method := call.get("method"), str) or method not in CALLS:
        return None
    call.pop("id", None)
    params = call.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict):
        for key in CHANGING:
            meta.pop(key, None)
    return sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()


def source_of(scope: Scope) -> str:
    """Return the address that sent a request. API Gateway's is read from its event, which a caller cannot write."""
    context = (scope.get("aws.event") or {}).get("requestContext")
    identity = context.get("identity") if isinstance(context, dict) else None
    if isinstance(identity, dict):
        return str(identity.get("sourceIp", ""))
    client = scope.get("client")
    return str(client[0]) if client else ""


def retry_count_of(scope: Scope) -> int:
    """Return the number of attempts before this one, 0 if the client does not say so."""
    value = Headers(scope=scope).get(RETRY_COUNT, "")
    return int(value) if COUNT.fullmatch(value) else 0
