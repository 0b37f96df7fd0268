"""Authorization of requests by the results of Lambda authorizers.

https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-use-lambda-authorizer.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-lambda-authorizer-input.html
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from infra.local.authorizer_result import AuthorizerResult, MalformedResult
from infra.local.functions import FunctionError
from infra.local.gateway_response import (
    AUTHORIZER_FAILED,
    DENIED,
    EXPLICITLY_DENIED,
    INVALID_AUTHORIZER,
    UNAUTHORIZED,
    Refusal,
    Refused,
)
from infra.local.proxy_event import HttpRequest, authorizer_event
from infra.local.routing import Match
from infra.local.security_schemes import Authorizer

Invoke = Callable[[str, bytes], Awaitable[bytes | FunctionError]]
Clock = Callable[[], float]
Context = dict[str, Any]

# A function that fails with this message makes the response a 401 instead of a 500.
_UNAUTHORIZED = "Unauthorized"
_CACHED = 1000

PAGES = frozenset({"/docs", "/docs/reference.css", "/docs/reference.js", "/v1/openapi.json"})
"""The API reference, which needs a credential on a deployed stack. `make run` opens it, so that a browser shows it."""


@dataclass(frozen=True)
class CachedResult:
    """A result of an authorizer, for requests with the same identity until `expires`."""

    result: AuthorizerResult
    expires: float


class Authorization:
    """Decisions about requests, and the cache of the authorizers' results.

    `invoke` runs a function by its name, `clock` returns seconds. Requests with the same identity wait for one
    invocation. `open_pages` are paths that may be read without a credential.
    """

    def __init__(
        self,
        invoke: Invoke,
        region: str,
        stage: str,
        clock: Clock = time.monotonic,
        *,
        open_pages: frozenset[str] = frozenset(),
    ) -> None:
        self._invoke = invoke
        self._region = region
        self._stage = stage
        self._clock = clock
        self._open_pages = open_pages
        self._cache: dict[tuple[str, ...], CachedResult] = {}
        self._locks: dict[tuple[str, ...], asyncio.Lock] = {}

    async def authorize(self, request: HttpRequest, match: Match) -> Context | None:
        """Return `requestContext.authorizer` of the function's event, or None for an open route. Raises Refused."""
        authorizer = match.route.authorizer
        if authorizer is None:
            return None
        identity = tuple(request.header(name) for name in authorizer.headers)
        if not any(identity) and request.method in ("GET", "HEAD") and request.path in self._open_pages:
            return reader_context()
        if not all(identity):
            raise Refused(UNAUTHORIZED)
        event = authorizer_event(request, match, self._stage, self._region)
        began = self._clock()
        result = await self._result(authorizer, (authorizer.name, *identity), event)
        refusal = denial(result, event["methodArn"])
        if refusal is not None:
            raise Refused(refusal)
        milliseconds = int((self._clock() - began) * 1000)
        return {"principalId": result.principal_id, "integrationLatency": milliseconds, **result.context}

    async def _result(self, authorizer: Authorizer, key: tuple[str, ...], event: dict[str, Any]) -> AuthorizerResult:
        if not authorizer.ttl:
            return await self._ask(authorizer, event)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            cached = self._cache.get(key)
            if cached and cached.expires > self._clock():
                return cached.result
            result = await self._ask(authorizer, event)
            self._remember(key, CachedResult(result, self._clock() + authorizer.ttl))
            return result

    def _remember(self, key: tuple[str, ...], cached: CachedResult) -> None:
        self._cache.pop(key, None)
        self._cache[key] = cached
        while len(self._cache) > _CACHED:
            self._cache.pop(next(iter(self._cache)))
        if len(self._locks) > _CACHED:
            self._locks = {key: lock for key, lock in self._locks.items() if lock.locked()}

    async def _ask(self, authorizer: Authorizer, event: dict[str, Any]) -> AuthorizerResult:
        answer = await self._invoke(authorizer.function, json.dumps(event, ensure_ascii=False).encode())
        if isinstance(answer, FunctionError):
            if answer.message == _UNAUTHORIZED:
                raise Refused(UNAUTHORIZED)
            raise Refused(AUTHORIZER_FAILED, f"the authorizer {authorizer.function} failed: {answer.message}")
        try:
            return AuthorizerResult.parse(answer)
        except MalformedResult as error:
            raise Refused(INVALID_AUTHORIZER, f"the result of {authorizer.function} is invalid: {error}") from error


def reader_context() -> Context:
    """Return the context of a caller without a credential, who reads the API reference."""
    from stint.domain.ids import TENANT  # noqa: PLC0415 - the product, only with AUTH=on
    from stint.domain.principals import Principal  # noqa: PLC0415

    return {"principalId": "reader", **Principal(TENANT, "reader", frozenset({"use"})).to_context()}


def denial(result: AuthorizerResult, method_arn: str) -> Refusal | None:
    """Return the refusal of a method that the policy denies, or does not allow."""
    if result.denies(method_arn):
        return EXPLICITLY_DENIED
    return None if result.allows(method_arn) else DENIED
