"""Documents with any media type."""

import base64
import zlib
from collections.abc import Iterator
from typing import Any

from tests.adversarial.case import Answer, Case, case, create_session, post
from tests.adversarial.peer import PEER, serves
from tests.servers.scripted_http import Received, Reply
from tests.unit.documents.pdf_files import make_pdf, write_objects, write_pdf

MOST = 4_400_000
"""Maximum bytes of a document that is sent in base64 in a request of 6 MB."""


def fill(piece: bytes, size: int = MOST) -> bytes:
    return piece * (size // len(piece))


def data_url(body: bytes, mime_type: str) -> str:
    return f"data:{mime_type};base64,{base64.b64encode(body).decode()}"


def read(*bodies: bytes, mime_type: str = "text/html", statuses: tuple[int, ...] = (200, 400)) -> Case:
    """Send each document in a turn."""
    session = yield from create_session()
    for body in bodies:
        document = {"content": {"uri": data_url(body, mime_type)}, "mime_type": mime_type.partition(";")[0]}
        answer = yield post(f"{session}/turn", turn(document))
        assert answer.status in statuses, answer.body[:500]


def turn(*documents: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "say: read"}], "documents": documents}


@case
def text_in_codecs_of_python() -> Case:
    for name in ("punycode", "idna", "utf-7", "unicode_escape", "raw_unicode_escape", "rot13", "zlib", "undefined"):
        yield from read(fill(b"a-b", 800_000), mime_type=f"text/plain;charset={name}", statuses=(400,))
        yield from read(b"+2AA-", b"\\ud800", mime_type=f"text/plain;charset={name}", statuses=(400,))


@case
def text_in_encodings_of_the_web() -> Case:
    for name in ("gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "utf-16", "windows-1252"):
        yield from read(fill(b"\x1b$B\x81\x30\x83\xff\xfe"), mime_type=f"text/plain;charset={name}")


@case
def html_of_unfinished_markup() -> Case:
    pieces = (b"<script></script ", b"<!--", b"<![", b"<!", b"<?", b"<a ", b"</a ", b'<a b="', b"<a b='\"", b"<")
    yield from read(*(fill(piece) for piece in pieces))


@case
def html_of_unfinished_markup_that_is_small() -> Case:
    pieces = (b"<script></script ", b"<!--", b"<![", b"<!", b"<?", b"<a ", b"</a ", b'<a b="', b"<a b='\"", b"<")
    yield from read(*(fill(piece, 64_000) for piece in pieces))


@case
def html_of_deep_markup() -> Case:
    yield from read(
        *(fill(piece) for piece in (b"<div>", b"<svg>", b"<a href=x>", b"<pre>", b"<li>", b"<table><tr><td>"))
    )


@case
def html_of_many_attributes() -> Case:
    yield from read(b"<a " + fill(b"b ") + b">", b"<img " + fill(b"b=1 ") + b"alt=x>", b"<a b=" + fill(b" ") + b">")


@case
def html_of_character_references() -> Case:
    pieces = (b"&", b"&a", b"&#1", b"&#0;", b"&lt", b"&" + b"a" * 32)
    yield from read(*(fill(piece) for piece in pieces), b"&#" + fill(b"1"), b"&#" + fill(b"0"), b"&#x" + fill(b"f"))
    yield from read(b"&#" + b"9" * 5_000, b"&#xd800;")


@case
def html_sent_as_text() -> Case:
    session = yield from create_session()
    for text in ("<script></script " * 350_000, "<p>" * 1_900_000, "🙂<" + "a" * 5_900_000, "&#" + "1" * 5_000):
        answer = yield post(f"{session}/turn", turn({"content": text, "mime_type": "text/html"}))
        assert answer.status in (200, 400)


def stream(content: bytes) -> bytes:
    return write_pdf([(b"/Filter /FlateDecode ", zlib.compress(content, 9))])


@case
def pdf_of_empty_strings() -> Case:
    begin = b"BT /F1 12 Tf "
    yield from read(
        *(stream(content) for content in (begin + b"()Tj " * 400_000, begin + b"[" + b"()" * 400_000 + b"]TJ")),
        *(stream(begin + b"()' " * 400_000 + b"ET") for _ in range(1)),
        mime_type="application/pdf",
    )


@case
def pdf_of_operators() -> Case:
    pieces = (b"q ", b"[", b"<<", b"(", b"/", b"BT ", b"1 0 0 1 0 0 cm ", b"BI ", b"BI ID ", b"%\n", b"<", b"((((")
    yield from read(*(stream(piece * (2_000_000 // len(piece))) for piece in pieces), mime_type="application/pdf")


@case
def pdf_that_unpacks() -> Case:
    once = zlib.compress(b" " * 60_000_000, 9)
    streams = [
        (b"/Filter /FlateDecode ", once),
        (b"/Filter [/FlateDecode /FlateDecode] ", zlib.compress(once, 9)),
        (b"/Filter /RunLengthDecode ", b"\x81 " * 2_000_000),
        (b"/Filter [/FlateDecode /ASCIIHexDecode] ", zlib.compress(b"20" * 9_000_000, 9)),
        (b"/Filter [/FlateDecode /ASCII85Decode] ", zlib.compress(b"z" * 9_000_000, 9)),
        (
            b"/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns 9000000 >> ",
            zlib.compress(b"\1" * 9_500_000, 9),
        ),
    ]
    yield from read(*(write_pdf([each]) for each in streams), mime_type="application/pdf")


@case
def pdf_of_loops() -> Case:
    yield from read(*loops(), mime_type="application/pdf")


def loops() -> Iterator[bytes]:
    """Yield files whose objects are circular or deeply nested."""
    kids = b" ".join(b"2 0 R" for _ in range(50_000))
    yield write_objects([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%b] /Count 50000 >>" % kids])
    yield write_objects([b"<< /Type /Catalog /Pages 2 0 R >>", b"[" * 100_000 + b"]" * 100_000])
    yield write_objects([b"<< /Type /Catalog /Pages 2 0 R >>", b"<</A" * 100_000 + b">>" * 100_000])
    chain = [b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % number for number in range(3, 20_003)]
    yield write_objects([b"<< /Type /Catalog /Pages 2 0 R >>", *chain, b"2 0 R"])
    page = b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>"
    form = b"<< /Type /XObject /Subtype /Form /Length 12 /Resources << /XObject << /X 5 0 R >> >> >>"
    draw = b"\nstream\n/X Do /X Do \nendstream"
    pages = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    yield write_objects([b"<< /Type /Catalog /Pages 2 0 R >>", pages, page, b"<< /Length 12 >>" + draw, form + draw])
    yield make_pdf("x").replace(b"startxref\n", b"startxref\n9\n" * 100_000)
    yield b"%PDF-1.4\n" + fill(b"1 0 obj\n", 2_000_000)
    yield (
        b"%PDF-1.4\n"
        + b"xref\n0 999999999\n"
        + fill(b"0000000000 00000 n \n", 2_000_000)
        + b"trailer <<>>\nstartxref\n9\n%%EOF"
    )
    yield fill(b"%PDF-1.4\nxref\n0 1\ntrailer << /Prev 9 >>\nstartxref\n9\n%%EOF\n", 2_000_000)


@case
def pdf_of_doubling_fonts() -> Case:
    ranges = b"1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n"
    maps = b"".join(b"1 beginbfrange\n<0000> <FFFF> <0000>\nendbfrange\n" for _ in range(2_000))
    yield from read(write_pdf([(b"", b"BT /F1 12 Tf (x) Tj ET")], ranges + maps), mime_type="application/pdf")


@case
def documents_by_the_hundred() -> Case:
    session = yield from create_session()
    pdf = data_url(stream(b"BT /F1 12 Tf " + b"()Tj " * 40_000), "application/pdf")
    html = data_url(b"<p>x" * 20_000, "text/html")
    small = data_url(b"<br>" * 10_000, "text/html")
    for uri, count in ((pdf, 100), (html, 40), (small, 100)):
        documents = [{"content": {"uri": uri}, "mime_type": ""}] * count
        answer = yield post(f"{session}/turn", turn(*documents))
        assert answer.status in (200, 400)
    answer = yield post(f"{session}/turn", turn(*[{"content": "x", "mime_type": "text/plain"}] * 60_000))
    assert answer.status == 400


@case
def data_urls_of_escapes() -> Case:
    session = yield from create_session()
    for uri in (
        "data:text/plain," + "%41" * 1_900_000,
        "data:text/plain;base64," + "%41" * 1_900_000,
        "data:text/plain;base64," + "AA AA " * 900_000,
        "data:text/plain;base64," + "A  " * 1_900_000,
        "data:" + ";charset=" * 600_000 + ",x",
        "data:text/plain;" + " " * 5_800_000 + "charset=x,y",
        "data:" + "," * 5_900_000,
        "data:,🙂" + "a" * 5_800_000,
        " " * 5_900_000 + "data:,x",
    ):
        answer = yield post(f"{session}/turn", turn({"content": {"uri": uri}, "mime_type": ""}))
        assert answer.status in (200, 400)
        answer = yield post("/v1/responses", {"model": "scripted/demo", "input": [file(uri)]})
        assert answer.status in (200, 400)


def file(uri: str) -> dict[str, Any]:
    content = [
        {"type": "input_file", "file_data": uri, "filename": "a.txt"},
        {"type": "input_text", "text": "say: read"},
    ]
    return {"role": "user", "content": content}


@case
def images_of_white_space() -> Case:
    session = yield from create_session()
    for data in (
        "AA AA " * 900_000,
        "A  " * 1_900_000,
        "A" * 5_900_000,
        "=" * 5_900_000,
        "iVBORw0KGgo" + "AA AA " * 900_000,
    ):
        for image in ({"data": data}, {"url": {"uri": f"data:image/png;base64,{data}"}}):
            message = {"role": "user", "content": [{"type": "image", "image": image}]}
            answer = yield post(f"{session}/turn", {"messages": [message]})
            assert answer.status in (200, 400)


@serves("/large.html")
def serve_large_page(received: Received) -> Reply:
    return Reply((fill(b"<p>x", 9_900_000),), 200, {"Content-Type": "text/html"})


@serves("/large.txt")
def serve_large_text(received: Received) -> Reply:
    return Reply(("🙂".encode() + b"x" * 9_900_000,), 200, {"Content-Type": "text/plain"})


@serves("/large.pdf")
def serve_large_pdf(received: Received) -> Reply:
    body = make_pdf("x").replace(b"%%EOF", fill(b"% comment\n", 9_000_000) + b"%%EOF")
    return Reply((body,), 200, {"Content-Type": "application/pdf"})


@serves("/bomb.txt")
def serve_bomb(received: Received) -> Reply:
    packer = zlib.compressobj(9, wbits=31)
    body = packer.compress(b"x" * 100_000_000) + packer.flush()
    return Reply((body,), 200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"})


@case
def documents_from_elsewhere() -> Case:
    session = yield from create_session()
    for name in ("large.html", "large.txt", "large.pdf", "bomb.txt"):
        document = {"content": {"uri": f"{PEER.decode()}/{name}"}, "mime_type": ""}
        answer: Answer = yield post(f"{session}/turn", turn(*[document] * 8))
        assert answer.status in (200, 400), answer.body[:300]


@case
def text_that_declares_a_charset_after_many_spaces() -> Case:
    blank = (b"<meta" * 36 + b"charset=").ljust(4096, b" ")
    yield from read(blank, b"<?xml encoding=" * 10 + blank, blank * 1000, mime_type="text/plain")
