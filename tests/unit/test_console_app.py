"""The function of the console: which file answers a path, with which headers."""

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from functions.console.app import Console, content_security_policy

PAGE = '<!doctype html><script src="{base}assets/console-1.js"></script>'
ISSUER = "https://id.example/realm"


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """Return a folder as the build of the page makes it, beside a file that is no part of it."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "version").write_text("0.1.0-abc\n")
    (folder / "assets" / "console-1.js").write_text("plain")
    (folder / "assets" / "console-1.js.br").write_bytes(b"brotli")
    (folder / "assets" / "console-1.js.gz").write_bytes(gzip.compress(b"plain", mtime=0))
    (folder / "assets" / "style-1.css").write_text("a {}")
    (tmp_path / "secret.js").write_text("secret")
    return folder


@pytest.fixture
def console(static: Path) -> Console:
    return Console(static, {"STINT_OIDC_ISSUER": ISSUER, "STINT_CONSOLE_CLIENT_ID": "c1"})


class Answered:
    """The response to a request. Repeated headers are not expected."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        start, *bodies = messages
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.body = b"".join(each["body"] for each in bodies)


def ask(console: Console, path: str, method: str = "GET", *, root: str = "", **headers: str) -> Answered:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    names = {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": "http",
        "method": method,
        "path": f"{root}{path}",
        "raw_path": f"{root}{path}".encode(),
        "root_path": root,
        "headers": [(name.encode(), value.encode()) for name, value in names.items()],
    }
    asyncio.run(console(scope, receive, send))
    return Answered(sent)


@pytest.mark.parametrize("root", ["", "/prod", "/base/path"])
@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/console", "console/"),
        ("/console/", ""),
        ("/console/agents", ""),
        ("/console/agents/", "../"),
        ("/console/agents/a/session/b", "../../../"),
        ("/console/models/gpt-4.1", "../"),
    ],
)
def test_each_path_of_the_page_finds_the_files_relative_to_itself(
    console: Console, root: str, path: str, base: str
) -> None:
    answered = ask(console, path, root=root)

    assert (answered.status, answered.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answered.body.decode() == PAGE.replace("{base}", base)
    assert answered.headers["cache-control"] == "no-cache"


def test_an_unchanged_page_is_not_sent_again(console: Console) -> None:
    etag = ask(console, "/console").headers["etag"]

    for known in (etag, f"W/{etag}", f'"x", {etag}'):
        again = ask(console, "/console", if_none_match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    assert ask(console, "/console", if_none_match='"x"').status == 200


@pytest.mark.parametrize(
    ("accepted", "encoding", "body"),
    [
        ("gzip, deflate, br", "br", b"brotli"),
        ("gzip;q=1.0, br;q=0", "gzip", gzip.compress(b"plain", mtime=0)),
        ("GZIP", "gzip", gzip.compress(b"plain", mtime=0)),
        ("*", "br", b"brotli"),
    ],
)
def test_files_are_kept_for_ever_in_the_encoding_that_the_client_accepts(
    console: Console, accepted: str, encoding: str | None, body: bytes
) -> None:
    answered = ask(console, "/console/assets/console-1.js", accept_encoding=accepted)

    assert (answered.status, answered.headers.get("content-encoding")) == (200, encoding)
    assert answered.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answered.headers["vary"] == "accept-encoding"
    assert answered.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answered.body[10:] == body[10:]  # the head of gzip has a time


@pytest.mark.parametrize("accepted", ["identity", "", "deflate", "br;q=0.0, gzip;q=0.000"])
def test_a_file_is_not_sent_at_three_times_its_size(console: Console, accepted: str) -> None:
    answered = ask(console, "/console/assets/console-1.js", accept_encoding=accepted)

    assert answered.status == 406
    assert answered.body == b"This file is sent with a content encoding only: accept br or gzip."


def test_a_client_that_names_no_encoding_gets_gzip(console: Console) -> None:
    answered = ask(console, "/console/assets/console-1.js")

    assert (answered.headers["content-encoding"], gzip.decompress(answered.body)) == ("gzip", b"plain")


def test_a_file_without_a_compressed_one_is_sent_as_it_is(console: Console) -> None:
    answered = ask(console, "/console/assets/style-1.css", accept_encoding="br")

    assert (answered.body, answered.headers.get("content-encoding")) == (b"a {}", None)


@pytest.mark.parametrize(
    "path",
    [
        *("/console/assets/../../secret.js", "/console/assets/%2e%2e/secret.js", "/console/assets//etc/passwd"),
        *("/console/assets/", "/console/assets/console-1.js.br", "/console/assets/index.html", "/console/index.html"),
        *("/console/app.py.js", "/console/robots.txt", "/console/version.map", "/console" + "/a" * 22),
        *("/consolex", "/other", "//console"),
    ],
)
def test_a_path_that_is_not_in_the_table_has_no_file(console: Console, path: str) -> None:
    answered = ask(console, path)

    assert (answered.status, answered.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert answered.body == b"The console has no such file."


@pytest.mark.parametrize("path", ["/", "/console", "/console/config.json", "/console/assets/console-1.js", "/none.js"])
def test_head_has_the_headers_of_get(console: Console, path: str) -> None:
    head, got = ask(console, path, "HEAD"), ask(console, path)

    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_other_methods_are_refused_in_words(console: Console, method: str) -> None:
    answered = ask(console, "/console", method)

    assert (answered.status, answered.headers["allow"]) == (405, "GET, HEAD")
    assert answered.body.decode() == f"{method} is not possible here. The console answers GET and HEAD."


@pytest.mark.parametrize(("root", "location"), [("", "./console"), ("/prod", "./console"), ("/a/b", "./console")])
def test_the_root_leads_to_the_console(console: Console, root: str, location: str) -> None:
    answered = ask(console, "/", root=root)

    assert (answered.status, answered.headers["location"]) == (302, location)


def test_a_stage_without_a_slash_leads_to_the_console_below_it(console: Console) -> None:
    answered = ask(console, "", root="/prod")

    assert (answered.status, answered.headers["location"]) == (302, "./prod/console")


def test_the_settings_of_the_page_have_no_secret(static: Path) -> None:
    environment = {
        "STINT_AUTH": "authorizer",
        "STINT_AUTH_KEYS": "false",
        "STINT_OIDC_ISSUER": ISSUER,
        "STINT_OIDC_AUDIENCE": "stint",
        "STINT_CONSOLE_CLIENT_ID": "c1",
        "STINT_CONSOLE_SCOPES": "stint/use  openid offline_access",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }

    answered = ask(Console(static, environment), "/console/config.json")

    assert json.loads(answered.body) == {
        "version": "0.1.0-abc",
        "auth": "authorizer",
        "keys": False,
        "issuer": ISSUER,
        "client_id": "c1",
        "audience": "stint",
        "oidc_scopes": "openid stint/use offline_access",
        "local": False,
    }
    assert answered.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/", "/console", "/console/config.json", "/console/assets/console-1.js", "/none.js"])
def test_every_answer_has_the_headers_that_keep_scripts_of_others_out(console: Console, path: str) -> None:
    headers = ask(console, path).headers

    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["img-src"] == "'self' data: blob:"
    assert policy["connect-src"] == "'self' https://id.example"
    assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "'none'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "issuer", ["", "http://id.example", "https://", "https://a b/", "https://a;script-src *", "https://a\r\nx: y"]
)
def test_only_the_origin_of_an_issuer_gets_into_the_policy(issuer: str) -> None:
    assert re.search(r"connect-src ([^;]*);", content_security_policy(issuer)) is not None
    assert "connect-src 'self';" in content_security_policy(issuer)
    assert "connect-src 'self';" in content_security_policy("", issuer)


@pytest.mark.parametrize(
    ("issuer", "token_origin", "sources"),
    [
        ("http://127.0.0.1:8400/realm", "", "'self' http://127.0.0.1:8400"),
        ("https://id.example/realm", "https://token.example", "'self' https://id.example https://token.example"),
    ],
)
def test_a_browser_may_connect_to_the_issuer_and_its_token_endpoint(
    issuer: str, token_origin: str, sources: str
) -> None:
    assert f"connect-src {sources};" in content_security_policy(issuer, token_origin)


def test_without_a_build_the_answer_says_what_to_do(tmp_path: Path) -> None:
    for path in ("/console", "/console/agents", "/console/assets/x.js"):
        answered = ask(Console(tmp_path / "static", {}), path)

        assert (answered.status, b"make console" in answered.body) == (503, True)


def test_the_app_starts_with_the_lifespan_of_asgi(console: Console) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    asyncio.run(console({"type": "lifespan"}, receive, send))

    assert sent == [{"type": "lifespan.startup.complete"}]
