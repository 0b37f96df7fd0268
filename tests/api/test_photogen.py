"""Images that models generate in turns, with client 0.2.12."""

import base64
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from tests.api.api_client import assert_error, open_session, say
from tests.api.app_fixture import AppFixture
from tests.servers.images import read_png

from stint.domain.inference import ToolResult, UserInput
from stint.tools.image_generation.scripted import draw

PROMPT = 'photogen {"query": "a red fox"}'
TOOLS: Any = [{"name": "builtin::photogen", "args": {"size": "96x64"}}]
NOTE = "The image was generated, and the user sees it."
FOX = base64.b64encode(draw("a red fox", (96, 64))).decode()


def hello(text: str) -> Any:
    return [{"role": "user", "content": text}]


@pytest.fixture
def agent(client: LlamaStackClient) -> Agent:
    return Agent(client, model="scripted/demo", instructions="", tools=TOOLS)


def test_an_image_is_a_delta_a_result_and_an_attachment(client: LlamaStackClient, agent: Agent) -> None:
    session = agent.create_session("art")

    chunks: Any = agent.create_turn(hello(PROMPT), session)
    payloads: list[Any] = [chunk.event.payload for chunk in chunks]

    deltas = [each.delta for each in payloads if each.event_type == "step_progress" and each.delta.type == "image"]
    assert [(type(delta).__name__, delta.image) for delta in deltas] == [("ImageDelta", FOX)]
    [step] = [each for each in payloads[-1].turn.steps if each.step_type == "tool_execution"]
    note, image = step.tool_responses[0].content
    assert (type(note).__name__, type(image).__name__) == ("TextContentItem", "ImageContentItem")
    assert image.image.data == FOX
    [attached] = payloads[-1].turn.output_attachments
    assert (attached.mime_type, attached.content.uri) == ("image/png", f"data:image/png;base64,{FOX}")
    stored: Any = client.agents.turn.retrieve(payloads[-1].turn.turn_id, agent_id=agent.agent_id, session_id=session)
    assert stored.model_dump(mode="json") == payloads[-1].turn.model_dump(mode="json")


def test_models_get_a_note_and_no_image(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="recorded/model", toolgroups=TOOLS)
    app_fixture.recorder.requests.clear()

    say(http, session, PROMPT)
    say(http, session, "And what is that?")

    results = [
        message.content
        for request in app_fixture.recorder.requests
        for message in request.messages
        if isinstance(message, ToolResult)
    ]
    assert results == [NOTE] * 2


def test_a_rejoined_stream_has_the_same_events(http: httpx.Client) -> None:
    session = open_session(http, toolgroups=TOOLS)
    first = say(http, session, PROMPT, stream=True).text
    turn = http.get(session).json()["turns"][0]["turn_id"]

    again = http.get(f"{session}/turn/{turn}/events").text

    assert again.count('"type":"image"') == first.count('"type":"image"') > 0
    assert lines_of(again) == lines_of(first)


def lines_of(stream: str) -> list[str]:
    return [line for line in stream.splitlines() if line.startswith(("id:", "data:"))]


def test_a_tool_of_images_runs_outside_a_turn(client: LlamaStackClient) -> None:
    result: Any = client.tool_runtime.invoke_tool(tool_name="photogen", kwargs={"query": "a red fox"})

    note, image = result.content
    assert note.text.startswith("The image was generated")
    assert read_png(base64.b64decode(image.image.data)).width == 512


def test_options_that_no_model_has_reach_the_model_as_a_failure(http: httpx.Client) -> None:
    session = open_session(http, toolgroups=[{"name": "builtin::photogen", "args": {"style": "vivid"}}])

    assert "no option 'style'" in say(http, session, PROMPT).json()["output_message"]["content"]


def test_a_toolgroup_of_images_can_be_registered_with_options(http: httpx.Client) -> None:
    body = {"toolgroup_id": "icons", "provider_id": "image-generation", "args": {"size": "32x32"}}

    assert http.post("/v1/toolgroups", json=body).status_code == 200
    refused = http.post("/v1/toolgroups", json=body | {"toolgroup_id": "b", "args": {"size": "huge"}})

    assert "WIDTHxHEIGHT" in assert_error(refused, 400, "invalid_request")["message"]


@pytest.mark.usefixtures("large_images")
def test_large_images_are_read_with_their_turns_but_not_with_the_history(
    http: httpx.Client, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(http, model="recorded/model", toolgroups=TOOLS)
    shown = [say(http, session, f'photogen {{"query": "fox {number}"}}').json() for number in range(4)]
    fetched: list[str] = []
    get = app_fixture.bucket.get

    async def get_noted(service: str, key: str, **options: Any) -> Any:
        fetched.append(key)
        return await get(service, key, **options)

    monkeypatch.setattr(app_fixture.bucket, "get", get_noted)
    app_fixture.made.clear()
    app_fixture.recorder.requests.clear()

    say(http, session, "And what is that?")

    [request] = app_fixture.recorder.requests
    assert request.messages[1] == UserInput('photogen {"query": "fox 0"}')
    assert [each.content for each in request.messages if isinstance(each, ToolResult)] == [NOTE] * 4
    assert len(fetched) == 1  # that of the last turn, which may be resumed
    turns = http.get(session).json()["turns"][:4]
    assert [turn["output_attachments"] for turn in turns] == [turn["output_attachments"] for turn in shown]
    assert all(len(turn["output_attachments"][0]["content"]["uri"]) > 1_000_000 for turn in turns)
