"""Revisions of MCP by their headers and `_meta`, and what a client can do."""

from typing import Any

import pytest

from stint.http.json_rpc import JsonRpcError, JsonRpcMessage
from stint.mcp_server.answers import accepts_stream
from stint.mcp_server.revisions import (
    CAPABILITIES_KEY,
    HEADER_MISMATCH,
    MODERN,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    McpClient,
    can_elicit,
    decode_header,
    read_client,
)

HEADERS = [("mcp-protocol-version", MODERN), ("mcp-method", "ping")]
META = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}


def message(meta: Any = META, method: Any = "ping", **params: Any) -> Any:
    given = {} if meta is None else {"_meta": meta}
    return JsonRpcMessage(method, {**given, **params}, 1)


@pytest.mark.parametrize(
    ("headers", "meta"),
    [
        ([], None),
        ([], {}),
        ([], "no object"),
        ([("mcp-protocol-version", "2025-11-25")], None),
        ([("mcp-protocol-version", "2025-06-18")], {"progressToken": 1}),
    ],
)
def test_a_message_of_the_older_revision_needs_nothing(headers: Any, meta: Any) -> None:
    assert read_client(message(meta), headers) == McpClient()


def test_a_message_of_the_newer_revision_says_what_its_client_can_do() -> None:
    assert read_client(message(), HEADERS) == McpClient(is_modern=True)
    asking = META | {CAPABILITIES_KEY: {"elicitation": {"form": {}}}}
    assert read_client(message(asking), HEADERS).elicits


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18"])
def test_an_older_header_with_a_newer_body_is_refused(revision: str) -> None:
    with pytest.raises(JsonRpcError) as caught:
        read_client(message(), [("mcp-protocol-version", revision)])
    assert caught.value.number == HEADER_MISMATCH


def test_a_notification_needs_no_capabilities() -> None:
    notification = JsonRpcMessage("notifications/cancelled", {}, is_notification=True)
    assert read_client(notification, HEADERS).is_modern
    with pytest.raises(JsonRpcError) as caught:
        read_client(notification, [("mcp-protocol-version", "2030-01-01")])
    assert caught.value.number == UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("headers", "meta", "number"),
    [
        ([], META, HEADER_MISMATCH),
        (HEADERS[:1], META, HEADER_MISMATCH),
        ([*HEADERS, HEADERS[0]], META, HEADER_MISMATCH),
        ([HEADERS[0], ("mcp-method", "Ping")], META, HEADER_MISMATCH),
        (HEADERS, None, -32602),
        (HEADERS, META | {VERSION_KEY: 3}, -32602),
        (HEADERS, META | {CAPABILITIES_KEY: []}, -32602),
        ([("mcp-protocol-version", "1")], None, UNSUPPORTED_VERSION),
        ([("mcp-protocol-version", "1"), HEADERS[1]], META | {VERSION_KEY: "1"}, UNSUPPORTED_VERSION),
    ],
)
def test_headers_and_body_are_checked(headers: Any, meta: Any, number: Any) -> None:
    with pytest.raises(JsonRpcError) as caught:
        read_client(message(meta), headers)
    assert caught.value.number == number


def test_an_unsupported_version_is_not_echoed_at_length() -> None:
    with pytest.raises(JsonRpcError) as caught:
        read_client(message(None), [("mcp-protocol-version", "x" * 5_000)])
    assert len(caught.value.message) < 300
    assert len(caught.value.data["requested"]) < 100


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("a", "a"),
        ("=?base64?w6k=?=", "é"),
        ("=?base64?w6l=?=", None),
        ("=?base64?/w==?=", None),
        ("=?base64?!?=", None),
    ],
)
def test_headers_may_be_encoded(value: Any, text: Any) -> None:
    assert decode_header(value) == text


@pytest.mark.parametrize(
    ("declared", "can"), [({}, True), ({"form": {}}, True), ({"url": {}}, False), (True, False), (None, False)]
)
def test_forms_need_the_capability(declared: Any, can: Any) -> None:
    assert can_elicit({"elicitation": declared}) is can


@pytest.mark.parametrize(
    ("accept", "streams"),
    [
        ("", False),
        ("application/json", False),
        ("*/*", False),
        ("application/json, text/event-stream", True),
        ("Text/Event-Stream;q=0.5", True),
        ("text/event-stream;q=0", False),
        ("text/event-streams", False),
    ],
)
def test_a_stream_is_for_who_accepts_it(accept: Any, streams: Any) -> None:
    assert accepts_stream(accept) is streams
