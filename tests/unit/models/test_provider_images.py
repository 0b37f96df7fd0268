import base64

import pytest

from stint.domain.content import URL, ImageSource
from stint.domain.errors import InvalidRequest
from stint.models.images import InlineImage, read_image


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0....", "image/jpeg"),
        (b"GIF89a....", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_the_kind_is_told_from_the_bytes(data: bytes, media_type: str) -> None:
    raw = read_image(ImageSource(data=encoded(data)))
    wrapped = read_image(ImageSource(url=URL(uri=f"data:image/png;base64,{encoded(data)}")))

    assert raw == wrapped == InlineImage(media_type, data)
    assert InlineImage(media_type, data).data_url == f"data:{media_type};base64,{encoded(data)}"


def test_a_data_url_in_the_data_field_and_line_breaks_are_understood() -> None:
    text = encoded(b"GIF89a" + b"." * 100)

    image = read_image(ImageSource(data=f"data:image/gif;base64,{text[:76]}\n{text[76:]}\n"))

    assert image == InlineImage("image/gif", b"GIF89a" + b"." * 100)


def test_a_web_address_stays_an_address() -> None:
    assert read_image(ImageSource(url=URL(uri="https://example.com/a.png"))) == "https://example.com/a.png"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (ImageSource(data="not base64!"), "not base64"),
        (ImageSource(data=encoded(b"%PDF-1.7")), "not a PNG"),
        (ImageSource(url=URL(uri="file:///etc/passwd")), "must be http, https or data"),
        (ImageSource(url=URL(uri="data:image/png,raw")), "must be base64"),
    ],
)
def test_what_is_no_image_is_the_fault_of_the_caller(source: ImageSource, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as caught:
        read_image(source)

    assert caught.value.param == "messages"
