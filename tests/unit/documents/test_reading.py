import asyncio
import base64
from collections.abc import Iterator

import pytest
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.unit.documents.pdf_files import make_pdf

from stint.documents.limits import Limits
from stint.documents.reading import READ_AT_ONCE, read_documents
from stint.documents.served import InlineDocument
from stint.domain.content import URL, Content, Document, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.net.guard import Guard

PAGES = {
    "/page": ("text/html; charset=iso-8859-1", "<title>Caf\xe9</title><p>Hello".encode("latin-1")),
    "/notes": ("text/plain", "sm\xf8rrebr\xf8d".encode()),
    "/paper": ("application/pdf", make_pdf("Hello paper")),
    "/paper.bin": ("application/octet-stream", make_pdf("Hello paper")),
    "/data": ("application/vnd.api+json", b'{"a": 1}'),
    "/picture": ("image/png", b"\x89PNG"),
    "/archive": ("application/zip", b"PK\x03\x04\0"),
    "/untyped": ("", b"plain"),
}


def serve(received: Received) -> Reply:
    if received.path not in PAGES:
        return Reply((b"not here",), 404, {"Content-Type": "text/plain"})
    content_type, body = PAGES[received.path]
    return Reply((body,), 200, {"Content-Type": content_type})


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(serve) as server:
        yield server


async def refuse_fetch(url: str) -> InlineDocument:
    raise AssertionError(f"{url} was fetched")


async def read(content: Content | URL | str, mime_type: str, limits: Limits | None = None) -> str:
    """Read one document that nothing may be fetched for."""
    document = Document(content=content, mime_type=mime_type)
    return (await read_documents([document], refuse_fetch, limits or Limits()))[0]


async def refusal(content: Content | URL | str, mime_type: str, limits: Limits | None = None) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        await read(content, mime_type, limits)
    assert caught.value.param == "documents[0]"
    assert caught.value.message.startswith("documents[0]: ")
    return caught.value


async def fetch_one(server: ScriptedHTTPServer, path: str, mime_type: str) -> str:
    """Read one document through the guard, which is told to let loopback pass."""
    document = Document(content=URL(uri=f"{server.url}{path}"), mime_type=mime_type)
    return (await read_documents([document], Guard(["127.0.0.1"]).fetch, Limits()))[0]


@pytest.mark.parametrize("mime_type", ["text/plain", "TEXT/Markdown; charset=utf-8", "application/json", "", "*/*"])
async def test_a_text_is_given_as_it_is(mime_type: str) -> None:
    assert await read("# One\n<b>two</b>", mime_type) == "# One\n<b>two</b>"


async def test_text_items_are_text_and_html_is_turned_into_it() -> None:
    items: list[TextContentItem | ImageContentItem] = [TextContentItem(text="one"), TextContentItem(text="two")]

    assert await read(items, "text/plain") == "one\ntwo"
    assert await read("<p>Hi &amp; bye</p><script>x</script>", "text/html") == "Hi & bye"


@pytest.mark.parametrize(
    ("mime_type", "said"),
    [
        ("application/msword", "'application/msword' is not supported"),
        ("image/png", "'image/png' is not supported"),
        ("text", "'text' is not a MIME type"),
        ("text/html<script>", "is not a MIME type"),
        ("application/pdf", "a PDF cannot be sent as text"),
    ],
)
async def test_what_cannot_be_read_is_refused_by_name(mime_type: str, said: str) -> None:
    error = await refusal("x", mime_type)

    assert said in error.message
    assert error.code == "unsupported_document"


async def test_an_unsupported_type_is_refused_before_anything_is_fetched() -> None:
    assert "image/png" in (await refusal(URL(uri="https://example.com/x"), "image/png")).message


async def test_an_image_is_no_document() -> None:
    error = await refusal(ImageContentItem(image=ImageSource(data="AAAA")), "text/plain")

    assert "send images in the messages" in error.message


@pytest.mark.parametrize("uri", ["file:///etc/hostname", "ftp://example.com/x", "example.com", ""])
async def test_other_urls_are_refused(uri: str) -> None:
    assert "must be http, https or data" in (await refusal(URL(uri=uri), "text/plain")).message


async def test_data_urls_are_read_by_their_own_type_when_none_is_declared() -> None:
    paper = base64.b64encode(make_pdf("Hello paper")).decode()

    assert await read(URL(uri="data:text/plain;base64,SGVsbG8gZG9j"), "text/plain") == "Hello doc"
    assert await read(URL(uri="data:text/html,<p>a%26amp;b"), "application/octet-stream") == "a&b"
    assert await read(URL(uri="data:text/html,<p>a"), "text/plain") == "<p>a"
    assert await read(URL(uri="data:text/plain;charset=windows-1252,%80"), "text/plain") == "€"
    assert await read(URL(uri=f"data:application/pdf;base64,{paper}"), "application/pdf") == "Hello paper"


@pytest.mark.parametrize(
    ("path", "declared", "text"),
    [
        ("/page", "text/html", "Café\n\nHello"),
        ("/page", "", "Café\n\nHello"),
        ("/page", "text/plain", "<title>Café</title><p>Hello"),
        ("/notes", "text/plain", "smørrebrød"),
        ("/notes", "text/*", "smørrebrød"),
        ("/paper", "application/pdf", "Hello paper"),
        ("/paper", "application/octet-stream", "Hello paper"),
        ("/paper.bin", "application/pdf", "Hello paper"),
        ("/data", "*/*", '{"a": 1}'),
        ("/untyped", "text/plain", "plain"),
    ],
)
async def test_a_document_behind_a_url_is_what_is_declared_or_else_what_is_served(
    server: ScriptedHTTPServer, path: str, declared: str, text: str
) -> None:
    assert await fetch_one(server, path, declared) == text


@pytest.mark.parametrize(
    ("path", "declared", "code", "said"),
    [
        ("/missing", "text/plain", "url_unavailable", "404"),
        ("/paper", "text/plain", "unreadable_document", "is a PDF: declare application/pdf"),
        ("/archive", "text/plain", "unreadable_document", "is not text"),
        ("/notes", "application/pdf", "unreadable_document", "PDF is invalid"),
        ("/picture", "", "unsupported_document", "'image/png' is not supported"),
        ("/untyped", "", "unsupported_document", "has no MIME type"),
        ("/paper.bin", "", "unsupported_document", "'application/octet-stream' is not supported"),
    ],
)
async def test_a_document_that_cannot_be_got_or_read_is_named(
    server: ScriptedHTTPServer, path: str, declared: str, code: str, said: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await fetch_one(server, path, declared)

    assert (caught.value.code, caught.value.param) == (code, "documents[0]")
    assert said in caught.value.message


async def test_loopback_is_refused_without_an_exception_for_it(server: ScriptedHTTPServer) -> None:
    documents = [Document(content="fine", mime_type="text/plain"), Document(content=URL(uri=server.url), mime_type="")]

    with pytest.raises(InvalidRequest) as caught:
        await read_documents(documents, Guard().fetch, Limits())

    assert caught.value.code == "url_not_allowed"
    assert caught.value.message.startswith("documents[1]: The URL of '127.0.0.1' may not be called")


async def test_documents_are_fetched_side_by_side_and_given_in_order() -> None:
    barrier = asyncio.Barrier(READ_AT_ONCE)

    async def fetch(url: str) -> InlineDocument:
        await barrier.wait()
        return InlineDocument("text/plain", url.encode())

    urls = [f"https://example.com/{place}" for place in range(8)]
    documents = [Document(content=URL(uri=url), mime_type="") for url in urls]

    async with asyncio.timeout(60):
        assert await read_documents(documents, fetch, Limits()) == urls


async def test_the_first_document_at_fault_is_named_and_none_is_left_running() -> None:
    finished: list[str] = []

    async def fetch(url: str) -> InlineDocument:
        await asyncio.sleep(0)
        finished.append(url)
        return InlineDocument("image/png", b"")

    documents = [
        Document(content=URL(uri=f"https://example.com/{place}"), mime_type="") for place in range(READ_AT_ONCE)
    ]

    with pytest.raises(InvalidRequest, match=r"documents\[0\]"):
        await read_documents(documents, fetch, Limits())

    assert len(finished) == READ_AT_ONCE


async def test_documents_that_are_too_long_together_are_refused() -> None:
    documents = [Document(content="x" * 60, mime_type="text/plain")] * 2

    assert len(await read_documents(documents, refuse_fetch, Limits(characters=120))) == 2
    with pytest.raises(InvalidRequest) as caught:
        await read_documents(documents, refuse_fetch, Limits(characters=119))

    assert (caught.value.code, caught.value.param) == ("document_too_large", "documents[1]")
    assert "120 in total; at most 119 are allowed" in caught.value.message


async def test_data_urls_have_a_size_limit() -> None:
    error = await refusal(URL(uri="data:text/plain," + "x" * 11), "text/plain", Limits(data_url_bytes=10))

    assert error.code == "document_too_large"
    assert await read(URL(uri="data:text/plain," + "x" * 10), "text/plain", Limits(data_url_bytes=10)) == "x" * 10


async def test_the_number_of_documents_is_limited() -> None:
    documents = [Document(content="x", mime_type="text/plain")] * 3

    assert len(await read_documents(documents, refuse_fetch, Limits(documents=3))) == 3
    with pytest.raises(InvalidRequest, match=r"may have at most 2 documents, not 3") as caught:
        await read_documents(documents, refuse_fetch, Limits(documents=2))

    assert (caught.value.code, caught.value.param) == ("too_many_documents", "documents[2]")


async def test_nothing_is_fetched_once_a_document_is_at_fault() -> None:
    fetched: list[str] = []

    async def fetch(url: str) -> InlineDocument:
        fetched.append(url)
        return InlineDocument("image/png", b"")

    documents = [Document(content=URL(uri=f"https://example.com/{place}"), mime_type="") for place in range(50)]

    with pytest.raises(InvalidRequest, match=r"documents\[0\]"):
        await read_documents(documents, fetch, Limits())

    assert len(fetched) <= READ_AT_ONCE
