"""Protection of the local cloud's servers from requests of web pages.

The servers listen on this machine only, but any web page that is open in a browser here can send requests to them:
directly (cross-site requests), or through its own host name that resolves to 127.0.0.1 (DNS rebinding).
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
ORIGIN = re.compile(r"https?://" + HOST.pattern, re.IGNORECASE)
# Paths that a link on a page of another site may open.
PAGES = re.compile(r"/(docs|console(/.*)?)?")

Headers = Sequence[tuple[str, str]]
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def reason_to_refuse(headers: Headers, path: str = "", cors_origin: str = "") -> str | None:
    """Return why a request is not served, or None.

    `headers` have lower-case names. The Host must be of this machine. An Origin must be of this machine or equal to
    `cors_origin`; `*` allows any. A request that the browser marks as cross-site must have an Origin or open a page.
    """
    hosts, origins = values(headers, "host"), values(headers, "origin")
    strange = [host for host in hosts if not HOST.fullmatch(host)]
    if strange or not hosts:
        named = f"is {strange[0][:100]!r}" if strange else "is missing"
        return f"The local cloud serves this machine only: the Host header {named}, not 127.0.0.1, localhost or [::1]."
    foreign = [origin for origin in origins if not ORIGIN.fullmatch(origin) and cors_origin not in ("*", origin)]
    if foreign:
        return f"Pages of the origin {foreign[0][:100]!r} may not call the local cloud. STINT_CORS_ORIGIN allows one."
    crossing = "cross-site" in map(str.lower, values(headers, "sec-fetch-site")) and not origins
    if crossing and not (PAGES.fullmatch(path) and values(headers, "sec-fetch-mode") == ["navigate"]):
        return "Pages of other sites may not call the local cloud. STINT_CORS_ORIGIN allows an origin."
    return None


def values(headers: Headers, name: str) -> list[str]:
    return [value for key, value in headers if key == name]


def decoded(raw: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Return the headers of an ASGI scope, or of h11, as text."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]


def refuse_web_pages(app: App) -> App:
    """Wrap a server so that requests of web pages get 403."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        reason = reason_to_refuse(decoded(scope["headers"])) if scope["type"] == "http" else None
        if reason is None:
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": reason.encode()})

    return guarded
