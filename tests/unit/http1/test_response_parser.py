"""The parser of responses, with generated responses and pieces."""

import contextlib
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.http1.parser import MalformedResponse, ResponseParser

TOKENS = st.from_regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}", fullmatch=True)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)
FRAMING = {"content-length", "transfer-encoding", "connection"}
FIELDS = st.lists(st.tuples(TOKENS.filter(lambda name: name.lower() not in FRAMING), VALUES), max_size=5)
BODIES = st.binary(max_size=300)
CUTS = st.lists(st.integers(0, 1000), max_size=8)
EXTENSIONS = st.from_regex(r"(;[a-z]{1,5}(=[a-z]{1,5})?)?", fullmatch=True)


def head(status: int, fields: list[tuple[str, str]], *framing: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Any reason", *(f"{name}: {value}" for name, value in fields), *framing]
    return "\r\n".join([*lines, "", ""]).encode()


@dataclass
class Parsed:
    """A complete response."""

    status: int
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


def feed(data: bytes, cuts: list[int], parser: ResponseParser | None = None, *, take: bool = False) -> Parsed | None:
    """Feed data in pieces, and return the response. `take`: take the body while it arrives."""
    parser, at, taken = parser or ResponseParser(), 0, b""
    for end in [*sorted(cut for cut in cuts if cut < len(data)), len(data)]:
        parser.feed(data[at:end])
        at = end
        taken += parser.take_body() if take else b""
    return finish(parser, taken)


def finish(parser: ResponseParser, taken: bytes = b"") -> Parsed | None:
    """Return the response if it is complete."""
    if not parser.ended or parser.head is None:
        return None
    return Parsed(parser.head.status, parser.head.headers, taken + parser.take_body(), parser.keep_alive)


def chunk(pieces: list[bytes], extension: str, trailers: list[tuple[str, str]]) -> bytes:
    data = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension.encode(), piece) for piece in pieces if piece)
    lines = "".join(f"{name}: {value}\r\n" for name, value in trailers)
    return data + b"0\r\n" + lines.encode() + b"\r\n"


@given(status=st.integers(200, 599), fields=FIELDS, body=BODIES, cuts=CUTS, interim=st.integers(0, 2))
def test_a_response_with_a_length_is_read_in_any_pieces(
    status: int, fields: list[tuple[str, str]], body: bytes, cuts: list[int], interim: int
) -> None:
    body = b"" if status in (204, 304) else body
    data = head(103, fields) * interim + head(status, fields, f"Content-Length: {len(body)}") + body

    response = feed(data, cuts, take=bool(interim))

    assert response is not None
    assert (response.status, response.body, response.keep_alive) == (status, body, True)
    expected: dict[str, str] = {}
    for name, value in ((name.lower(), value.strip(" ")) for name, value in fields):
        expected[name] = f"{expected[name]}, {value}" if name in expected else value
    assert response.headers == expected | {"content-length": str(len(body))}
    assert feed(data[:-1], cuts) is None


@given(pieces=st.lists(BODIES, max_size=5), extension=EXTENSIONS, trailers=FIELDS, cuts=CUTS)
def test_a_response_in_chunks_is_read_in_any_pieces(
    pieces: list[bytes], extension: str, trailers: list[tuple[str, str]], cuts: list[int]
) -> None:
    data = head(200, [], "Transfer-Encoding: chunked") + chunk(pieces, extension, trailers)

    response = feed(data, cuts)

    assert response is not None
    assert response.body == b"".join(pieces)
    assert feed(data[:-1], cuts) is None


@given(body=BODIES, cuts=CUTS, version=st.sampled_from(("1.0", "1.1")))
def test_a_body_may_end_with_its_connection_where_that_is_accepted(body: bytes, cuts: list[int], version: str) -> None:
    data = f"HTTP/{version} 200 OK\r\n\r\n".encode() + body
    parser = ResponseParser(until_close=True)

    assert feed(data, cuts, parser) is None
    parser.feed_eof()

    assert finish(parser) == Parsed(200, {}, body, False)


@pytest.mark.parametrize("framing", ["Content-Length: 6", "Transfer-Encoding: chunked"])
def test_the_end_of_the_connection_completes_no_body_with_a_length(framing: str) -> None:
    parser = ResponseParser(until_close=True)
    parser.feed(head(200, [], framing) + b"5\r\nab")

    parser.feed_eof()

    assert finish(parser) is None


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_is_refused_at_its_limit_before_it_is_kept(chunked: bool) -> None:
    framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: 101"
    parser = ResponseParser(max_body=100)

    with pytest.raises(MalformedResponse, match="more than 100 bytes"):
        parser.feed(head(200, [], framing) + (b"32\r\n" + b"x" * 50 + b"\r\n") * 2 + b"1\r\n")

    assert len(parser.body) <= 100


def test_a_body_without_a_length_is_refused_at_its_limit() -> None:
    parser = ResponseParser(until_close=True, max_body=100)
    parser.feed(head(200, []) + b"x" * 100)

    with pytest.raises(MalformedResponse, match="more than 100 bytes"):
        parser.feed(b"x")


@given(body=BODIES, surplus=st.binary(min_size=1, max_size=20), chunked=st.booleans())
def test_bytes_after_a_response_end_the_connection(body: bytes, surplus: bytes, chunked: bool) -> None:
    if chunked:
        data = head(200, [], "Transfer-Encoding: chunked") + chunk([body], "", [])
    else:
        data = head(200, [], f"Content-Length: {len(body)}") + body

    response = feed(data + surplus, [])

    assert response is not None
    assert (response.body, response.keep_alive) == (body, False)


@given(data=st.binary(max_size=300), cuts=CUTS, started=st.booleans())
def test_any_bytes_are_refused_or_wait_for_more(data: bytes, cuts: list[int], started: bool) -> None:
    with contextlib.suppress(MalformedResponse):
        feed((head(200, [], "Transfer-Encoding: chunked") if started else b"") + data, cuts)


@given(cut=st.integers(1, 60), byte=st.binary(min_size=1, max_size=1))
def test_a_byte_more_in_a_head_never_changes_the_end_of_a_body(cut: int, byte: bytes) -> None:
    data = head(200, [("a", "b")], "Content-Length: 5", "X: y") + b"12345"
    changed = data[:cut] + byte + data[cut:]

    try:
        response = feed(changed, [])
    except MalformedResponse:
        return
    assert response is None or len(response.body) == int(response.headers["content-length"])


@pytest.mark.parametrize(
    "fields",
    [
        ["Content-Length: +5"],
        ["Content-Length: 5, 5"],
        ["Content-Length: 5", "Content-Length: 5"],
        ["Content-Length: 5", "content-length: 6"],
        ["Content-Length: 0x5"],
        ["Content-Length: \u0665"],
        ["Content-Length:"],
        ["Content-Length: 99999999999999999999"],
        ["Content-Length : 5"],
        [" Content-Length: 5"],
        ["Content-Length: 5", " folded"],
        ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: identity"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", "no colon"],
        ["Content-Length: 5", "a\x00: b"],
        ["Content-Length: 5", "a: b\rTransfer-Encoding: chunked"],
        ["Content-Length: 5\n"],
        [],
    ],
)
def test_an_ambiguous_length_is_refused(fields: list[str]) -> None:
    with pytest.raises(MalformedResponse):
        feed(head(200, [], *fields) + b"12345", [])


@pytest.mark.parametrize(
    "chunks",
    [
        *("-1\r\n", "+1\r\n1\r\n", "0x1\r\n", " 1\r\n1\r\n", "\r\n", "g\r\n", "1\n1\r\n0\r\n\r\n", "123456789\r\n"),
        *("1\r\n12\r\n", "2\r\n1\r\n0\r\n\r\n", "ffffffff\r\n", "1;\x00\r\n1\r\n", "0\r\n folded\r\n\r\n"),
        *("0\r\nno colon\r\n\r\n", "0" * 300, "0\r\na: " + "b" * 70_000),
    ],
)
def test_malformed_chunks_are_refused(chunks: str) -> None:
    with pytest.raises(MalformedResponse):
        feed(head(200, [], "Transfer-Encoding: chunked") + chunks.encode(), [])


@pytest.mark.parametrize("line", ["HTTP/2 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000", "http/1.1 200 OK", "HTTP/1.1200"])
def test_another_status_line_is_refused(line: str) -> None:
    with pytest.raises(MalformedResponse):
        feed(f"{line}\r\nContent-Length: 0\r\n\r\n".encode(), [])


@pytest.mark.parametrize("start", ["SSH-2.0-x\r\n", "<html>", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"])
def test_another_protocol_is_refused_before_the_end_of_a_head(start: str) -> None:
    with pytest.raises(MalformedResponse):
        feed(start.encode(), [])


@pytest.mark.parametrize("size", ["5", "5  ", "5 ;x", "0000000000000005"])
def test_sizes_of_chunks_may_have_zeros_in_front_and_spaces_after_them(size: str) -> None:
    response = feed(head(200, [], "Transfer-Encoding: chunked") + f"{size}\r\nabcde\r\n0\r\n\r\n".encode(), [])

    assert response is not None
    assert response.body == b"abcde"


def test_several_headers_of_a_name_are_one_list() -> None:
    response = feed(head(200, [("Connection", "close"), ("connection", "x")], "Content-Length: 0"), [])

    assert response is not None
    assert (response.headers["connection"], response.keep_alive) == ("close, x", False)


def test_bytes_after_a_response_are_not_kept() -> None:
    parser = ResponseParser()
    parser.feed(head(200, [], "Content-Length: 0") + b"x" * 100)
    parser.feed(b"y" * 100)

    assert (parser.ended, parser.keep_alive, len(parser._buffer)) == (True, False, 0)


@pytest.mark.parametrize("fields", [[("Connection", "keep-alive")], [("Connection", "close")], []])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_tunnel_has_no_body_and_its_bytes_are_no_response(version: str, fields: list[tuple[str, str]]) -> None:
    data = head(200, fields).replace(b"HTTP/1.1", f"HTTP/{version}".encode())
    response = feed(data, [], ResponseParser(tunnel=True))

    assert response is not None
    assert (response.body, response.keep_alive) == (b"", True)


def test_patterns_take_linear_time() -> None:
    """Each repetition in a pattern ends at a byte that it does not match itself."""
    from stint.http1 import parser

    patterns: list[Any] = [value for value in vars(parser).values() if isinstance(value, re.Pattern)]
    for pattern in patterns:
        for hostile in (b"a" * 60_000, b"a:" * 30_000, b"a: b\r\n" * 10_000 + b"\x00", b" " * 60_000):
            assert pattern.fullmatch(b"HTTP/1.1 200 OK\r\n" + hostile) is None
