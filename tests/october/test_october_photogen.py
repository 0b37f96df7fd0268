"""Images of agents of October 2024."""

import base64

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient, Refused
from tests.servers.images import read_png

from stint.domain.content import ImageContentItem, ImageSource
from stint.october_2024.contents import from_content

PROMPT = 'photogen {"query": "a red fox"}'
TOOLS = [{"type": "photogen"}]


def test_an_image_is_in_the_tool_response_and_an_attachment(http: httpx.Client, october: OctoberClient) -> None:
    session = october.open_session(tools=TOOLS)

    payloads = october.say(session, PROMPT)

    turn = payloads[-1]["turn"]
    [step] = [each for each in turn["steps"] if each["step_type"] == "tool_execution"]
    [response] = step["tool_responses"]
    note, image = response["content"]
    url = image["image"]["uri"]
    assert (response["tool_name"], note) == ("photogen", "The image was generated, and the user sees it.")
    assert read_png(base64.b64decode(url.removeprefix("data:image/png;base64,"))).width == 512
    assert turn["output_attachments"] == [{"content": url, "mime_type": "image/png"}]
    stored = http.get(f"/v1/agents/{session[0]}/session/{session[1]}").json()["turns"][0]
    assert stored["output_attachments"][0]["content"] == {"uri": url}


def test_an_agent_with_images_is_refused_without_an_image_model(
    october: OctoberClient, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_fixture, "settings", app_fixture.settings.model_copy(update={"image_model": ""}))
    app_fixture.made.clear()

    with pytest.raises(Refused) as refused:
        october.create_agent(tools=TOOLS)

    app_fixture.made.clear()
    assert (refused.value.status, "ImageModel" in refused.value.message) == (501, True)


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"\xff\xd8\xff", "jpeg"), (b"GIF89a", "gif"), (b"RIFF\0\0\0\0WEBP", "webp"), (b"\x89PNG\r\n", "png")],
)
def test_an_image_has_the_type_of_its_bytes(data: bytes, kind: str) -> None:
    encoded = base64.b64encode(data).decode()

    shown = from_content(ImageContentItem(image=ImageSource(data=encoded)))

    assert shown.model_dump(mode="json") == {"image": {"uri": f"data:image/{kind};base64,{encoded}"}}  # type: ignore[union-attr]
