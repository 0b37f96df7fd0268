import asyncio
import gzip
import logging
import ssl
import zlib
from collections.abc import Callable

import httpx
import pytest
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.errors import InvalidRequest, UnresolvableURL
from stint.net.guard import Guard, Resolve

LOOPBACK = ("127.0.0.0/8", "::1/128")


def port_of(server: ScriptedHTTPServer) -> int:
    return int(server.url.rsplit(":", 1)[1])


async def refusal(guard: Guard, url: str) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        await guard.fetch(url)
    return caught.value


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[::127.0.0.1]",
        "169.254.169.254",
        "0xa9fea9fe",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "100.100.100.200",
        "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    ],
)
async def test_no_notation_of_an_inner_address_gets_through(server: ScriptedHTTPServer, host: str) -> None:
    refused = await refusal(Guard(), f"http://{host}:{port_of(server)}/")

    assert refused.code == "url_not_allowed"
    assert server.requests == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "scheme"),
        ("ftp://example.com/", "scheme"),
        ("gopher://127.0.0.1:6379/_", "scheme"),
        ("data:text/plain,hi", "scheme"),
        ("//example.com/path", "scheme"),
        ("example.com/path", "scheme"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("http://user:secret@example.com/", "user name or password"),
        ("http://example.com@127.0.0.1/", "user name or password"),
        ("http://example.com:99999/", "port"),
        ("http://example.com:0/", "port"),
        ("http://exam\nple.com/", "not a valid URL"),
        ("http://[::1", "not a valid URL"),
        ("http://xn--a/", "not a valid URL"),
        ("http://xn--a.example/", "not a valid URL"),
        ("http://exam\0ple.com/", "not a valid URL"),
        ("http://example.com:secret/", "not a valid URL"),
        ("http://\u2488.com/", "not a valid URL"),
        ("http://user:secret@xn--a/", "not a valid URL"),
        ("http://%s.com/" % ("a." * 200), "longer than 253"),
        ("http://example.com/%s" % ("x" * 70_000), "not a valid URL"),
        ("", "scheme"),
    ],
)
async def test_what_is_no_plain_web_address_is_refused(url: str, reason: str, resolve: Resolve) -> None:
    refused = await refusal(Guard(resolve=resolve), url)

    assert refused.code == "url_not_allowed"
    assert reason in refused.message
    assert "secret" not in refused.message


async def test_a_name_with_one_inner_address_among_public_ones_is_refused(
    resolve: Resolve, names: dict[str, list[str]]
) -> None:
    names["mixed.example"] = ["8.8.8.8", "10.0.0.1"]

    refused = await refusal(Guard(resolve=resolve), "http://mixed.example/")

    assert refused.code == "url_not_allowed"
    assert "The URL of 'mixed.example' may not be called: it resolves to 10.0.0.1, a private address" in refused.message


async def test_the_address_that_was_checked_is_the_one_connected_to(
    server: ScriptedHTTPServer, resolve: Resolve, names: dict[str, list[str]]
) -> None:
    names["tools.internal"] = ["127.0.0.1"]

    found = await Guard(["tools.internal"], resolve=resolve).fetch(f"http://tools.internal:{port_of(server)}/a?b=c")

    assert found.body == b"GET /a?b=c"
    assert server.requests[0].headers["host"] == f"tools.internal:{port_of(server)}"


async def test_each_connection_asks_the_resolver_once(
    server: ScriptedHTTPServer,
) -> None:
    """A second answer could be another one than that which was checked."""
    answers = [["127.0.0.1"], ["169.254.169.254"]]

    async def rebind(host: str, port: int) -> list[str]:
        return answers.pop(0)

    await Guard(LOOPBACK, resolve=rebind).fetch(f"http://rebinding.example:{port_of(server)}/")

    assert len(server.requests) == 1
    assert answers == [["169.254.169.254"]]


async def test_the_next_address_is_tried_when_the_first_does_not_answer(
    server: ScriptedHTTPServer, resolve: Resolve, names: dict[str, list[str]]
) -> None:
    names["two.example"] = ["::1", "127.0.0.1"]

    found = await Guard(LOOPBACK, resolve=resolve).fetch(f"http://two.example:{port_of(server)}/")

    assert found.body == b"GET /"


@pytest.mark.parametrize("location", ["http://169.254.169.254/latest/meta-data", "http://inner.example/", "//0/"])
async def test_every_redirect_is_checked(
    server: ScriptedHTTPServer, resolve: Resolve, names: dict[str, list[str]], location: str
) -> None:
    names |= {"outer.example": ["127.0.0.1"], "inner.example": ["10.0.0.1"], "0": ["0.0.0.0"]}
    names["169.254.169.254"] = ["169.254.169.254"]
    server.script(Reply(status=302, headers={"Location": location}))

    refused = await refusal(Guard(["outer.example"], resolve=resolve), f"http://outer.example:{port_of(server)}/")

    assert refused.code == "url_not_allowed"
    assert len(server.requests) == 1


async def test_a_redirect_to_another_scheme_is_refused(server: ScriptedHTTPServer) -> None:
    server.script(Reply(status=302, headers={"Location": "file:///etc/passwd"}))

    assert (await refusal(Guard(LOOPBACK), server.url)).code == "url_not_allowed"


@pytest.mark.parametrize("location", ["http://xn--a/", "//xn--a/", "http://[::1", "http://a:b:c/", "/\x7f"])
@pytest.mark.parametrize("redirects", [0, 5])
async def test_a_redirect_to_what_is_no_url_is_an_answer_that_cannot_be_used(
    server: ScriptedHTTPServer, location: str, redirects: int
) -> None:
    server.script(Reply(status=302, headers={"Location": location}), Reply(status=404))

    async with Guard(LOOPBACK).client(redirects=redirects) as client:
        with pytest.raises(InvalidRequest, match="redirects to an invalid URL") as caught:
            await client.get(server.url)

    assert caught.value.code == "url_unavailable"


async def test_a_redirect_to_a_host_that_does_not_resolve_is_refused(
    server: ScriptedHTTPServer, resolve: Resolve, names: dict[str, list[str]]
) -> None:
    names["outer.example"] = ["127.0.0.1"]
    server.script(Reply(status=302, headers={"Location": "http://nowhere.example/"}))

    with pytest.raises(UnresolvableURL, match=r"nowhere\.example"):
        await Guard(["outer.example"], resolve=resolve).fetch(f"http://outer.example:{port_of(server)}/")


async def test_redirects_are_followed_up_to_a_maximum(server: ScriptedHTTPServer) -> None:
    server.script(*(Reply(status=302, headers={"Location": f"/{n}"}) for n in range(5)))

    assert (await Guard(LOOPBACK).fetch(server.url)).body == b"GET /4"

    server.script(*(Reply(status=302, headers={"Location": f"/{n}"}) for n in range(6)))
    assert "redirects more than 5 times" in (await refusal(Guard(LOOPBACK), server.url)).message


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "127.0.0.2", "[::ffff:127.0.0.1]", "2130706433"])
async def test_the_runtime_api_of_lambda_stays_closed_when_loopback_is_open(
    server: ScriptedHTTPServer, host: str
) -> None:
    guard = Guard([*LOOPBACK, "0.0.0.0/8", "localhost"], refused=[f"127.0.0.1:{port_of(server)}"])

    refused = await refusal(guard, f"http://{host}:{port_of(server)}/2018-06-01/runtime/invocation/next")

    assert refused.code == "url_not_allowed"
    assert "is reserved by the platform" in refused.message
    assert server.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "127.9.9.9", "[::ffff:127.0.0.1]", "2130706433"])
async def test_refused_ports_are_closed_on_every_loopback_address(server: ScriptedHTTPServer, host: str) -> None:
    port = port_of(server)
    guard = Guard([*LOOPBACK, "0.0.0.0/8", "localhost"], refused_ports=range(port, port + 1))

    refused = await refusal(guard, f"http://{host}:{port}/")

    assert refused.code == "url_not_allowed"
    assert "is reserved by the platform" in refused.message
    assert server.requests == []


async def test_refused_ports_are_open_elsewhere(server: ScriptedHTTPServer) -> None:
    port = port_of(server)
    guard = Guard(LOOPBACK, refused_ports=range(port + 1, port + 10))

    assert (await guard.fetch(server.url)).body == b"GET /"
    await Guard(refused_ports=range(440, 450)).check("https://8.8.8.8/")


async def test_other_ports_stay_open_beside_the_runtime_api(server: ScriptedHTTPServer) -> None:
    guard = Guard(LOOPBACK, refused=["127.0.0.1:1", "169.254.100.1:9001", ""])

    assert (await guard.fetch(server.url)).body == b"GET /"


async def test_a_check_beforehand_says_the_same(resolve: Resolve, names: dict[str, list[str]]) -> None:
    names |= {"good.example": ["8.8.8.8"], "bad.example": ["10.0.0.1"]}
    guard = Guard(resolve=resolve)

    await guard.check("https://good.example/mcp")

    for url in ("https://bad.example/mcp", "ftp://good.example/", "https://unknown.example/"):
        with pytest.raises(InvalidRequest, match=url.split("/")[2]):
            await guard.check(url)


@pytest.mark.parametrize("host", ["nowhere.example", "exa mple.com", "[fe80::1%25eth0]", "a..b", f"{'a' * 64}.example"])
async def test_a_host_that_nobody_knows_is_unavailable(host: str) -> None:
    async def look_up(host: str, port: int) -> list[str]:
        host.encode("idna")
        raise OSError("no such host")

    refused = await refusal(Guard(resolve=look_up), f"http://{host}/")

    assert refused.code == "url_unavailable"


async def test_an_address_with_a_zone_is_refused(resolve: Resolve, names: dict[str, list[str]]) -> None:
    names["zone.example"] = ["2606:4700::1111%1"]

    assert (await refusal(Guard(resolve=resolve), "http://zone.example/")).code == "url_not_allowed"


async def test_proxies_and_credentials_of_the_environment_are_not_used(
    server: ScriptedHTTPServer, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    (netrc := tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")  # type: ignore[operator]
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    await Guard(LOOPBACK).fetch(server.url)

    assert "authorization" not in server.requests[0].headers


async def test_cookies_do_not_pass_from_one_document_to_the_next(server: ScriptedHTTPServer) -> None:
    guard = Guard(LOOPBACK)
    server.script(Reply(headers={"Set-Cookie": "a=b"}))

    await guard.fetch(server.url)
    await guard.fetch(server.url)

    assert "cookie" not in server.requests[1].headers


async def test_a_body_is_cut_off_at_the_limit_while_it_comes(server: ScriptedHTTPServer) -> None:
    server.script(Reply((b"x" * 600, b"x" * 600), ending="hang"))

    with pytest.raises(InvalidRequest, match="more than 1,000 bytes") as caught:
        await Guard(LOOPBACK).fetch(server.url, max_bytes=1000)

    assert caught.value.code == "url_too_large"


async def test_a_body_of_just_the_limit_is_read(server: ScriptedHTTPServer) -> None:
    server.script(Reply((b"x" * 1000,), headers={"Content-Type": "text/plain; charset=utf-8"}))

    found = await Guard(LOOPBACK).fetch(server.url, max_bytes=1000)

    assert (found.content_type, len(found.body)) == ("text/plain; charset=utf-8", 1000)


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_packed_body_is_unpacked(
    server: ScriptedHTTPServer, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(b"hello " * 50_000)
    server.script(Reply((packed[:10], packed[10:]), headers={"Content-Encoding": encoding}))

    assert (await Guard(LOOPBACK).fetch(server.url)).body == b"hello " * 50_000


async def test_a_decompression_bomb_is_cut_off_at_the_limit(server: ScriptedHTTPServer) -> None:
    server.script(Reply((gzip.compress(bytes(50_000_000)),), headers={"Content-Encoding": "gzip"}))

    with pytest.raises(InvalidRequest, match="more than 1,000,000 bytes") as caught:
        await Guard(LOOPBACK).fetch(server.url, max_bytes=1_000_000)

    assert caught.value.code == "url_too_large"


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "compress"])
async def test_an_encoding_that_was_not_asked_for_is_refused(server: ScriptedHTTPServer, encoding: str) -> None:
    server.script(Reply((b"x",), headers={"Content-Encoding": encoding}))

    assert (await refusal(Guard(LOOPBACK), server.url)).code == "url_unavailable"


async def test_a_broken_packed_body_is_unavailable(server: ScriptedHTTPServer) -> None:
    server.script(Reply((b"no gzip at all",), headers={"Content-Encoding": "gzip"}))

    assert "cannot be decompressed" in (await refusal(Guard(LOOPBACK), server.url)).message


async def test_the_time_limit_holds_for_a_server_that_drips(server: ScriptedHTTPServer) -> None:
    server.script(Reply(tuple(part for _ in range(100) for part in (b"x", 0.05))))

    with pytest.raises(InvalidRequest, match=r"did not respond within 0.3 s") as caught:
        await Guard(LOOPBACK).fetch(server.url, timeout=0.3)

    assert caught.value.code == "url_unavailable"


@pytest.mark.parametrize("reply", [Reply(status=404), Reply(status=0), Reply((b"x",), ending="cut"), Reply(status=204)])
async def test_anything_but_a_whole_200_is_unavailable(server: ScriptedHTTPServer, reply: Reply) -> None:
    server.script(reply)

    assert (await refusal(Guard(LOOPBACK), server.url)).code == "url_unavailable"


async def test_addresses_and_keys_stay_out_of_the_log(
    server: ScriptedHTTPServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async with Guard(LOOPBACK).client(headers={"Authorization": "Bearer s3cret"}) as client:
        await client.get(f"{server.url}/?appid=s3cret")

    assert server.requests[0].headers["authorization"] == "Bearer s3cret"
    assert "s3cret" not in caplog.text


async def test_a_client_follows_redirects_only_when_told_to(server: ScriptedHTTPServer) -> None:
    server.script(Reply(status=307, headers={"Location": "/other"}))

    async with Guard(LOOPBACK).client() as client:
        answer = await client.get(server.url)

    assert answer.status_code == 307


Certify = Callable[[str], tuple[ssl.SSLContext, ssl.SSLContext]]


async def serve_tls(context: ssl.SSLContext, seen: list[str | None]) -> asyncio.Server:
    context.sni_callback = lambda _, name, __: seen.append(name)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)


async def test_tls_verifies_the_name_while_the_connection_goes_to_the_address(
    certify: Certify, resolve: Resolve, names: dict[str, list[str]]
) -> None:
    names |= {"secure.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]}
    server_tls, client_tls = certify("secure.example")
    seen: list[str | None] = []
    guard = Guard(LOOPBACK, resolve=resolve, tls=client_tls)

    async with await serve_tls(server_tls, seen) as server:
        port = server.sockets[0].getsockname()[1]
        found = await guard.fetch(f"https://secure.example:{port}/")
        refused = await refusal(guard, f"https://other.example:{port}/")

    assert found.body == b"ok"
    assert seen == ["secure.example", "other.example"]
    assert (refused.code, "ConnectError" in refused.message) == ("url_unavailable", True)


async def test_a_client_of_the_guard_refuses_too() -> None:
    async with Guard().client() as client:
        with pytest.raises(InvalidRequest, match="loopback"):
            await client.post("http://127.0.0.1:1/", json={})
        assert isinstance(client, httpx.AsyncClient)


@pytest.mark.parametrize(("most", "asked", "limit"), [(1000, 5000, 1000), (5000, 1000, 1000)])
async def test_the_smaller_of_the_limits_of_a_guard_and_of_a_call_applies(
    server: ScriptedHTTPServer, most: int, asked: int, limit: int
) -> None:
    guard = Guard(LOOPBACK, most_bytes=most)
    server.script(Reply((b"x" * limit,)), Reply((b"x" * (limit + 1),)))

    assert len((await guard.fetch(server.url, max_bytes=asked)).body) == limit
    with pytest.raises(InvalidRequest) as caught:
        await guard.fetch(server.url, max_bytes=asked)
    assert caught.value.code == "url_too_large"
