"""Rules that the specification of A2A 1.0 requires of a server of the JSON-RPC binding, by the names of its test kit.

The test kit itself is on no package registry, so others run it. Rules that the tests of tasks show already
(`test_a2a_tasks.py`) are not repeated here.
"""

import json
import re
from typing import Any

import httpx
import pytest
from tests.api.a2a_client import (
    CALL,
    TIME,
    VERSION,
    Body,
    error_of,
    result_of,
    rpc,
    send,
    state_of,
    stream_items,
    text_message,
)
from tests.api.api_client import create_agent

CAMEL = re.compile(r"[a-z][a-zA-Z0-9]*")
OPAQUE = {"metadata", "data", "schemes"}
"""Fields whose keys are not those of the protocol."""

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def agent(http: httpx.Client) -> str:
    return create_agent(http, client_tools=[TIME], name="Clock", metadata={"description": "Knows the time."})


def names_in(value: Any) -> set[str]:
    """Return the names of all fields of the protocol in a value."""
    if isinstance(value, list):
        return {name for each in value for name in names_in(each)}
    if not isinstance(value, dict):
        return set()
    return {*value, *(name for key, each in value.items() if key not in OPAQUE for name in names_in(each))}


def post(http: httpx.Client, agent: str, content: bytes | str, **headers: str) -> httpx.Response:
    sent = VERSION | {"content-type": "application/json"} | headers
    return http.post(f"/v1/agents/{agent}/a2a", content=content, headers=sent)


@pytest.mark.parametrize(
    ("body", "number", "reason", "echoed"),
    [
        ("{", -32700, "JSON_PARSE_ERROR", None),
        ("", -32700, "JSON_PARSE_ERROR", None),
        ("[]", -32600, "INVALID_REQUEST", None),
        ("1", -32600, "INVALID_REQUEST", None),
        ('{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}', -32600, "INVALID_REQUEST", 1),
        ('{"jsonrpc": "2.0", "id": 1}', -32600, "INVALID_REQUEST", 1),
        ('{"jsonrpc": "2.0", "id": true, "method": "GetTask"}', -32600, "INVALID_REQUEST", None),
        ('{"jsonrpc": "2.0", "id": {}, "method": "GetTask"}', -32600, "INVALID_REQUEST", None),
        ('{"jsonrpc": "2.0", "id": 1.5, "method": "GetTask"}', -32600, "INVALID_REQUEST", None),
        ('{"jsonrpc": "2.0", "method": "GetTask"}', -32600, "INVALID_REQUEST", None),
        ('{"jsonrpc": "2.0", "id": "a", "method": "getTask"}', -32601, "METHOD_NOT_FOUND", "a"),
        ('{"jsonrpc": "2.0", "id": "a", "method": "GetTask", "params": []}', -32602, "INVALID_PARAMS", "a"),
        ('{"jsonrpc": "2.0", "id": "a", "method": "GetTask", "params": {"id": 1}}', -32602, "INVALID_PARAMS", "a"),
        ('{"jsonrpc": "2.0", "id": "a", "method": "GetTask"}', -32602, "INVALID_PARAMS", "a"),
    ],
)
def test_malformed_calls_have_the_errors_of_json_rpc(
    http: httpx.Client, agent: str, body: str, number: int, reason: str, echoed: str | int | None
) -> None:
    """JSONRPC-FMT-001, JSONRPC-ERR-001, CORE-ERR-001, CORE-ERR-002."""
    answer = post(http, agent, body)

    error_of(answer, number, reason)
    assert (answer.json()["jsonrpc"], answer.json()["id"]) == ("2.0", echoed)
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "method", ["message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/pushNotificationConfig/set"]
)
def test_methods_of_an_older_version_name_the_supported_one(http: httpx.Client, agent: str, method: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})

    for headers in ({}, {"A2A-Version": ""}, {"A2A-Version": "0.3"}):
        error = error_of(post(http, agent, body, **headers), -32601, "METHOD_NOT_FOUND")
        assert "A2A 1.0" in error["message"]


@pytest.mark.parametrize("version", ["", "0.3", "2.0", "1", "1.1", "one", "1.0.0.0", "1.0, 0.3"])
def test_other_versions_are_refused(http: httpx.Client, agent: str, version: str) -> None:
    """VER-SERVER-002, VER-SERVER-003: an empty version is 0.3."""
    answer = rpc(http, agent, "ListTasks", {}, A2A_Version=version)

    error = error_of(answer, -32009, "VERSION_NOT_SUPPORTED")
    assert error["data"][0]["metadata"]["supported"] == "1.0"


def test_the_patch_of_a_version_does_not_count(http: httpx.Client, agent: str) -> None:
    """VER-CLIENT-002. A client may send the version as a parameter, too."""
    result_of(rpc(http, agent, "ListTasks", {}, A2A_Version="1.0.7"))
    body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
    answer = http.post(f"/v1/agents/{agent}/a2a?A2A-Version=1.0", json=body)
    result_of(answer)
    assert "x-stint-warning" not in answer.headers


@pytest.mark.parametrize(
    ("method", "number", "reason"),
    [
        ("CreateTaskPushNotificationConfig", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("GetTaskPushNotificationConfig", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("ListTaskPushNotificationConfigs", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("DeleteTaskPushNotificationConfig", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("GetExtendedAgentCard", -32004, "UNSUPPORTED_OPERATION"),
    ],
)
def test_capabilities_that_the_card_lacks_have_their_errors(
    http: httpx.Client, agent: str, method: str, number: int, reason: str
) -> None:
    """CORE-CAP-001, CORE-CAP-003."""
    error_of(rpc(http, agent, method, {"taskId": "x"}), number, reason)


def test_a_push_configuration_of_a_message_is_refused(http: httpx.Client, agent: str) -> None:
    """CORE-CAP-001."""
    configuration = {"taskPushNotificationConfig": {"url": "https://example.com"}}

    answer = rpc(http, agent, "SendMessage", {"message": text_message("Hi"), "configuration": configuration})

    error_of(answer, -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED")


def test_names_enums_and_times_have_the_form_of_protojson(http: httpx.Client, agent: str) -> None:
    """DM-SERIAL-001, DM-SERIAL-002, DM-SERIAL-003, DM-TASK-002, DM-MSG-002."""
    waiting = send(http, agent, CALL)
    shown = [waiting, result_of(rpc(http, agent, "ListTasks", {"historyLength": 5, "includeArtifacts": True}))]
    shown += stream_items(rpc(http, agent, "SendStreamingMessage", {"message": text_message("Hi")}))
    shown.append(http.get(f"/v1/agents/{agent}/a2a/.well-known/agent-card.json").json())

    assert [name for name in names_in(shown) if not CAMEL.fullmatch(name) and name not in ("apiKey", "openId")] == []
    text = json.dumps(shown)
    assert set(re.findall(r'"role": "(\w+)"', text)) == {"ROLE_USER", "ROLE_AGENT"}
    assert set(re.findall(r'"state": "(\w+)"', text)) <= {
        "TASK_STATE_INPUT_REQUIRED",
        "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",
    }
    times = re.findall(r'"timestamp": "([^"]+)"', text)
    assert times
    assert all(TIMESTAMP.fullmatch(each) for each in times)


def test_required_fields_are_there(http: httpx.Client, agent: str) -> None:
    """DM-TASK-001, DM-MSG-001, DM-PART-001, DM-ART-001, DM-STATUS-001, CORE-MULTI-001a, CORE-MULTI-003."""
    task = send(http, agent, "Hi")
    [artifact], [message] = task["artifacts"], task["history"]

    assert {"id", "contextId", "status"} <= set(task)
    assert artifact["artifactId"]
    assert message["messageId"]
    for part in (*artifact["parts"], *message["parts"]):
        assert len({"text", "raw", "url", "data"} & set(part)) == 1


@pytest.mark.parametrize("parts", [[], [{}], [{"text": "a", "raw": "YQ=="}], [{"text": None}]])
def test_a_part_has_exactly_one_content(http: httpx.Client, agent: str, parts: list[Body]) -> None:
    """DM-PART-001, DM-SERIAL-004."""
    sent = {"messageId": "m", "role": "ROLE_USER", "parts": parts}

    error_of(rpc(http, agent, "SendMessage", {"message": sent}), -32602, "INVALID_PARAMS")


@pytest.mark.parametrize("missing", ["messageId", "role", "parts"])
def test_a_message_without_a_required_field_is_refused(http: httpx.Client, agent: str, missing: str) -> None:
    """DM-SERIAL-004."""
    sent = text_message("Hi")
    sent.pop(missing)

    error = error_of(rpc(http, agent, "SendMessage", {"message": sent}), -32602, "INVALID_PARAMS")
    assert missing in json.dumps(error["data"]) or missing in error["message"]


def test_unknown_fields_are_ignored(http: httpx.Client, agent: str) -> None:
    """DM-SERIAL-005."""
    sent = text_message("Hi", later="x") | {"parts": [{"text": "Hi", "later": {"a": 1}}]}

    assert state_of(result_of(rpc(http, agent, "SendMessage", {"message": sent, "later": []}))["task"]) == "COMPLETED"


def test_two_subscriptions_of_a_task_get_the_same_events(http: httpx.Client, agent: str) -> None:
    """STREAM-SUB-001, STREAM-ORDER-003."""
    waiting = send(http, agent, CALL)

    one, two = (stream_items(rpc(http, agent, "SubscribeToTask", {"id": waiting["id"]})) for _ in range(2))

    assert one == two
    assert set(one[0]) == {"task"}


def test_a_card_has_its_required_fields_and_can_be_cached(http: httpx.Client, agent: str) -> None:
    """CARD-DISC-001, CARD-PROTO-001, CARD-PROTO-002, CARD-STRUCT-001, CARD-CACHE-001, CARD-CACHE-002."""
    url = f"/v1/agents/{agent}/a2a/.well-known/agent-card.json"
    answer = http.get(url)
    card = answer.json()

    required = {"name", "description", "supportedInterfaces", "version", "capabilities", "skills"}
    assert required | {"defaultInputModes", "defaultOutputModes"} <= set(card)
    [interface] = card["supportedInterfaces"]
    assert interface == {
        "url": f"{str(http.base_url).rstrip('/')}/v1/agents/{agent}/a2a",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
    }
    assert card["skills"][0]["tags"]
    assert "max-age" in answer.headers["cache-control"]
    again = http.get(url, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
