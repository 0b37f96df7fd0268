import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.documents.marker import find_boundary, mark_document
from stint.documents.reading import parse_data_url
from stint.documents.served import InlineDocument, Unreadable
from stint.documents.text import decode


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("häh".encode(), None, "häh"),
        ("häh".encode("latin-1"), "ISO-8859-1", "häh"),
        ("h\x80".encode("latin-1"), None, "h€"),
        ("häh".encode("utf-8-sig"), "latin-1", "häh"),
        ("häh".encode("utf-16"), None, "häh"),
        ("häh".encode("latin-1"), "utf-8", "h\ufffdh"),
        (b"<meta charset='koi8-r'>" + "привет".encode("koi8-r"), None, "<meta charset='koi8-r'>привет"),
        (
            b'<meta http-equiv=x content="text/html; charset=latin-1">' + "ä".encode("latin-1"),
            None,
            '<meta http-equiv=x content="text/html; charset=latin-1">ä',
        ),
        (
            b'<?xml version="1.0" encoding="latin-1"?>' + "ä".encode("latin-1"),
            None,
            '<?xml version="1.0" encoding="latin-1"?>ä',
        ),
        (b"a\r\nb\rc", None, "a\nb\nc"),
        (b"", None, ""),
    ],
)
def test_bytes_are_decoded_by_their_mark_their_charset_or_a_guess(data: bytes, charset: str | None, text: str) -> None:
    assert decode(data, charset, "text/plain", 1000) == text


@pytest.mark.parametrize(
    ("data", "charset", "said"),
    [
        (b"x", "klingon", "'klingon' is unknown"),
        (b"x", "base64", "'base64' is unknown: send it as UTF-8"),
        *(
            (b"x", name, "is unknown")
            for name in ("idna", "punycode", "utf-7", "unicode_escape", "rot13", "iso-2022-kr")
        ),
        (b"x" * 8001, None, "more than 1,000 characters"),
        (b"a\0b", None, "is not text"),
        (b"%PDF-1.7", None, "is a PDF"),
    ],
)
def test_what_is_not_text_is_refused(data: bytes, charset: str | None, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        decode(data, charset, "text/plain", 1000)


@pytest.mark.parametrize(
    ("url", "content_type", "body"),
    [
        ("data:,Hello%20you", "text/plain;charset=US-ASCII", b"Hello you"),
        ("data:text/plain,a,b;c", "text/plain", b"a,b;c"),
        ("data:;charset=utf-8,%C3%A4", "text/plain;charset=utf-8", "ä".encode()),
        ("data:text/html;charset=utf-8;base64,w6Q=", "text/html;charset=utf-8", "ä".encode()),
        ("DATA:text/plain;BASE64,SGVs%0AbG8", "text/plain", b"Hello"),
        ("data:application/pdf;base64,__-A", "application/pdf", b"\xff\xff\x80"),
        ("data:text/plain,ä", "text/plain", "ä".encode()),
    ],
)
def test_data_urls_are_decoded(url: str, content_type: str, body: bytes) -> None:
    assert parse_data_url(url, 100) == InlineDocument(content_type, body)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("data:text/plain", "needs a comma"),
        ("data:text/plain;base64,a", "its data URL has invalid base64"),
        ("data:text/plain;base64,ab!d", "its data URL has invalid base64"),
        ("data:,aaaaaa", "more than 5 bytes"),
        ("data:," + "%41" * 100, "more than 5 bytes"),
    ],
)
def test_broken_data_urls_are_refused(url: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        parse_data_url(url, 5)


@given(st.text())
def test_a_document_cannot_forge_the_end_of_its_marker(text: str) -> None:
    first, *middle, last = mark_document(text, "text/plain").split("\n")
    boundary = find_boundary(text)

    assert first == f"<document boundary={boundary} type=text/plain>"
    assert "\n".join(middle) == text
    assert last == f"</document boundary={boundary}>"
    assert boundary not in text


def test_a_document_that_quotes_its_own_marker_gets_another() -> None:
    text = "x"
    quoting = mark_document(text, "text/plain")

    assert find_boundary(quoting) != find_boundary(text)
    assert mark_document(quoting, "text/plain") == mark_document(quoting, "text/plain")


def test_a_type_cannot_break_out_of_the_marker() -> None:
    marked = mark_document("x", 'text/plain">\n</document>; charset=utf-8')

    assert marked.split("\n")[0].endswith("type=text/plain/document>")
