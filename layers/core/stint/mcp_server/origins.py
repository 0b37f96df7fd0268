"""The check of the header Origin, which browsers send with the requests of web pages.

A page can reach a server in a private network by a host name of its own that resolves to it (DNS rebinding), and then
the Host header is the page's, too. So nothing is compared with the Host header: allowed are the domain that API Gateway
says it was called by, this machine for a server without a gateway, and the origin of STINT_CORS_ORIGIN.
"""

import re
from collections.abc import Sequence

from fastapi import Request

from stint.domain.errors import Forbidden
from stint.http.middleware.authentication import request_context_of

LOCAL = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
LOCAL_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


def check_origin(request: Request) -> None:
    """Raise Forbidden if a web page of another origin sent a request."""
    origins = request.headers.getlist("origin")
    allowed = request.app.state.read_settings().cors_origin
    domain = str(request_context_of(request.scope).get("domainName") or "")
    if not all(is_allowed(origin, allowed, domain, hosts=request.headers.getlist("host")) for origin in origins):
        message = f"Pages of the origin {origins[0][:200]!r} may not call this server. STINT_CORS_ORIGIN allows one."
        raise Forbidden(message, code="origin_not_allowed", param="origin")


def is_allowed(origin: str, allowed: str, domain: str, hosts: Sequence[str]) -> bool:
    """Return whether pages of an origin may call. `domain` is the one that API Gateway says it was called by."""
    if allowed == "*" or (origin and origin == allowed):
        return True
    is_local = LOCAL.fullmatch(origin) is not None
    if not domain or LOCAL_HOST.fullmatch(domain):
        return is_local and all(LOCAL_HOST.fullmatch(host) for host in hosts)
    return origin.lower() == f"https://{domain.lower()}"
