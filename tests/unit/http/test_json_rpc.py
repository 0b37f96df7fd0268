"""Messages of JSON-RPC 2.0: what is accepted, how errors are coded, and what is written."""

import json
from typing import Any

import pytest
from fastapi import Request

from stint.domain.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    NotFound,
    QuotaExceeded,
    RateLimitExceeded,
    StintError,
)
from stint.domain.schema import Schema
from stint.http.errors import KINDS
from stint.http.json_rpc import (
    INTERNAL_ERROR,
    INVALID_MESSAGE,
    INVALID_PARAMS,
    LIMITED,
    METHOD_NOT_FOUND,
    NOT_ALLOWED,
    PARSE_ERROR,
    JsonRpcError,
    JsonRpcMessage,
    answer_error,
    answer_result,
    code_of,
    encode_error,
    encode_notification,
    encode_result,
    is_reply,
    parse_message,
    read_value,
    unknown_method,
)
from stint.http.requests import StrictRequest


class Greeting(Schema):
    text: str = "hello"
    note: str | None = None


def message(**fields: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": "ping"} | fields


def request_of(body: bytes) -> Request:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    return StrictRequest({"type": "http", "method": "POST", "headers": []}, receive)


@pytest.mark.parametrize("found", ["", "a" * 256, 0, -5, 2**63, None])
def test_ids_are_kept(found: Any) -> None:
    assert parse_message(message(id=found)) == JsonRpcMessage("ping", {}, found)


def test_a_message_without_an_id_is_a_notification() -> None:
    value = message()
    del value["id"]
    assert parse_message(value).is_notification
    assert not parse_message(message(id=None)).is_notification


@pytest.mark.parametrize("found", [1.5, True, [], {}, "a" * 257, 2**64, 10**4000])
def test_other_ids_are_refused_without_being_echoed(found: Any) -> None:
    with pytest.raises(JsonRpcError) as caught:
        parse_message(message(id=found))
    assert (caught.value.number, caught.value.message_id, caught.value.param) == (INVALID_MESSAGE, None, "id")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ([message()], INVALID_MESSAGE),
        ([], INVALID_MESSAGE),
        ("ping", INVALID_MESSAGE),
        (None, INVALID_MESSAGE),
        (message(jsonrpc="1.0"), INVALID_MESSAGE),
        (message(jsonrpc=2.0), INVALID_MESSAGE),
        ({"id": 1, "method": "ping"}, INVALID_MESSAGE),
        (message(method=""), INVALID_MESSAGE),
        (message(method=7), INVALID_MESSAGE),
        (message(method="m" * 129), INVALID_MESSAGE),
        (message(params=[1]), INVALID_PARAMS),
        (message(params="x"), INVALID_PARAMS),
    ],
)
def test_malformed_messages_are_refused_with_their_id(value: Any, number: Any) -> None:
    with pytest.raises(JsonRpcError) as caught:
        parse_message(value)
    assert caught.value.number == number
    assert caught.value.message_id == (1 if isinstance(value, dict) else None)


def test_null_params_are_none() -> None:
    assert parse_message(message(params=None)).params == {}


def test_replies_are_told_from_requests() -> None:
    assert is_reply({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert is_reply({"jsonrpc": "2.0", "id": 1, "error": {}})
    assert not is_reply(message(result={}))
    assert not is_reply([])


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a":NaN}', b'"\\ud800"', b"[" * 150 + b"]" * 150])
async def test_what_is_not_json_is_a_parse_error(body: Any) -> None:
    with pytest.raises(JsonRpcError) as caught:
        await read_value(request_of(body))
    assert caught.value.number == PARSE_ERROR


async def test_json_is_read() -> None:
    assert await read_value(request_of(b'{"a":[1]}')) == {"a": [1]}


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (InvalidRequest("Wrong."), INVALID_PARAMS),
        (NotFound("Agent", "a"), INVALID_PARAMS),
        (Forbidden("No."), NOT_ALLOWED),
        (RateLimitExceeded("Slow down."), LIMITED),
        (QuotaExceeded("Spent."), -32011),
        (Conflict("Busy."), -32012),
        (ModelOverloaded("Full."), -32014),
        (ModelError("Broken."), INTERNAL_ERROR),
        (StintError("Lost."), INTERNAL_ERROR),
    ],
)
def test_each_error_has_a_code(error: Any, number: Any) -> None:
    assert code_of(error) == number


def test_a_protocol_has_codes_of_its_own() -> None:
    assert code_of(NotFound("Session", "s"), {"session_not_found": -32001}) == -32001
    assert code_of(NotFound("Agent", "a"), {"session_not_found": -32001}) == INVALID_PARAMS


def test_no_error_is_without_a_code() -> None:
    assert {code_of(StintError("Stored.", code=code)) for code in KINDS} <= {
        INVALID_PARAMS, INVALID_MESSAGE, INTERNAL_ERROR, -32010, -32011, -32012, -32013, -32014
    }  # fmt: skip


def test_an_error_has_the_error_object_as_data() -> None:
    body = json.loads(encode_error(7, NotFound("Session", "s")))
    assert (body["jsonrpc"], body["id"], body["error"]["code"]) == ("2.0", 7, INVALID_PARAMS)
    assert body["error"]["message"].startswith("Session 's' not found")
    assert body["error"]["data"]["code"] == "session_not_found"
    assert body["error"]["data"]["type"] == "not_found"


def test_an_error_names_the_run_that_was_started() -> None:
    error = ModelError("Broken.")
    error.turn_id = "turn-1"
    assert json.loads(encode_error(7, error))["error"]["data"]["turn_id"] == "turn-1"


def test_an_error_may_have_other_data() -> None:
    error = JsonRpcError(-32022, "Unsupported protocol version.", data={"supported": ["2026-07-28"]})
    assert json.loads(encode_error(None, error)) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32022,
            "message": "Unsupported protocol version.",
            "data": {"supported": ["2026-07-28"]},
        },
    }


def test_an_unexpected_error_says_nothing_of_its_cause(caplog: Any) -> None:
    body = json.loads(encode_error(7, ValueError("the password is x")))
    assert body["error"]["code"] == INTERNAL_ERROR
    assert "password" not in json.dumps(body)
    assert "password" in caplog.text


def test_idempotency_sees_an_error_by_its_first_bytes() -> None:
    assert encode_error(1, InvalidRequest("Wrong.")).startswith(b'{"error":')


def test_results_and_notifications_have_no_null_fields() -> None:
    assert encode_result("é", Greeting()) == b'{"jsonrpc":"2.0","id":"\\u00e9","result":{"text":"hello"}}'
    assert encode_notification("note", Greeting()) == b'{"jsonrpc":"2.0","method":"note","params":{"text":"hello"}}'


def test_a_refused_request_says_when_to_try_again() -> None:
    answer = answer_error(1, RateLimitExceeded("Slow down.", retry_after=9))
    assert (answer.status_code, answer.headers["retry-after"]) == (200, "9")
    assert answer.headers["content-type"] == "application/json"
    assert answer_error(1, InvalidRequest("Wrong."), status=400).status_code == 400


def test_a_result_is_an_answer() -> None:
    assert json.loads(bytes(answer_result(3, Greeting()).body))["result"] == {"text": "hello"}


def test_an_unknown_method_names_the_known_ones() -> None:
    error = unknown_method(JsonRpcMessage("x" * 128, {}, 4), ("ping", "tools/list"))
    assert (error.number, error.message_id) == (METHOD_NOT_FOUND, 4)
    assert "ping, tools/list" in error.message
    assert "x" * 100 not in error.message
