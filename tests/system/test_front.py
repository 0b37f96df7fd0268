import base64
import concurrent.futures
import json
import threading
from typing import Any

import httpx
import pytest
from tests.system.conftest import Api


def event_of(response: httpx.Response) -> dict[str, Any]:
    event: dict[str, Any] = response.json()
    return event


def test_headers_and_queries_keep_all_their_values(api: Api) -> None:
    headers = [("x-many", "1"), ("x-many", "2")]

    event = event_of(api.client.get("/echo/a?tag=x&tag=y&empty=&space=a%20b", headers=headers))

    assert event["multiValueHeaders"]["x-many"] == ["1", "2"]
    assert event["headers"]["x-many"] == "2"
    assert event["multiValueQueryStringParameters"] == {"tag": ["x", "y"], "empty": [""], "space": ["a b"]}
    assert event["queryStringParameters"] == {"tag": "y", "empty": "", "space": "a b"}


def test_absent_parts_of_a_request_are_null(api: Api) -> None:
    event = event_of(api.client.get("/echo/fixed"))

    assert event["queryStringParameters"] is None
    assert event["multiValueQueryStringParameters"] is None
    assert event["pathParameters"] is None
    assert event["stageVariables"] is None
    assert event["body"] is None
    assert event["isBase64Encoded"] is False


def test_path_variables_stay_percent_encoded(api: Api) -> None:
    event = event_of(api.client.get("/echo/a%2Fb/c%20d/e"))

    assert event["resource"] == "/echo/{name}/{proxy+}"
    assert event["path"] == "/echo/a%2Fb/c%20d/e"
    assert event["pathParameters"] == {"name": "a%2Fb", "proxy": "c%20d/e"}


def test_a_static_path_wins_over_a_variable(api: Api) -> None:
    assert event_of(api.client.get("/echo/fixed"))["resource"] == "/echo/fixed"
    assert event_of(api.client.get("/echo/other"))["resource"] == "/echo/{name}"
    assert event_of(api.client.get("/echo/other/"))["resource"] == "/echo/{name}"


def test_the_stage_may_lead_the_path(api: Api) -> None:
    event = event_of(api.client.get("/test/echo/a"))

    assert event["path"] == "/echo/a"
    assert event["requestContext"]["path"] == "/test/echo/a"
    assert event["requestContext"]["stage"] == "test"


def test_the_context_names_the_caller_and_the_request(api: Api) -> None:
    response = api.client.get("/echo/a", headers={"user-agent": "someone"})

    context = event_of(response)["requestContext"]
    assert context["identity"]["sourceIp"] == "127.0.0.1"
    assert context["identity"]["userAgent"] == "someone"
    assert context["requestId"] == response.headers["x-amzn-requestid"]
    assert context["httpMethod"] == "GET"
    assert context["resourcePath"] == "/echo/{name}"


def test_the_trace_of_the_client_is_passed_on_and_given_back(api: Api) -> None:
    trace = "Root=1-67891233-abcdef012345678912345678"

    response = api.client.get("/echo/a", headers={"x-amzn-trace-id": trace})

    assert event_of(response)["headers"]["X-Amzn-Trace-Id"] == trace
    assert response.headers["x-amzn-trace-id"] == trace


def test_a_text_body_travels_as_text(api: Api) -> None:
    event = event_of(api.client.post("/echo/a", content="größer".encode()))

    assert event["body"] == "größer"
    assert event["isBase64Encoded"] is False


def test_a_binary_body_travels_as_base64(api: Api) -> None:
    event = event_of(api.client.post("/echo/a", content=b"\x89PNG\0\xff", headers={"content-type": "image/png"}))

    assert base64.b64decode(event["body"]) == b"\x89PNG\0\xff"
    assert event["isBase64Encoded"] is True


def test_an_answer_may_have_several_values_of_a_header(api: Api) -> None:
    answer = {"statusCode": 202, "headers": {"x-one": 1}, "multiValueHeaders": {"Set-Cookie": ["a=1", "b=2"]}}

    response = api.client.post("/answer", json=answer)

    assert response.status_code == 202
    assert response.headers["x-one"] == "1"
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert response.headers["content-type"] == "application/json"
    assert response.content == b""


def test_a_base64_answer_is_decoded(api: Api) -> None:
    answer = {"statusCode": 200, "body": base64.b64encode(b"\0\xff").decode(), "isBase64Encoded": True}

    assert api.client.post("/answer", json=answer).content == b"\0\xff"


@pytest.mark.parametrize(
    "answer",
    [
        "raise",
        "text",
        [],
        {},
        {"statusCode": "many"},
        {"statusCode": 200, "body": {"not": "a string"}},
        {"statusCode": 200, "headers": ["x"]},
        {"statusCode": 200, "headers": {"x": {"y": 1}}},
        {"statusCode": 200, "body": "***", "isBase64Encoded": True},
    ],
)
def test_what_is_no_proxy_answer_is_a_502(api: Api, answer: object) -> None:
    response = api.client.post("/answer", json=answer)

    assert response.status_code == 502
    assert response.json() == {"why": "Internal server error"}
    assert response.headers["x-from"] == "gateway"


def test_an_unknown_path_or_method_gets_the_gateway_response(api: Api) -> None:
    for method, path in (("GET", "/nowhere"), ("PUT", "/answer"), ("GET", "/test/nowhere")):
        response = api.client.request(method, path)

        assert response.status_code == 404
        assert response.json() == {"none": f"{method} {path}"}


def test_a_buffered_route_ends_at_its_time_out(api: Api) -> None:
    response = api.client.get("/slow")

    assert response.status_code == 504
    assert response.json() == {"why": "Endpoint request timed out"}


@pytest.mark.parametrize("size", [6 * 1024 * 1024, 10 * 1024 * 1024 + 1])
def test_what_api_gateway_or_lambda_cannot_take_is_413(api: Api, size: int) -> None:
    response = api.client.post("/echo/a", content=b"x" * size)

    assert response.status_code == 413


def test_more_requests_than_processes_are_throttled(api: Api) -> None:
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(lambda _: api.client.get("/busy").status_code, range(6)))

    assert statuses[:2] == [200, 200]
    assert statuses[-1] == 429


def test_a_preflight_is_answered_without_a_function(api: Api) -> None:
    response = api.client.options("/echo/a")

    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "https://example.org"
    assert response.headers["access-control-allow-methods"] == "GET"


def test_a_head_request_has_no_body(api: Api) -> None:
    response = api.client.head("/echo/a")

    assert response.status_code == 200
    assert int(response.headers["content-length"]) > 0
    assert response.content == b""


def test_requests_side_by_side_get_their_own_answers(api: Api) -> None:
    lock = threading.Lock()
    seen: dict[str, str] = {}

    def ask(number: int) -> None:
        response = api.client.post(f"/echo/n{number}", content=json.dumps({"number": number}))
        if response.status_code == 429:  # a process that has answered counts until it asks for more work
            return ask(number)
        event = event_of(response)
        with lock:
            seen[event["pathParameters"]["name"]] = event["body"]
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, range(10)))

    assert seen == {f"n{number}": json.dumps({"number": number}) for number in range(10)}


def test_a_websocket_handshake_is_a_request_like_any_other(api: Api) -> None:
    handshake = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}

    event = event_of(
        api.client.get("/echo/fixed", headers=handshake | {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})
    )

    assert event["headers"]["sec-websocket-key"] == "dGhlIHNhbXBsZSBub25jZQ=="
    assert "upgrade" not in event["headers"]


def test_an_address_of_ipv6_is_passed_on_as_a_name(api: Api) -> None:
    event = event_of(api.client.get("/echo/fixed", headers={"host": "[::1]:9300"}))

    assert event["headers"]["host"] == event["requestContext"]["domainName"] == "localhost:9300"
