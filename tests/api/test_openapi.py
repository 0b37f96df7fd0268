import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator, ValidationError
from tests.api.api_client import WEATHER, agent_config, data, open_session, resume, say, stream

SUCCESS = {
    "create_agent": "AgentCreateResponse",
    "list_agents": "AgentList",
    "get_agent": "Agent",
    "create_session": "SessionCreateResponse",
    "list_sessions": "SessionList",
    "get_session": "Session",
    "create_turn": "Turn",
    "resume_turn": "Turn",
    "get_turn": "Turn",
    "get_step": "StepResponse",
    "list_models": "ModelList",
    "get_model": "Model",
}

OPENAI = (
    "/v1/responses",
    "/v1/conversations",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/models",
    "/v1/files",
    "/v1/uploads",
    "/v1/containers",
    "/v1/vector_stores",
    "/v1/embeddings",
)
ALIAS = "/v1/openai/v1/"
"""Where the routes of OPENAI are found too."""


@pytest.fixture
def described(http: httpx.Client) -> dict[str, Any]:
    document: dict[str, Any] = http.get("/v1/openapi.json").json()
    return document


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key == "$ref")
        if "propertyName" in node:  # a discriminator
            yield from node.get("mapping", {}).values()
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def conforms(described: dict[str, Any], schema: str, value: Any) -> None:
    Draft202012Validator(described | {"$ref": f"#/components/schemas/{schema}"}).validate(value)


def test_every_reference_resolves(described: dict[str, Any]) -> None:
    found = set(references(described))

    assert len(found) > 40
    assert {name.removeprefix("#/components/schemas/") for name in found} <= set(described["components"]["schemas"])
    assert described["openapi"].startswith("3.1")
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_operations_have_plain_ids_of_their_own_and_are_the_routes(
    described: dict[str, Any], http: httpx.Client
) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(described)]
    routes = {
        (route["route"].replace(":path}", "}"), route["method"])
        for route in http.get("/v1/inspect/routes").json()["data"]
    }
    second = {(path, method) for path, method in routes if path.startswith(ALIAS)}

    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in ids)
    assert {(path, method) for path, method, _ in operations(described)} == routes - second
    assert {(path.replace(ALIAS, "/v1/"), method) for path, method in second} == {
        (path, method) for path, method in routes - second if path.startswith(OPENAI)
    }


def test_every_operation_is_described_with_its_parameters_and_errors(described: dict[str, Any]) -> None:
    for path, method, operation in operations(described):
        names = re.findall(r"{(\w+)}", path)
        given = [each["name"] for each in operation.get("parameters", []) if each["in"] == "path"]
        assert given == names
        assert operation["summary"]
        assert operation["description"]
        waits = method == "POST" and (path.endswith("/turn") or path.removeprefix("/v1") == "/responses")
        accepted = (method, path) == ("POST", "/v1/agents/sessions/{session_id}/events")
        notified = method == "POST" and path.endswith("/mcp")
        answers = {"202"} if accepted else {"200", "202"} if waits or notified else {"200"}
        assert set(operation["responses"]) == {"4XX", "5XX"} | answers
        for status in ("4XX", "5XX"):
            content = operation["responses"][status]["content"]["application/json"]
            by_json_rpc = notified and status == "4XX"
            error = {"type": "object"} if by_json_rpc else {"$ref": "#/components/schemas/ErrorResponse"}
            assert content == {"schema": error}


def test_bodies_and_answers_are_described(described: dict[str, Any]) -> None:
    by_id = {operation["operationId"]: operation for _, _, operation in operations(described)}

    for name, schema in SUCCESS.items():
        content = by_id[name]["responses"]["200"]["content"]
        assert content["application/json"]["schema"] == {"$ref": f"#/components/schemas/{schema}"}
    for name in ("delete_agent", "delete_session"):
        assert by_id[name]["responses"]["200"]["content"]["application/json"]["schema"] == {"type": "null"}
    for name, schema in (
        ("create_agent", "AgentCreateRequest"),
        ("create_session", "SessionCreateRequest"),
        ("create_turn", "TurnCreateRequest"),
        ("resume_turn", "TurnResumeRequest"),
    ):
        body = by_id[name]["requestBody"]
        assert body["content"]["application/json"]["schema"] == {"$ref": f"#/components/schemas/{schema}"}
        assert body["required"] is True


def test_what_is_answered_is_what_is_described(described: dict[str, Any], http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    agent, _, _ = session.rpartition("/session/")
    paused = stream(http, session, "say: Let me look.\nget_weather in Ulm")[-1]["turn"]
    done = resume(http, session, paused, "sunny").json()

    conforms(described, "Turn", paused)
    conforms(described, "Turn", done)
    conforms(described, "Session", http.get(session).json())
    conforms(described, "AgentList", http.get("/v1/agents").json())
    conforms(described, "SessionList", http.get(f"{agent}/sessions").json())
    conforms(described, "ModelList", http.get("/v1/models").json())
    conforms(described, "ErrorResponse", http.get("/v1/agents/nope").json())
    conforms(described, "ErrorResponse", http.post("/v1/agents", json={}).json())
    conforms(described, "AgentCreateRequest", {"agent_config": agent_config()})
    with pytest.raises(ValidationError):
        conforms(described, "Turn", done | {"steps": [{"step_type": "dance"}]})


def test_every_event_is_what_is_described(described: dict[str, Any], http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    events = data(say(http, session, "say: Let me look.\nget_weather in Ulm", stream=True))
    failed = data(say(http, session, "fail: after 2 words", stream=True))

    by_id = {operation["operationId"]: operation for _, _, operation in operations(described)}
    for name in ("create_turn", "resume_turn"):
        schema = by_id[name]["responses"]["200"]["content"]["text/event-stream"]["schema"]
        for event in events + failed:
            Draft202012Validator(described | schema).validate(event)
    conforms(described, "StreamError", failed[-1])
    payload = described["components"]["schemas"]["StreamEvent"]["properties"]["payload"]
    assert set(payload["discriminator"]["mapping"]) == {
        "turn_start",
        "step_start",
        "step_progress",
        "step_complete",
        "turn_complete",
        "turn_awaiting_input",
    }


def test_all_four_kinds_of_steps_are_described(described: dict[str, Any]) -> None:
    step = described["components"]["schemas"]["StepResponse"]["properties"]["step"]

    assert set(step["discriminator"]["mapping"]) == {"inference", "tool_execution", "shield_call", "memory_retrieval"}
