import base64
from typing import Any

import pytest

from stint.documents.document_reader import DocumentReader
from stint.documents.limits import Limits
from stint.documents.served import InlineDocument
from stint.domain.errors import InvalidRequest
from stint.domain.openai.items import FunctionCallOutput, Item, Message
from stint.services.conversations.item_files import check_images, read_files

PAGE = base64.b64encode(b"<p>Bees <b>dance</b>.</p>").decode()
WORDS = base64.b64encode("Grüße".encode()).decode()
PNG = "data:image/png;base64,iVBORw0KGgo="


class Web:
    """Documents by URL, with a record of the URLs that were fetched."""

    def __init__(self, **served: InlineDocument) -> None:
        self.served = served
        self.fetched: list[str] = []

    async def fetch(self, url: str) -> InlineDocument:
        self.fetched.append(url)
        if "forbidden" in url:
            raise InvalidRequest("The URL may not be called.", code="url_not_allowed")
        return self.served[url.rsplit("/", 1)[-1]]

    async def check_url(self, url: str) -> None:
        if "forbidden" in url:
            raise InvalidRequest("The URL may not be called.", code="url_not_allowed")

    def reader(self, limits: Limits | None = None) -> DocumentReader:
        return DocumentReader(self.fetch, self.check_url, limits or Limits())


def said(*parts: dict[str, Any]) -> Item:
    return Message.model_validate({"role": "user", "content": list(parts)})


def text(words: str) -> dict[str, Any]:
    return {"type": "input_text", "text": words}


def file(**fields: str) -> dict[str, Any]:
    return {"type": "input_file"} | fields


def image(url: str) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url}


async def refused(item: Item, limits: Limits | None = None) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        await read_files(Web().reader(limits), [said(text("fine")), item])
    return caught.value


async def test_texts_are_given_by_item_in_the_order_of_its_files() -> None:
    web = Web(**{"far.txt": InlineDocument("text/plain", b"far")})
    output = FunctionCallOutput.model_validate(
        {"call_id": "c", "output": [file(filename="out.csv", file_data=base64.b64encode(b"1,2").decode())]}
    )

    texts = await read_files(
        web.reader(),
        [
            said(text("no file")),
            said(
                file(file_data=f"data:text/html;base64,{PAGE}"),
                text("between"),
                file(file_url="https://example.com/far.txt"),
            ),
            FunctionCallOutput(call_id="d", output="as text"),
            output,
        ],
    )

    assert texts == [[], ["Bees dance.", "far"], [], ["1,2"]]
    assert web.fetched == ["https://example.com/far.txt"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"file_data": WORDS, "filename": "notes.TXT"}, "Grüße"),
        ({"file_data": PAGE, "filename": "page.html"}, "Bees dance."),
        ({"file_data": f"data:application/octet-stream;base64,{PAGE}", "filename": "page.htm"}, "Bees dance."),
        ({"file_data": f"data:;base64,{PAGE}", "filename": "page.htm"}, "Bees dance."),
        ({"file_data": f"data:text/plain;base64,{PAGE}", "filename": "page.html"}, "<p>Bees <b>dance</b>.</p>"),
        ({"file_data": "data:,Hello%20you"}, "Hello you"),
        ({"file_data": "data:text/plain;charset=latin-1;base64,/A=="}, "ü"),
    ],
)
async def test_a_file_is_what_its_data_url_says_or_its_name(fields: dict[str, str], expected: str) -> None:
    assert await read_files(Web().reader(), [said(file(**fields))]) == [[expected]]


async def test_a_files_name_wins_over_a_server_that_does_not_know_it() -> None:
    web = Web(page=InlineDocument("application/octet-stream", b"<p>Bees</p>"))
    item = said(file(file_url="https://example.com/page", filename="page.html"))

    assert await read_files(web.reader(), [item]) == [["Bees"]]


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"file_data": WORDS}, "unsupported_document", "there is no filename"),
        ({"file_data": WORDS, "filename": "photo.png"}, "unsupported_document", "the filename 'photo.png' has no"),
        (
            {"file_data": f"data:application/octet-stream;base64,{WORDS}"},
            "unsupported_document",
            "there is no filename",
        ),
        ({"file_data": "data:image/png;base64,AAAA"}, "unsupported_document", "'image/png' is not supported"),
        ({"file_data": "data:text/plain;base64,====x"}, "unreadable_document", "base64"),
        ({"file_data": "data:%%%/;base64,AAAA"}, "unsupported_document", "is not a MIME type"),
        ({"file_url": "ftp://example.com/x"}, "unsupported_document", "must be http, https or data"),
        ({"file_url": "https://forbidden/x"}, "url_not_allowed", "may not be called"),
    ],
)
async def test_a_file_that_cannot_be_read_is_named_by_its_place(fields: dict[str, str], code: str, words: str) -> None:
    error = await refused(said(text("first"), file(**fields)))

    assert (error.code, error.param) == (code, "input[1].content[1]")
    assert error.message.startswith("input[1].content[1]: ")
    assert words in error.message


async def test_files_that_are_too_long_together_are_refused() -> None:
    one = file(file_data="data:," + "x" * 60)

    error = await refused(said(one, one), Limits(characters=119))

    assert (error.code, error.param) == ("document_too_large", "input[1].content[1]")


async def test_nothing_is_fetched_where_no_file_is() -> None:
    assert await read_files(Web().reader(), []) == []
    assert await read_files(Web().reader(), [said(text("hello"), image(PNG))]) == [[]]


async def test_images_that_may_be_seen_pass() -> None:
    await check_images(Web().reader(), [said(image(PNG), image("https://example.com/x.png"))])


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://forbidden/x.png", "url_not_allowed"),
        ("ftp://example.com/x.png", "invalid_request"),
        ("data:image/png;base64,AAAA", "invalid_request"),
    ],
)
async def test_an_image_that_may_not_be_seen_is_named_by_its_place(url: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await check_images(Web().reader(), [said(text("look")), said(text("there"), image(url))], "items")

    assert (caught.value.code, caught.value.param) == (code, "items[1].content[1].image_url")
