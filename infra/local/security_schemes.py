"""Reader of the authorizers of a translated template, and of the routes that they guard.

https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions-authorizer.html
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.local.errors import LocalCloudError
from infra.local.intrinsics import Resolver

# SAM writes this scheme, which no template defines, for a route without authorizer.
_OPEN = "NONE"
_HEADER = "method.request.header."
_FUNCTION = re.compile(r":function:(?P<name>[^:/]+)/invocations$")
# https://docs.aws.amazon.com/apigateway/latest/api/API_Authorizer.html
_DEFAULT_TTL = 300


@dataclass(frozen=True)
class Authorizer:
    """A Lambda authorizer of type REQUEST. Its results are cached by the values of these headers for `ttl` seconds."""

    name: str
    function: str
    headers: tuple[str, ...]
    ttl: float


class SecuritySchemes:
    """The security schemes of an API's document, in OpenAPI 3 or Swagger 2."""

    def __init__(self, body: Mapping[str, Any], resolver: Resolver) -> None:
        components: Mapping[str, Any] = body.get("components", {})
        self._schemes: Mapping[str, Any] = components.get("securitySchemes") or body.get("securityDefinitions", {})
        self._resolver = resolver
        self._known: dict[str, Authorizer] = {}

    def authorizer_of(self, operation: Mapping[str, Any], where: str) -> Authorizer | None:
        """Return the authorizer of a method, or None if it is open. Raises LocalCloudError for another kind."""
        names = [name for requirement in operation.get("security", []) for name in requirement if name != _OPEN]
        if not names:
            return None
        if len(names) > 1:
            raise LocalCloudError(f"{where}: the local cloud supports one authorizer of a method, not {names}")
        (name,) = names
        if name not in self._known:
            self._known[name] = self._read(name, where)
        return self._known[name]

    def _read(self, name: str, where: str) -> Authorizer:
        scheme = self._schemes.get(name)
        if scheme is None:
            raise LocalCloudError(f"{where}: there is no security scheme {name}")
        authorizer = scheme.get("x-amazon-apigateway-authorizer", {})
        if authorizer.get("type") != "request":
            kind = scheme.get("x-amazon-apigateway-authtype", scheme.get("type"))
            raise LocalCloudError(f"{where}: the local cloud has Lambda authorizers of type REQUEST only, not {kind}")
        place = f"securitySchemes.{name}"
        uri = self._resolver.text(authorizer["authorizerUri"], f"{place}.authorizerUri")
        target = _FUNCTION.search(uri)
        if target is None:
            raise LocalCloudError(f"{place}: {uri} is not the invocation of a function")
        ttl = self._resolver.text(authorizer.get("authorizerResultTtlInSeconds", _DEFAULT_TTL), f"{place}: ttl")
        return Authorizer(name, target["name"], header_names(authorizer, place), float(ttl))


def header_names(authorizer: Mapping[str, Any], place: str) -> tuple[str, ...]:
    """Return the headers of the identity source, in lower case."""
    sources = [source.strip() for source in authorizer.get("identitySource", "").split(",") if source.strip()]
    others = [source for source in sources if not source.startswith(_HEADER)]
    if others:
        raise LocalCloudError(f"{place}: the local cloud supports headers as identity source, not {', '.join(others)}")
    return tuple(source.removeprefix(_HEADER).lower() for source in sources)
