"""Images in messages and attachments of the real client of October 2024."""

from typing import Any

import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient, Refused

from stint.domain.content import ImageContentItem, TextContentItem, items_of
from stint.domain.inference import UserInput

PNG = "data:image/png;base64,iVBORw0KGgo="
URL = "https://93.184.215.14/a.png"


def seen(app_fixture: AppFixture) -> list[str]:
    """Return the texts, and the URLs or the data of the images, of the last message that the model saw."""
    message = app_fixture.last_request.messages[-1]
    assert isinstance(message, UserInput)
    return [each.text if isinstance(each, TextContentItem) else uri_of(each) for each in items_of(message.content)]


def uri_of(item: ImageContentItem) -> str:
    return item.image.url.uri if item.image.url else str(item.image.data)


def uris(turn: dict[str, Any]) -> list[str]:
    """Return the images of the first message as the client shows them."""
    return [each["image"]["uri"] for each in turn["input_messages"][0]["content"] if "image" in each]


@pytest.mark.parametrize("uri", [PNG, URL])
@pytest.mark.parametrize("is_object", [False, True])
def test_an_image_of_a_message_reaches_the_model(
    october: OctoberClient, app_fixture: AppFixture, uri: str, is_object: bool
) -> None:
    session = october.open_session(model="recorded/m")
    image = {"image": {"uri": uri} if is_object else uri}

    turn = october.send(session, {"role": "user", "content": ["Describe", image]})[-1]["turn"]

    assert seen(app_fixture) == ["Describe", uri]
    assert uris(turn) == [uri]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ({"image": {"uri": PNG}}, [PNG]),
        ({"image": URL}, [URL]),
        (["a text", {"image": PNG}, {"image": {"uri": URL}}], [PNG, URL]),
    ],
)
def test_an_image_of_an_attachment_is_a_part_of_the_message(
    october: OctoberClient, app_fixture: AppFixture, content: Any, parts: list[str]
) -> None:
    session = october.open_session(model="recorded/m")

    turn = october.say(session, "Describe", attachments=[{"content": content, "mime_type": "image/png"}])[-1]["turn"]
    asked = seen(app_fixture)
    october.say(session, "And now?")

    assert [part for part in asked if part in parts] == parts
    assert asked[0] == "Describe"
    assert ("a text" in str(app_fixture.last_request.messages)) is isinstance(content, list)
    assert uris(turn) == parts
    assert str(app_fixture.last_request.messages).count("ImageSource") == len(parts)


@pytest.mark.parametrize(
    ("attachment", "says"),
    [
        ({"image": "http://169.254.169.254/latest"}, "attachments[1].content.image.url.uri: The URL of '169.254"),
        (["a", {"image": "http://169.254.169.254/latest"}], "attachments[1].content[1].image.url.uri: The URL of"),
        ({"image": "data:image/png;base64,AAAA"}, "attachments[1].content.image.url.uri: "),
        ("data:application/zip;base64,UEsDBA==", "attachments[1]: "),
        ({"image": {"format": "png", "format_description": "PNG"}}, "attachments[1].content"),
    ],
)
def test_an_image_that_cannot_be_used_is_refused_by_its_place(
    october: OctoberClient, attachment: Any, says: str
) -> None:
    session = october.open_session()
    both = [{"content": {"image": PNG}, "mime_type": "image/png"}, {"content": attachment, "mime_type": "image/png"}]
    message = {"role": "user", "content": ["", "Describe"], "context": "more"}

    with pytest.raises(Refused) as refused:
        october.send(session, message, attachments=both)

    assert refused.value.status == 400
    assert refused.value.message.startswith(says)


def test_an_image_without_a_message_of_the_user_is_refused(october: OctoberClient) -> None:
    result = {"role": "ipython", "call_id": "", "tool_name": "add", "content": "3"}

    with pytest.raises(Refused) as refused:
        october.send(
            october.open_session(), result, attachments=[{"content": {"image": PNG}, "mime_type": "image/png"}]
        )

    assert refused.value.message == "attachments[0].content: an image needs a message of the role user in messages."
