"""Requests of tests to agents by A2A, as plain JSON-RPC, and what their answers have."""

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

import httpx

VERSION = {"A2A-Version": "1.0"}
TIME = {"name": "get_time", "description": "Tells the time.", "parameters": []}
CALL = "call: get_time {}"
Body = dict[str, Any]
numbers = count(1)


def rpc(http: httpx.Client, agent: str, method: str, params: Any, **headers: str) -> httpx.Response:
    """Call a method. Headers have underscores in place of dashes."""
    body = {"jsonrpc": "2.0", "id": next(numbers), "method": method, "params": params}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.post(f"/v1/agents/{agent}/a2a", json=body, headers=VERSION | named)


def result_of(response: httpx.Response) -> Body:
    assert response.status_code == 200, response.text
    body = json.loads(response.text)
    assert "result" in body, body
    result: Body = body["result"]
    return result


def error_of(response: httpx.Response, number: int, reason: str) -> Body:
    """Return the error of an answer, which must have a number and the reason of a `google.rpc.ErrorInfo`."""
    assert response.status_code == 200, response.text
    error: Body = json.loads(response.text)["error"]
    assert (error["code"], error["data"][0]["reason"]) == (number, reason), error
    assert error["data"][0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert all(isinstance(value, str) for value in error["data"][0]["metadata"].values())
    assert "Traceback" not in response.text
    return error


def text_message(text: str, **fields: Any) -> Body:
    return message([{"text": text}], **fields)


def message(parts: list[Body], **fields: Any) -> Body:
    return {"messageId": f"m{next(numbers)}", "role": "ROLE_USER", "parts": parts} | fields


def send(
    http: httpx.Client, agent: str, sent: str | Body, *, metadata: Body | None = None, **configuration: Any
) -> Body:
    """Send a message, and return its task."""
    params: Body = {"message": text_message(sent) if isinstance(sent, str) else sent, "configuration": configuration}
    task: Body = result_of(rpc(http, agent, "SendMessage", params | ({"metadata": metadata} if metadata else {})))[
        "task"
    ]
    return task


def stream_items(response: httpx.Response) -> list[Body]:
    """Return the results of a stream's events."""
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    lines = [line[6:] for line in response.text.split("\n") if line.startswith("data: ")]
    return [json.loads(line)["result"] for line in lines]


def state_of(task: Mapping[str, Any]) -> str:
    return str(task["status"]["state"]).removeprefix("TASK_STATE_")


def text_of(task: Mapping[str, Any]) -> str:
    """Return the texts of a task's artifacts."""
    parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
    return "".join(part.get("text", "") for part in parts)


def calls_of(task: Mapping[str, Any]) -> list[Body]:
    """Return the calls that a task waits for."""
    return [part["data"] for part in task["status"]["message"]["parts"] if "data" in part]
