"""The requests of the Open Responses compliance suite that need no WebSocket, and of branches of it, all at once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.openresponses.frames import check_stream
from tests.system.run_process import Run

MODEL = "scripted/demo"
Json = dict[str, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="  # 1x1, PNG
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "The city"}},
        "required": ["location"],
    },
}


@dataclass(frozen=True)
class Client:
    """The suite's runner: its requests, and its reading of streams."""

    http: httpx.AsyncClient

    async def post(self, path: str, body: Json) -> Json:
        answer = await self.http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        document: Json = answer.json()
        return document

    async def create(self, *turns: str | Json, **other: Any) -> Json:
        return await self.post("/responses", {"model": MODEL, "input": items(*turns), "stream": False, **other})

    async def stream(self, *turns: str | Json, **other: Any) -> list[Json]:
        answer = await self.http.post(
            "/responses", json={"model": MODEL, "input": items(*turns), "stream": True, **other}
        )
        assert answer.status_code == 200, answer.text
        return check_stream(answer.content)


def items(*turns: str | Json) -> list[Json]:
    """A text is a message of the user."""
    return [message("user", turn) if isinstance(turn, str) else turn for turn in turns]


def message(role: str, content: str | list[Json], **other: Any) -> Json:
    return {"type": "message", "role": role, "content": content, **other}


def answered(response: Json) -> str:
    """The text of a completed response."""
    assert response["status"] == "completed", response
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


async def basic_response(client: Client) -> None:
    response = await client.create("Say hello in exactly 3 words.")

    assert answered(response).startswith("You said: Say hello in exactly 3 words.")


async def assistant_phase(client: Client) -> None:
    history = [
        message("user", "Find the bug."),
        message("assistant", "I look at the parser first.", phase="commentary"),
        message("assistant", "It is in the parser.", phase="final_answer"),
    ]

    assert answered(await client.create(*history, "Which line?"))


async def streaming_response(client: Client) -> None:
    events = await client.stream("Count from 1 to 5.")

    deltas = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert events[-1]["type"] == "response.completed"
    assert answered(events[-1]["response"]) == deltas != ""


async def system_prompt(client: Client) -> None:
    pirate = message("system", "You are a pirate. Always respond in pirate speak.")

    assert answered(await client.create(pirate, "Say hello."))


async def tool_calling(client: Client) -> None:
    response = await client.create("Get weather in San Francisco, please.", tools=[WEATHER])

    (call,) = response["output"]
    assert (call["type"], call["name"], call["status"]) == ("function_call", "get_weather", "completed")
    assert response["tools"] == [{**WEATHER, "strict": None}]


async def tool_calling_streaming(client: Client) -> None:
    events = await client.stream("Get weather in San Francisco, please.", tools=[WEATHER])

    names = [event["type"] for event in events]
    assert names[2] == "response.output_item.added"
    assert "response.function_call_arguments.delta" in names
    assert names[-3:] == [
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]


async def function_call_round_trip(client: Client) -> None:
    question = "Get weather in San Francisco, please."
    (call,) = (await client.create(question, tools=[WEATHER]))["output"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "15 degrees, foggy"}

    response = await client.create(question, call, output, tools=[WEATHER])

    assert answered(response) == "get_weather answered: 15 degrees, foggy"


async def previous_response_id(client: Client) -> None:
    first = await client.create("My name is Alice.")

    second = await client.create("What is my name?", previous_response_id=first["id"])

    assert second["previous_response_id"] == first["id"]
    assert answered(second) == "You said: What is my name?"  # without the introduction of a first answer


async def image_input(client: Client) -> None:
    parts = [
        {"type": "input_text", "text": "What do you see in this image?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
    ]

    assert "(with 1 image)" in answered(await client.create(message("user", parts)))


async def file_input(client: Client) -> None:
    parts = [
        {"type": "input_text", "text": "What is in this file?"},
        {"type": "input_file", "filename": "note.txt", "file_data": "data:text/plain;base64,dGhlIGNvZGUgaXMgNDI="},
    ]

    assert "the code is 42" in answered(await client.create(message("user", parts)))


async def multi_turn(client: Client) -> None:
    history = [message("user", "My name is Alice."), message("assistant", "Hello Alice!")]

    assert answered(await client.create(*history, "What is my name?"))


async def compact_response(client: Client) -> None:
    history = [message("user", "My name is Alice."), message("assistant", "Hello Alice!")]
    body = {"model": MODEL, "prompt_cache_key": "compliance", "input": history}

    compacted = await client.post("/responses/compact", body)

    assert compacted["object"] == "response.compaction"
    assert "compaction" in [item["type"] for item in compacted["output"]]
    assert answered(await client.create(*compacted["output"], "Go on.", tools=[]))


async def compact_missing_model(client: Client) -> None:
    answer = await client.http.post("/responses/compact", json={"input": items("Hello")})

    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["param"] == "model"


async def websocket_is_refused(client: Client) -> None:
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    answer = await client.http.get("/responses", headers=upgrade | {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})

    assert answer.status_code in (400, 426)
    assert "WebSocket" in answer.json()["error"]["message"]


CASES: dict[str, Callable[[Client], Awaitable[None]]] = {
    each.__name__: each
    for each in (
        basic_response,
        assistant_phase,
        streaming_response,
        system_prompt,
        tool_calling,
        tool_calling_streaming,
        function_call_round_trip,
        previous_response_id,
        image_input,
        file_input,
        multi_turn,
        compact_response,
        compact_missing_model,
        websocket_is_refused,
    )
}


@pytest.fixture(scope="module")
def outcomes(responses_run: Run) -> dict[str, BaseException | None]:
    """Return the outcome of each case. All are started at once, as in the suite's runner."""
    return asyncio.run(begin_all(responses_run.url))


async def begin_all(url: str) -> dict[str, BaseException | None]:
    headers = {"authorization": "Bearer key"}
    async with httpx.AsyncClient(base_url=f"{url}/v1", headers=headers, trust_env=False, timeout=50) as http:
        client = Client(http)
        ended = await asyncio.gather(*(case(client) for case in CASES.values()), return_exceptions=True)
    return dict(zip(CASES, ended, strict=True))


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_suite_passes_with_everything_begun_at_once(outcomes: dict[str, BaseException | None], case: str) -> None:
    outcome = outcomes[case]
    if outcome is not None:
        raise outcome
