from typing import Any

import pytest
from tests.runtime.harness import base64, proxy_event

from stint_runtime.client import Invocation
from stint_runtime.context import LambdaContext
from stint_runtime.scope import http_scope, is_proxy_event, take_body

CONTEXT = LambdaContext(Invocation("id", b"", {}, received_ms=0), {}, None)


def scope(event: dict[str, Any]) -> dict[str, Any]:
    return dict(http_scope(event, CONTEXT))


def test_the_scope_holds_the_request() -> None:
    event = proxy_event("post", "/v1/agents", "/Prod", multiValueHeaders={"Host": ["h:81"], "X-A": ["1", "2"]})

    found = scope(event)

    assert found["type"] == "http"
    assert found["method"] == "POST"
    assert found["headers"] == [(b"host", b"h:81"), (b"x-a", b"1"), (b"x-a", b"2")]
    assert found["client"] == ("192.0.2.7", 0)
    assert found["server"] == ("h", 81)
    assert found["scheme"] == "https"
    assert found["aws.event"] is event
    assert found["aws.context"] is CONTEXT


@pytest.mark.parametrize(
    ("fields", "root_path", "path", "raw_path"),
    [
        ({"path": "/v1/a"}, "", "/v1/a", "/v1/a"),
        ({"path": "/v1/a", "stage": "/Prod"}, "/Prod", "/Prod/v1/a", "/Prod/v1/a"),
        ({"path": "/v1/a", "stage": "/v1"}, "/v1", "/v1/v1/a", "/v1/v1/a"),
        ({"path": "/a%20b%2Fc", "stage": "/Prod"}, "/Prod", "/Prod/a b/c", "/Prod/a%20b%2Fc"),
        ({"path": "/ä"}, "", "/ä", "/%C3%A4"),
        ({"path": "/", "resource": "/", "stage": "/Prod"}, "/Prod", "/Prod/", "/Prod/"),
        ({"path": "/v1/a/", "stage": "/Prod"}, "/Prod", "/Prod/v1/a/", "/Prod/v1/a/"),
        (
            {"path": "/base/v1/agents/7", "resource": "/v1/agents/{id}", "pathParameters": {"id": "7"}},
            "/base",
            "/base/v1/agents/7",
            "/base/v1/agents/7",
        ),
        ({"path": "/x", "pathParameters": {"proxy": "/x"}, "stage": "/s"}, "/s", "/s/x", "/s/x"),
        ({"path": "/x", "pathParameters": None, "stage": "/s"}, "/s", "/s/x", "/s/x"),
        ({"path": "/x", "requestContext": {"path": "/elsewhere"}}, "", "/x", "/x"),
        ({"path": "/x", "requestContext": {}}, "", "/x", "/x"),
    ],
)
def test_the_mount_is_the_root_path(fields: dict[str, Any], root_path: str, path: str, raw_path: str) -> None:
    found = scope(proxy_event(**fields))

    assert (found["root_path"], found["path"], found["raw_path"].decode()) == (root_path, path, raw_path)


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        ({}, b""),
        ({"multiValueQueryStringParameters": {"a": ["1", "2"], "b": ["x y&z=ä"]}}, b"a=1&a=2&b=x+y%26z%3D%C3%A4"),
        ({"queryStringParameters": {"a": "1"}}, b"a=1"),
        ({"queryStringParameters": {"a": "2"}, "multiValueQueryStringParameters": {"a": ["1", "2"]}}, b"a=1&a=2"),
    ],
)
def test_query_values_are_encoded_again(fields: dict[str, Any], query: bytes) -> None:
    assert scope(proxy_event(**fields))["query_string"] == query


def test_single_value_headers_serve_when_there_are_no_others() -> None:
    event = proxy_event(multiValueHeaders=None, headers={"X-Name": "Zoë", "X-Kanji": "字"})

    assert scope(event)["headers"] == [(b"x-name", "Zoë".encode("latin-1")), (b"x-kanji", "字".encode())]


@pytest.mark.parametrize(
    ("body", "encoded", "data"),
    [
        (None, False, b""),
        ("", False, b""),
        ("zoë", False, "zoë".encode()),
        (base64(b"\x00\xff"), True, b"\x00\xff"),
    ],
)
def test_the_body_is_decoded(body: str | None, encoded: bool, data: bytes) -> None:
    assert take_body(proxy_event(body=body, isBase64Encoded=encoded)) == data


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "text",
        {},
        {"Records": []},
        {"version": "2.0", "rawPath": "/", "requestContext": {"http": {"method": "GET", "path": "/"}}},
        {"requestContext": None, "httpMethod": "GET", "path": "/"},
    ],
)
def test_other_events_are_told_apart(event: object) -> None:
    assert not is_proxy_event(event)
    assert is_proxy_event(proxy_event())
