"""Requests of tests to the Responses API over plain HTTP, and with OpenAI's client."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import httpx2
from openai import OpenAI
from tests.api.app_fixture import Served

RESPONSES = "/v1/responses"
MODEL = "scripted/demo"
UNKNOWN = f"resp_{'0' * 32}"
Body = dict[str, Any]
WEATHER: Body = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TIME: Body = {"type": "function", "name": "get_time", "parameters": {}}


@contextmanager
def openai_client(server: Served, base: str = "/v1") -> Iterator[OpenAI]:
    """Yield OpenAI's client, without its retries."""
    http = httpx2.Client(trust_env=False)
    with OpenAI(base_url=f"{server.url}{base}", api_key="none", max_retries=0, http_client=http) as client:
        yield client


def post(http: httpx.Client, said: Any = "Hello", **fields: Any) -> httpx.Response:
    """Send a request for a response, without the fields that are None."""
    body = {"model": MODEL, "input": said} | fields
    return http.post(RESPONSES, json={name: value for name, value in body.items() if value is not None})


def respond(http: httpx.Client, said: Any = "Hello", **fields: Any) -> Body:
    """Create a response, and return it."""
    answer = post(http, said, **fields)
    assert answer.status_code == 200, answer.text
    body: Body = answer.json()
    return body


def follow(http: httpx.Client, said: Any = "Hello", **fields: Any) -> list[Body]:
    """Create a streamed response, and return its events."""
    answer = post(http, said, stream=True, **fields)
    assert answer.status_code == 200, answer.text
    return events_of(answer.text)


def events_of(text: str) -> list[Body]:
    *blocks, rest = text.split("\n\n")
    assert rest == ""
    datas = [block.partition("data: ")[2] for block in blocks if not block.startswith(":")]
    return [json.loads(data) for data in datas if data != "[DONE]"]


def kinds(events: list[Body]) -> list[str]:
    """Return the types of events without their common prefix. Runs of the same type are listed once."""
    names = [str(event["type"]).removeprefix("response.") for event in events]
    return [name for place, name in enumerate(names) if place == 0 or name != names[place - 1]]


def get(http: httpx.Client, response_id: str, query: str = "") -> Body:
    answer = http.get(f"{RESPONSES}/{response_id}{query}")
    assert answer.status_code == 200, answer.text
    body: Body = answer.json()
    return body


def text_of(response: Body) -> str:
    """Return the text of a response's messages."""
    messages = [item for item in response["output"] if item["type"] == "message"]
    return "".join(part.get("text", "") for item in messages for part in item["content"])


def types_of(response: Body) -> list[str]:
    return [item["type"] for item in response["output"]]


def item_of(response: Body, kind: str) -> Body:
    """Return the only item of a type."""
    [item] = [item for item in response["output"] if item["type"] == kind]
    found: Body = item
    return found


def output_for(call: Body, text: Any = "sunny") -> Body:
    """Return the client's output for a call."""
    return {"type": "function_call_output", "call_id": call["call_id"], "output": text}


def user(content: Any) -> Body:
    return {"role": "user", "content": content}


def assert_refused(answer: httpx.Response, status: int, code: str) -> Body:
    """Assert that the response is the standard error body and tells clients not to retry."""
    assert answer.status_code == status, answer.text
    error: Body = answer.json()["error"]
    assert error["code"] == code, error
    assert answer.headers["x-should-retry"] == "false"
    return error
