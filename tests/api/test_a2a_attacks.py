"""Hostile calls of A2A: sizes, depths, texts that break streams, ids and tokens of others. None is a 500."""

import base64
import json
from typing import Any

import httpx
import pytest
from tests.api.a2a_client import (
    CALL,
    TIME,
    VERSION,
    Body,
    calls_of,
    error_of,
    message,
    result_of,
    rpc,
    send,
    stream_items,
    text_message,
)
from tests.api.api_client import create_agent

INJECTION = 'a\r\nid: 1\n\nevent: error\rdata: {"error":{}}\n\n\u2028id: 2\u2029\x85data: x\x0b\x0c'
METHODS = ("SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask")
VALUES: list[Any] = [None, True, 0, -1, 1.5, 10**30, "", "x" * 600, "\u0000", "\u2028", [], [[]], {}, {"a": {}}]


@pytest.fixture
def agent(http: httpx.Client) -> str:
    return create_agent(http, client_tools=[TIME])


def pack(*values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("method", METHODS)
def test_no_value_of_any_field_is_an_error_of_the_server(http: httpx.Client, agent: str, method: str) -> None:
    fields = ("message", "configuration", "metadata", "id", "contextId", "status", "pageSize", "pageToken")
    nested = ("messageId", "contextId", "taskId", "role", "parts", "metadata", "extensions", "referenceTaskIds")
    settings = ("acceptedOutputModes", "historyLength", "returnImmediately", "taskPushNotificationConfig")
    sent: list[Body] = []
    for value in VALUES:
        sent += [{"message": text_message("Hi"), name: value} for name in (*fields, "statusTimestampAfter", "tenant")]
        sent += [{"message": text_message("Hi") | {name: value}} for name in nested]
        sent += [{"message": text_message("Hi"), "configuration": {name: value}} for name in settings]
        sent += [{"message": message([{name: value}])} for name in ("text", "raw", "url", "data", "mediaType")]

    for params in sent if method.startswith("Send") else [each for each in sent if set(each) - {"message"}]:
        answer = rpc(http, agent, method, params)
        assert answer.status_code == 200, (params, answer.text)
        assert "-32603" not in answer.text, (params, answer.text)
        assert "Traceback" not in answer.text


def test_no_text_breaks_the_frames_of_a_stream(http: httpx.Client, agent: str) -> None:
    body = {"jsonrpc": "2.0", "id": INJECTION, "method": "SendStreamingMessage"}
    sent = {"message": text_message(f"say: {INJECTION}", messageId=INJECTION)}

    answer = http.post(f"/v1/agents/{agent}/a2a", json=body | {"params": sent}, headers=VERSION)

    for line in answer.text.splitlines():  # also at the line breaks of Unicode
        assert line.startswith(("data: {", ": keep-alive")) or not line, line
    items = stream_items(answer)
    assert "task" in items[0]
    assert "statusUpdate" in items[-1]


@pytest.mark.parametrize(
    "task_id",
    [
        ".",
        "a.b",
        "01990000-0000-7000-8000-000000000000",
        "01990000-0000-7000-8000-000000000000.01990000-0000-7000-8000-000000000000",
        "../../../session/x",
        "01990000-0000-7000-8000-000000000000.#",
        "٣" * 36 + "." + "٣" * 36,
    ],
)
def test_ids_that_nobody_has_are_unknown(http: httpx.Client, agent: str, task_id: str) -> None:
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        error_of(rpc(http, agent, method, {"id": task_id}), -32001, "TASK_NOT_FOUND")
    sent = {"message": text_message("Hi", taskId=task_id)}
    error_of(rpc(http, agent, "SendMessage", sent), -32001, "TASK_NOT_FOUND")


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "é",
        "====",
        pack(),
        pack("a", "b", 1),
        pack("01990000-0000-7000-8000-000000000000", "", -1),
        pack("01990000-0000-7000-8000-000000000000", "", True),
        pack("01990000-0000-7000-8000-000000000000", "", 10**12),
        pack("01990000-0000-7000-8000-000000000000", None, 1),
        base64.urlsafe_b64encode(b"[" * 300).decode(),
    ],
)
def test_a_token_of_no_page_is_refused(http: httpx.Client, agent: str, token: str) -> None:
    error = error_of(rpc(http, agent, "ListTasks", {"pageToken": token}), -32602, "INVALID_PARAMS")

    assert error["data"][0]["metadata"]["param"] == "pageToken"


def test_a_token_of_another_agents_session_shows_nothing_of_it(http: httpx.Client, agent: str) -> None:
    other = create_agent(http)
    task = send(http, other, "say: marmalade")
    turn_id, session_id = task["id"].split(".")

    for place in (pack(session_id, "", 0), pack(session_id, turn_id, 0)):
        answer = rpc(http, agent, "ListTasks", {"pageToken": place, "historyLength": 9, "includeArtifacts": True})
        assert "marmalade" not in answer.text
        assert answer.status_code == 200


def test_a_token_of_another_context_is_refused(http: httpx.Client, agent: str) -> None:
    first = send(http, agent, "Hi")
    send(http, agent, text_message("Hi", contextId=first["contextId"]))
    page = result_of(rpc(http, agent, "ListTasks", {"contextId": first["contextId"], "pageSize": 1}))

    params = {"contextId": send(http, agent, "Hi")["contextId"], "pageToken": page["nextPageToken"]}

    error_of(rpc(http, agent, "ListTasks", params), -32602, "INVALID_PARAMS")


@pytest.mark.parametrize(("depth", "number"), [(50, None), (200, -32700), (50_000, -32700)])
def test_deep_values_are_kept_or_refused(http: httpx.Client, agent: str, depth: int, number: int | None) -> None:
    data = "[" * depth + "]" * depth
    sent = f'{{"messageId": "m", "role": "ROLE_USER", "parts": [{{"data": {data}}}]}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {{"message": {sent}}}}}'

    answer = http.post(f"/v1/agents/{agent}/a2a", content=body, headers=VERSION | {"content-type": "application/json"})

    assert answer.json().get("error", {}).get("code") == number, answer.text


def test_a_message_with_too_many_parts_is_refused(http: httpx.Client, agent: str) -> None:
    wide = {"message": message([{"text": "x"}] * 25_000)}

    error_of(rpc(http, agent, "SendMessage", wide), -32602, "INVALID_PARAMS")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/a",
        "http://169.254.169.254/latest",
        "http://127.0.0.1:1/a",
        "javascript:1",
    ],
)
@pytest.mark.parametrize("media_type", ["image/png", "text/plain"])
def test_urls_that_the_guard_refuses_are_not_fetched(http: httpx.Client, agent: str, url: str, media_type: str) -> None:
    sent = {"message": message([{"text": "Hi"}, {"url": url, "mediaType": media_type}])}

    answer = rpc(http, agent, "SendMessage", sent)

    assert answer.json()["error"]["code"] == -32602, answer.text


def test_a_call_of_another_task_is_not_answered(http: httpx.Client, agent: str) -> None:
    mine, others = send(http, agent, CALL), send(http, agent, CALL)
    parts = [{"data": {"callId": calls_of(others)[0]["callId"], "result": "x"}}]

    answer = rpc(http, agent, "SendMessage", {"message": message(parts, taskId=mine["id"])})

    if calls_of(others)[0]["callId"] != calls_of(mine)[0]["callId"]:
        error_of(answer, -32602, "INVALID_PARAMS")
    still = result_of(rpc(http, agent, "GetTask", {"id": others["id"]}))
    assert still["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
