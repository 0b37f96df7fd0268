import re
from typing import Any

import httpx
import pytest
from tests.api.api_client import (
    JSON,
    WEATHER,
    assert_error,
    create_agent,
    create_session,
    open_session,
    say,
    turn,
    turns_of,
)
from tests.api.app_fixture import AppFixture

from stint.domain.ids import new_id

ABSENT = "01990000-0000-7000-8000-00000000abcd"
MISSING = [ABSENT, "nope", "%20", "%00", "é", "0" * 3_000, ABSENT.upper()]


@pytest.mark.parametrize("missing", MISSING)
def test_what_is_missing_is_404_by_kind(http: httpx.Client, session: str, missing: str) -> None:
    agent, kept = session.rpartition("/session/")[0], turn(http, session, "say: ok")["turn_id"]
    body: dict[str, Any] = {"messages": []}

    for path, kind in [
        (f"/v1/agents/{missing}", "agent"),
        (f"/v1/agents/{missing}/sessions", "agent"),
        (f"/v1/agents/{missing}/session/{new_id()}", "agent"),
        (f"{agent}/session/{missing}", "session"),
        (f"{agent}/session/{missing}/turn/{kept}", "session"),
        (f"{session}/turn/{missing}", "turn"),
        (f"{session}/turn/{missing}/step/{new_id()}", "turn"),
        (f"{session}/turn/{kept}/step/{missing}", "step"),
    ]:
        assert_error(http.get(path), 404, f"{kind}_not_found")
    assert_error(http.delete(f"/v1/agents/{missing}"), 404, "agent_not_found")
    assert_error(http.delete(f"{agent}/session/{missing}"), 404, "session_not_found")
    assert_error(http.post(f"/v1/agents/{missing}/session", json={"session_name": "x"}), 404, "agent_not_found")
    assert_error(http.post(f"/v1/agents/{missing}/session/{new_id()}/turn", json=body), 404, "agent_not_found")
    assert_error(http.post(f"{agent}/session/{missing}/turn", json=body | {"stream": True}), 404, "session_not_found")
    assert_error(http.post(f"{session}/turn/{missing}/resume", json={"tool_responses": []}), 404, "turn_not_found")


@pytest.mark.parametrize("path", ["/v1/agents/{}", "/v1/agents/{}/session/{}", "/v1/conversations/conv_{}"])
def test_an_unknown_agent_session_or_conversation_names_the_usual_causes(http: httpx.Client, path: str) -> None:
    message = http.get(path.format(new_id(), new_id())).json()["error"]["message"]

    assert all(cause in message for cause in ("deleted or has expired", "check the key", "check the base URL"))


def test_a_session_belongs_to_one_agent(http: httpx.Client, session: str) -> None:
    kept = turn(http, session, "say: ok")["turn_id"]
    foreign = f"/v1/agents/{create_agent(http)}/session/{session.rpartition('/')[2]}"

    assert_error(http.get(foreign), 404, "session_not_found")
    assert_error(http.get(f"{foreign}/turn/{kept}"), 404, "session_not_found")
    assert_error(say(http, foreign, "Hello", stream=True), 404, "session_not_found")
    assert_error(http.delete(foreign), 404, "session_not_found")
    assert len(turns_of(http, session)) == 1


def test_a_second_turn_is_409_while_one_runs(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="faulty/gated")
    body = {"messages": [{"role": "user", "content": "first"}], "stream": True}

    with http.stream("POST", f"{session}/turn", json=body) as running:
        lines = running.iter_lines()
        next(lines)
        assert_error(say(http, session, "second", stream=True), 409, "session_locked")
        assert_error(say(http, session, "second"), 409, "session_locked")
        app_fixture.faulty.silence.set()
        list(lines)

    assert [each["output_message"]["content"] for each in turns_of(http, session)] == ["awake"]


def test_detail_is_the_message_or_the_list_of_problems(http: httpx.Client) -> None:
    missing, invalid = http.get("/v1/agents/nope").json(), http.post("/v1/agents", json={}).json()

    assert missing["detail"] == missing["error"]["message"]
    assert invalid["detail"] == {
        "errors": [{"loc": ["body", "agent_config"], "msg": "Field required", "type": "missing"}]
    }


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/agents", "GET, POST"),
        ("HEAD", "/v1/agents", "GET, POST"),
        ("PATCH", "/v1/agents/x", "DELETE, GET"),
        ("POST", "/v1/agents/x", "DELETE, GET"),
        ("GET", "/v1/agents/x/session", "POST"),
        ("POST", "/v1/agents/x/session/y", "DELETE, GET"),
        ("GET", "/v1/agents/x/session/y/turn", "POST"),
        ("DELETE", "/v1/agents/x/session/y/turn/z", "GET"),
        ("DELETE", "/v1/health", "GET"),
    ],
)
def test_another_method_is_405_with_those_allowed(http: httpx.Client, method: str, path: str, allowed: str) -> None:
    response = http.request(method, path)

    assert response.status_code == 405
    assert response.headers["allow"] == allowed
    if method != "HEAD":
        assert allowed in assert_error(response, 405, "method_not_allowed")["message"]


@pytest.mark.parametrize("path", ["/v1", "/v1/nope", "/v2/agents", "/v1/agents/x/y", "/docs/nope", "/v1/memory-banks"])
def test_an_unknown_route_is_404(http: httpx.Client, path: str) -> None:
    error = assert_error(http.get(path), 404, "route_not_found")

    assert f"GET {path}" in error["message"]


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1", ""])
@pytest.mark.parametrize(
    "path", ["assistants", "threads", "threads/thread_1/runs", "prompts", "moderations", "batches/b"]
)
def test_an_api_that_does_not_exist_says_what_to_use_instead(http: httpx.Client, base: str, path: str) -> None:
    message = assert_error(http.post(f"{base}/{path}", json={}), 404, "route_not_found")["message"]

    known, advice = message.split(" does not exist. ")
    method, instead = re.findall(r"\b(POST|GET) (/v1/[a-z/_-]+)", advice)[0]
    assert known == f"The route POST {base}/{path}"
    assert http.request(method, instead, json={}).status_code != 404


@pytest.mark.parametrize(
    "path",
    [
        "/responses",
        "/chat/completions",
        "/models/scripted/demo",
        "/conversations/conv_1/items",
        "/v1/v1/responses",
        "/v1/v1/agents",
        "/v1/openai/v1/v1/responses",
        "/v1/openai/v1/openai/v1/responses",
        "/openai/v1/chat/completions",
        "/v1/openai/responses",
    ],
)
def test_a_base_url_without_v1_or_with_two_is_named(http: httpx.Client, path: str) -> None:
    for method in ("GET", "POST"):
        message = assert_error(http.request(method, path), 404, "route_not_found")["message"]

        assert "base URL" in message
        assert "ends in one /v1" in message


@pytest.mark.parametrize("path", ["/v1/agents//session", "/v1/agents//session//turn", "/v1/responses//cancel"])
def test_an_empty_part_of_a_path_is_named(http: httpx.Client, path: str) -> None:
    message = assert_error(http.post(path), 404, "route_not_found")["message"]

    assert message.endswith("A part of the path is empty: is a variable in it, such as $AGENT_ID, not set?")


@pytest.mark.parametrize("path", ["/v1/", "/v1/v1", "/nope", "/v1/v1/nope", "/v1" * 2_000, "/v1/responses/a/b/c"])
def test_other_unknown_routes_are_told_where_the_routes_are(http: httpx.Client, path: str) -> None:
    message = assert_error(http.post(path, follow_redirects=True), 404, "route_not_found")["message"]

    assert "base URL" not in message
    assert message.endswith("GET /v1/inspect/routes lists the routes.")


def test_an_unknown_route_at_the_second_address_is_named_as_it_was_called(http: httpx.Client) -> None:
    error = assert_error(http.get("/v1/openai/v1/nope"), 404, "route_not_found")

    assert "GET /v1/openai/v1/nope" in error["message"]


def test_a_path_with_a_slash_at_its_end_is_redirected_as_llama_stack_does(http: httpx.Client) -> None:
    response = http.get("/v1/agents/?limit=1")

    assert response.status_code == 307
    assert response.headers["location"] == "../agents?limit=1"
    assert http.get("/v1/models/", follow_redirects=True).json()["data"]


@pytest.mark.parametrize("version", ["0.2.12", "0.3.0", "0.7.5", "10.2.1", "0.8.0a1", "1.x", ""])
def test_clients_of_every_version_are_served(http: httpx.Client, version: str) -> None:
    response = http.get("/v1/health", headers={"x-llamastack-client-version": version})

    assert response.status_code == 200


def test_every_answer_bears_a_request_id_and_a_trace_id(
    http: httpx.Client, session: str, app_fixture: AppFixture
) -> None:
    amazon = "Root=1-67891233-abcdef012345678912345678;Sampled=1"

    answers = [
        http.get("/v1/health"),
        http.get("/v1/nope"),
        http.get("/v1/agents/nope"),
        http.post("/v1/agents", content=b"{", headers=JSON),
        say(http, session, "Hello", stream=True),
    ]
    with app_fixture.proxy.fail("BatchGetItem", "NobodyExpectsThis"):
        answers.append(http.get(session.rpartition("/session/")[0]))

    assert answers[-1].status_code == 500
    assert len({each.headers["x-request-id"] for each in answers}) == len(answers)
    assert all(len(each.headers["x-trace-id"]) == 32 for each in answers)
    traced = http.get("/v1/health", headers={"x-amzn-trace-id": amazon})
    assert traced.headers["x-trace-id"] == "67891233abcdef012345678912345678"


def test_browsers_of_one_origin_may_read_every_answer(
    http: httpx.Client, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = create_agent(http)
    session = create_session(http, agent)
    without = http.get("/v1/health")
    allowing = app_fixture.settings.model_copy(update={"cors_origin": "https://app.example"})
    monkeypatch.setattr(app_fixture, "settings", allowing)

    answers = [http.get("/v1/health"), http.get("/v1/nope"), say(http, session, "Hello", stream=True)]
    with app_fixture.proxy.fail("BatchGetItem", "NobodyExpectsThis"):
        answers.append(http.get(f"/v1/agents/{agent}"))

    assert "access-control-allow-origin" not in without.headers
    assert answers[-1].status_code == 500
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert answer.headers["vary"] == "origin"
        assert {"x-request-id", "x-stint-warning"} <= {*answer.headers["access-control-expose-headers"].split(", ")}


def test_a_fault_of_the_store_is_500_and_its_throttling_503(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http)

    with app_fixture.proxy.fail("BatchGetItem", "AccessDeniedException"):
        fault = http.get(f"/v1/agents/{agent}")
    with app_fixture.proxy.fail("BatchGetItem", "ThrottlingException"):
        busy = http.get(f"/v1/agents/{agent}")

    assert (fault.status_code, fault.json()["error"]["code"]) == (500, "server_error")
    assert "x-should-retry" not in fault.headers
    assert (busy.status_code, busy.json()["error"]["code"]) == (503, "store_unavailable")
    assert busy.headers["retry-after"] == "1"
    assert "x-should-retry" not in busy.headers


@pytest.mark.parametrize(
    ("model", "text", "status", "code"),
    [
        ("scripted/demo", "fail: before", 502, "model_error"),
        ("scripted/demo", "fail: after 2 words", 502, "model_error"),
        ("scripted/demo", "fail: overloaded", 503, "model_overloaded"),
        ("scripted/demo", "fail: context", 400, "context_length_exceeded"),
        ("faulty/late", "Hello", 504, "deadline_exceeded"),
        ("faulty/crash", "Hello", 500, "server_error"),
    ],
)
def test_a_failure_before_the_first_byte_has_its_status_and_names_the_turn(
    http: httpx.Client, model: str, text: str, status: int, code: str
) -> None:
    session = open_session(http, model=model, client_tools=[WEATHER])

    response = say(http, session, text)

    error = assert_error(response, status, code)
    [kept] = turns_of(http, session)
    assert error["turn_id"] == kept["turn_id"]
    assert kept["error"]["code"] == code
    assert response.headers.get("retry-after") == ("1" if status == 503 else None)
