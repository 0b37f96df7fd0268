"""The function of the console: the files of a web page, which `make console` builds, and its settings.

It reads no data, has no rights, and imports nothing but the standard library, because anyone may start it: its routes
need no credential, so that a browser can open the page. The files are read once, into a table, so a path can only name
what is in it. All URLs in the page are relative, because a stage or a base path may precede `/console`.
"""

import hashlib
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

STATIC = Path(__file__).parent / "static"
ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Content encodings, the preferred one first, and the suffixes of files that have them."""
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
FILE_NAME = re.compile(
    r"\.(js|mjs|map|css|json|html?|txt|xml|svg|ico|png|jpe?g|gif|webp|woff2?|wasm|php)$", re.IGNORECASE
)
"""Names that are files, and no pages. The ids of models have dots, too."""
MOST_SEGMENTS = 20
ORIGIN = re.compile(r"(https://[A-Za-z0-9.-]+|http://(127\.0\.0\.1|localhost))(:[0-9]{1,5})?(?=/|$)")
"""The origin of an issuer: https, or http to this machine, as the authorizer accepts it."""
BASE = "{base}"
"""The place in index.html of the relative path to the files."""

FOR_EVER = "public, max-age=31536000, immutable"
REVALIDATED = "no-cache"
NOT_PLAIN = "This file is sent with a content encoding only: accept br or gzip."
NOT_BUILT = "The console is not built. Run `make console`, and start again."

Files = Mapping[str, Mapping[str, bytes]]
"""The content of each file by its name and content encoding; "" is the plain one."""


class Answer(NamedTuple):
    """A response without the headers that all have."""

    status: int
    body: bytes
    media_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = (("cache-control", "no-store"),)


class Console:
    """ASGI app of the page. `environment` has the settings."""

    def __init__(self, static: Path, environment: Mapping[str, str]) -> None:
        self._assets = read_assets(static)
        page = static / "index.html"
        self._page = page.read_text() if page.is_file() else ""
        self._config = json.dumps(page_config(static, environment)).encode()
        self._headers = [
            ("content-security-policy", content_security_policy(*issuer_addresses(environment))),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
        elif scope["type"] == "http":
            await self._send(self.answer(scope), scope["method"], send)

    def answer(self, scope: Scope) -> Answer:
        """Return the response to a request, with its body also for HEAD."""
        if scope["method"] not in ("GET", "HEAD"):
            words = f"{scope['method']} is not possible here. The console answers GET and HEAD."
            return Answer(405, words.encode(), headers=(("allow", "GET, HEAD"), ("cache-control", "no-store")))
        path, raw = route_of(scope)
        if path == "/":
            location = f"./{raw.rpartition('/')[2]}/console" if not raw.endswith("/") else "./console"
            return Answer(302, b"The console is at /console.", headers=(("location", location), no_cache()))
        if path != "/console" and not path.startswith("/console/"):
            return not_found()
        if not self._page:
            return Answer(503, NOT_BUILT.encode())
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        rest = path.removeprefix("/console").removeprefix("/")
        if rest == "config.json":
            return revalidated(self._config, JSON, headers)
        if rest.startswith("assets/"):
            return self._asset(rest.removeprefix("assets/"), headers)
        return self._index(rest, raw, scope, headers)

    def _asset(self, name: str, headers: Mapping[str, str]) -> Answer:
        contents = self._assets.get(name)
        if contents is None:
            return not_found()
        encoding = choose_encoding(headers.get("accept-encoding", "gzip"), contents)
        if encoding is None:
            return Answer(406, NOT_PLAIN.encode())
        own = [("cache-control", FOR_EVER), ("vary", "accept-encoding")]
        own += [("content-encoding", encoding)] if encoding else []
        return Answer(200, contents[encoding], TYPES[Path(name).suffix], tuple(own))

    def _index(self, rest: str, raw: str, scope: Scope, headers: Mapping[str, str]) -> Answer:
        """Return the page for any of its own paths, so that it can be reloaded there."""
        below = raw.count("/") - str(scope.get("root_path", "")).count("/") - 1
        if FILE_NAME.search(rest) or not 0 <= below <= MOST_SEGMENTS:
            return not_found()
        base = "console/" if below == 0 else "../" * (below - 1)
        return revalidated(self._page.replace(BASE, base).encode(), HTML, headers)

    async def _send(self, answer: Answer, method: str, send: Send) -> None:
        headers = [("content-type", answer.media_type), ("content-length", str(len(answer.body)))]
        headers = [*(headers if answer.status != 304 else ()), *answer.headers, *self._headers]
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.body})


def route_of(scope: Scope) -> tuple[str, str]:
    """Return the path below the stage or base path, and the whole path as the browser sent it."""
    root, path = str(scope.get("root_path", "")), str(scope["path"])
    raw = scope.get("raw_path") or path.encode()
    return path.removeprefix(root) or "/", raw.decode("latin-1")


def revalidated(body: bytes, media_type: str, headers: Mapping[str, str]) -> Answer:
    """Return content that a browser keeps, but asks for each time."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    own = (("etag", etag), no_cache())
    known = [each.strip().removeprefix("W/") for each in headers.get("if-none-match", "").split(",")]
    return Answer(304, b"", headers=own) if etag in known else Answer(200, body, media_type, own)


def no_cache() -> tuple[str, str]:
    return ("cache-control", REVALIDATED)


def not_found() -> Answer:
    return Answer(404, b"The console has no such file.")


def choose_encoding(accepted: str, contents: Mapping[str, bytes]) -> str | None:
    """Return the preferred encoding that a client accepts and a file has; "" if it has none, None if none is accepted.

    A large file is never sent as it is: whoever asks for that would pay nothing, and the stack's owner three times the
    transfer.
    """
    if contents.keys() == {""}:
        return ""
    names = set()
    for part in accepted.lower().split(","):
        name, _, weight = part.replace(" ", "").partition(";q=")
        if not re.fullmatch(r"0(\.0*)?", weight):
            names.add(name)
    return next((each for each in ENCODINGS if names & {each, "*"} and each in contents), None)


def read_assets(static: Path) -> Files:
    """Read the files whose names have a hash of their content."""
    found: dict[str, Mapping[str, bytes]] = {}
    for path in sorted((static / "assets").glob("*")):
        if path.suffix in TYPES:
            packed = {name: path.with_name(path.name + suffix) for name, suffix in ENCODINGS.items()}
            encoded = {name: each.read_bytes() for name, each in packed.items() if each.is_file()}
            found[path.name] = {"": path.read_bytes(), **encoded}
    return found


def page_config(static: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the page, which everyone may read."""
    version = static / "version"
    return {
        "version": version.read_text().strip() if version.is_file() else "",
        "auth": environment.get("STINT_AUTH", "authorizer"),
        "keys": environment.get("STINT_AUTH_KEYS", "true") == "true",
        "issuer": environment.get("STINT_OIDC_ISSUER", ""),
        "client_id": environment.get("STINT_CONSOLE_CLIENT_ID", ""),
        "audience": environment.get("STINT_OIDC_AUDIENCE", ""),
        "oidc_scopes": " ".join(dict.fromkeys(["openid", *environment.get("STINT_CONSOLE_SCOPES", "").split()])),
        "local": environment.get("STINT_CONSOLE_LOCAL", "") == "true",
    }


def issuer_addresses(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the issuer of tokens, and the origin of its token endpoint if that is another one."""
    return environment.get("STINT_OIDC_ISSUER", ""), environment.get("STINT_CONSOLE_TOKEN_ORIGIN", "")


def content_security_policy(*issuers: str) -> str:
    """Return the policy of the page. A browser may also connect to the origins of an issuer of tokens."""
    sources = " ".join(["'self'", *(origin[0] for each in issuers if (origin := ORIGIN.match(each)))])
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src {sources}; img-src 'self' data: blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


app = Console(STATIC, os.environ)
