"""The hosted image generation of responses."""

import base64
from contextlib import nullcontext
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import (
    RESPONSES,
    events_of,
    follow,
    get,
    item_of,
    kinds,
    openai_client,
    post,
    respond,
    text_of,
    types_of,
    user,
)
from tests.servers.images import read_png

from stint.domain.inference import ToolResult, UserInput
from stint.tools.image_generation.scripted import draw

TOOL = {"type": "image_generation", "size": "96x64"}
PROMPT = 'call: image_generation {"prompt": "a red fox"}'
FOX = base64.b64encode(draw("a red fox", (96, 64))).decode()
NOTE = "The image was generated, and the user sees it."


def test_an_image_is_an_item_with_its_base64(http: httpx.Client) -> None:
    response = respond(http, PROMPT, tools=[TOOL])

    assert types_of(response) == ["image_generation_call", "message"]
    call = item_of(response, "image_generation_call")
    assert call["id"].startswith("ig_")
    assert call | {"id": ""} == {
        "type": "image_generation_call",
        "id": "",
        "status": "completed",
        "result": FOX,
        "revised_prompt": "a red fox",
        "output_format": "png",
        "size": "96x64",
    }
    assert response["tools"] == [TOOL]
    assert NOTE in text_of(response)
    assert get(http, response["id"])["output"] == response["output"]


@pytest.mark.parametrize(("partial", "shown"), [(0, []), (2, ["image_generation_call.partial_image"])])
def test_a_stream_has_the_states_of_the_call(http: httpx.Client, partial: int, shown: list[str]) -> None:
    events = follow(http, PROMPT, tools=[{**TOOL, "partial_images": partial}])

    states = [kind for kind in kinds(events) if "image_generation" in kind]
    begun = ["image_generation_call.in_progress", "image_generation_call.generating"]
    assert states == [*begun, *shown, "image_generation_call.completed"]
    [added] = [each["item"] for each in events if each["type"] == "response.output_item.added"][:1]
    assert (added["status"], added["result"]) == ("in_progress", None)
    [done] = [each["item"] for each in events if each["type"] == "response.output_item.done"][:1]
    assert done["result"] == FOX
    partials = [each["partial_image_b64"] for each in events if "partial_image_b64" in each]
    assert partials == [FOX] * len(shown)


def test_openais_client_parses_the_stream_and_the_item(server: Served, http: httpx.Client) -> None:
    with openai_client(server) as client:
        tools: Any = [{**TOOL, "partial_images": 1}]
        with client.responses.stream(model="scripted/demo", input=PROMPT, tools=tools) as stream:
            parsed = [type(event).__name__ for event in stream if "image_generation" in event.type]
            final = stream.get_final_response()

    names = ("InProgress", "Generating", "PartialImage", "Completed")
    assert parsed == [f"ResponseImageGenCall{name}Event" for name in names]
    call: Any = final.output[0]
    assert type(call).__name__ == "ImageGenerationCall"
    assert read_png(base64.b64decode(call.result)).width == 96


def test_the_next_response_knows_that_an_image_was_generated_and_gets_no_image(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    first = respond(http, PROMPT, model="recorded/model", tools=[TOOL])
    app_fixture.recorder.requests.clear()
    items = [user(PROMPT), *first["output"], user("And?")]

    respond(http, "And?", model="recorded/model", previous_response_id=first["id"])
    respond(http, items, model="recorded/model", tools=[TOOL])

    for request in app_fixture.recorder.requests:
        assert [each.content for each in request.messages if isinstance(each, ToolResult)] == [NOTE]
        assert FOX not in repr(request)
    listed = http.get(f"{RESPONSES}/{first['id']}/input_items").json()["data"]
    assert [item["type"] for item in listed] == ["message"]


def test_items_of_a_conversation_have_their_images(http: httpx.Client) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]

    respond(http, PROMPT, tools=[TOOL], conversation=conversation)

    items = http.get(f"/v1/conversations/{conversation}/items", params={"order": "asc"}).json()["data"]
    assert [item["type"] for item in items] == ["message", "image_generation_call", "message"]
    assert items[1]["result"] == FOX


def test_a_tool_choice_requires_an_image(http: httpx.Client) -> None:
    chosen = respond(http, 'Draw "a red fox".', tools=[TOOL], tool_choice={"type": "image_generation"})
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "image_generation"}]}

    assert item_of(chosen, "image_generation_call")["revised_prompt"] == "a red fox"
    also = respond(http, 'Draw "a red fox".', tools=[TOOL], tool_choice=allowed)
    assert item_of(also, "image_generation_call")["result"] == FOX


def test_a_call_that_fails_is_an_item_without_an_image(http: httpx.Client) -> None:
    events = follow(http, "call: image_generation {}", tools=[TOOL])

    call = item_of(events[-1]["response"], "image_generation_call")
    assert (call["status"], call["result"]) == ("failed", None)
    assert "image_generation_call.completed" not in kinds(events)
    assert "prompt is missing" in text_of(events[-1]["response"])


@pytest.mark.parametrize(
    ("tool", "param", "words"),
    [
        ({"output_format": "webp"}, "tools[0].output_format", "does not support output_format 'webp'"),
        ({"output_compression": 50}, "tools[0].output_compression", "output_compression 50"),
        ({"size": "huge"}, "tools[0].size", "WIDTHxHEIGHT"),
        ({"model": "bedrock/amazon.nova-lite-v1:0"}, "tools[0].model", "not known to generate images"),
        ({"action": "edit"}, "tools[0].action", "not edited"),
        ({"input_image_mask": {"file_id": "file-1"}}, "tools[0].input_image_mask", "not edited"),
        ({"frame_count": 3}, "tools[0].frame_count", "Animated"),
        ({"svg": {"model": "m"}}, "tools[0].svg", "Vector"),
        ({"output_format": "gif"}, "tools[0].output_format", "png"),
        ({"partial_images": 4}, "tools[0].partial_images", "3"),
    ],
)
def test_options_that_have_no_effect_are_refused_by_name(
    http: httpx.Client, tool: dict[str, Any], param: str, words: str
) -> None:
    answer = post(http, tools=[{"type": "image_generation", **tool}])

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], words in error["message"]) == (param, True), error


@pytest.mark.parametrize("background", [False, True])
def test_a_rejoined_stream_has_the_same_events(
    http: httpx.Client, app_fixture: AppFixture, *, background: bool
) -> None:
    with app_fixture.working() if background else nullcontext():
        events = follow(http, PROMPT, tools=[{**TOOL, "partial_images": 1}], background=background or None)
    response_id = events[0]["response"]["id"]

    again = events_of(http.get(f"{RESPONSES}/{response_id}?stream=true").text)

    assert again == events
    assert "image_generation_call.partial_image" in kinds(again)


@pytest.mark.usefixtures("large_images")
@pytest.mark.parametrize("kept_in", ["chain", "conversation"])
def test_large_images_are_read_with_their_items_but_not_with_the_context(
    http: httpx.Client, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch, kept_in: str
) -> None:
    linked: dict[str, Any] = {}
    if kept_in == "conversation":
        linked = {"conversation": http.post("/v1/conversations", json={}).json()["id"]}
    first = ""
    for number in range(4):
        said = f'call: image_generation {{"prompt": "fox {number}"}}'
        made = respond(http, said, model="recorded/model", tools=[TOOL], **linked)
        first = first or made["id"]
        if kept_in == "chain":
            linked = {"previous_response_id": made["id"]}
    fetched: list[str] = []
    get_object = app_fixture.bucket.get

    async def get_noted(service: str, key: str, **options: Any) -> Any:
        fetched.append(key)
        return await get_object(service, key, **options)

    monkeypatch.setattr(app_fixture.bucket, "get", get_noted)
    app_fixture.made.clear()
    app_fixture.recorder.requests.clear()

    respond(http, "And what is that?", model="recorded/model", **linked)

    [request] = app_fixture.recorder.requests
    assert request.messages[0] == UserInput('call: image_generation {"prompt": "fox 0"}')
    assert [each.content for each in request.messages if isinstance(each, ToolResult)] == [NOTE] * 4
    assert fetched == []
    assert len(item_of(get(http, first), "image_generation_call")["result"]) > 1_000_000
    if kept_in == "conversation":
        items = http.get(f"/v1/conversations/{linked['conversation']}/items", params={"order": "asc"}).json()["data"]
        assert len(items[1]["result"]) > 1_000_000
