"""Ids of any length and content, in every path, query and body that takes one: never a 5xx."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute
from tests.api.api_client import assert_error, create_agent

from stint.domain.llama_stack import registrations
from stint.http.routes.inspection import addresses_of, list_parts

UUID = "01890000-0000-7000-8000-000000000000"
HEX = UUID.replace("-", "")
IDS = {
    "longer than any key": "x" * 10_000,
    "300 characters of 4 bytes": "\U0001f600" * 300,
    "one byte too many for a sort key": "x" * (1025 - len("tool_group:")),
    "NUL": "a\0b",
    "line breaks": "a\r\nb\u2028c",
    "a slash": "a/b/../c",
    "an id with a line break": f"{UUID}\n",
    "an id that is nowhere": UUID,
    "a response that is nowhere": f"resp_{HEX}",
    "a conversation that is nowhere": f"conv_{HEX}",
    "an item that is nowhere": f"msg_{HEX}00",
    "placeholders": "{agent_id}%s${x}{{",
    "digits of another script": "resp_" + "\u0663" * 32,
}
RAW = {"no UTF-8": "%ff%fe", "half a character": "%ed%a0%80"}
SEGMENTS = {name: quote(value, safe="") for name, value in IDS.items()} | RAW
CURSORS = ("after", "before")


def routes() -> Iterator[tuple[str, str]]:
    """Yield the method and the path of each operation whose path has parameters."""
    for part in list_parts():
        for route in part.routes:
            if isinstance(route, APIRoute) and "{" in route.path:
                yield from ((method, path) for path in addresses_of(route) for method in sorted(route.methods or ()))


def fill(path: str, segment: str) -> str:
    parts = [segment if part.startswith("{") else part for part in path.split("/")]
    return "/".join(parts)


def bodies() -> list[Any]:
    """Bodies that pass the checks of most routes, so that the ids of the path are looked up."""
    item = {"type": "message", "role": "user", "content": "Hello"}
    whole = {"metadata": {}, "items": [item], "messages": [item], "session_name": "s", "tool_responses": []}
    return [None, whole]


@pytest.mark.parametrize("name", SEGMENTS)
def test_no_id_in_a_path_is_an_error_of_the_server(http: httpx.Client, name: str) -> None:
    failed, walked = [], 0
    for method, path in routes():
        for body in [None] if method in ("GET", "DELETE") else bodies():
            answer = http.request(method, fill(path, SEGMENTS[name]), json=body)
            walked += 1
            if answer.status_code >= 500 or "x-request-id" not in answer.headers:
                failed.append((method, path, answer.status_code, answer.text[:200]))

    assert walked > 40
    assert failed == []


@pytest.mark.parametrize("name", IDS)
def test_no_cursor_is_an_error_of_the_server(http: httpx.Client, name: str) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    for path in ("/v1/responses", "/v1/conversations", f"/v1/conversations/{conversation}/items", "/v1/tools"):
        for field in ("after", "before", "model", "toolgroup_id"):
            answer = http.get(path, params={field: IDS[name][:8_000]})

            assert answer.status_code < 500, (path, field, answer.text)


@pytest.mark.parametrize("name", IDS)
def test_no_id_in_a_body_is_an_error_of_the_server(http: httpx.Client, name: str) -> None:
    value = IDS[name]
    message = {"role": "user", "content": "Hello"}
    model, agent = {"model": "scripted/demo"}, create_agent(http)
    session = http.post(f"/v1/agents/{agent}/session", json={"session_name": value})
    assert session.status_code == 200
    turns = f"/v1/agents/{agent}/session/{session.json()['session_id']}/turn"
    requests: list[tuple[str, Any]] = [
        ("/v1/toolgroups", {"toolgroup_id": value, "provider_id": "brave-search"}),
        ("/v1/toolgroups", {"toolgroup_id": f"own-{name}", "provider_id": value}),
        ("/v1/models", {"model_id": value, "provider_model_id": "scripted/demo"}),
        ("/v1/models", {"model_id": f"own-{name}", "provider_model_id": value, "provider_id": "scripted"}),
        ("/v1/shields", {"shield_id": value, "params": {"phrases": ["x"]}}),
        ("/v1/shields", {"shield_id": f"own-{name}", "provider_shield_id": value, "params": {"phrases": ["x"]}}),
        ("/v1/safety/run-shield", {"shield_id": value, "messages": [message], "params": {}}),
        ("/v1/tool-runtime/invoke", {"tool_name": value, "kwargs": {}}),
        ("/v1/responses", model | {"input": "Hello", "previous_response_id": value}),
        ("/v1/responses", model | {"input": "Hello", "conversation": value}),
        ("/v1/responses", model | {"input": [{"type": "item_reference", "id": value}]}),
        ("/v1/responses", model | {"input": [message | {"type": "message", "id": value}]}),
        ("/v1/responses", {"input": "Hello", "model": value}),
        ("/v1/chat/completions", {"messages": [message], "model": value}),
        (turns, {"messages": [message], "toolgroups": [value]}),
    ]

    for path, body in requests:
        answer = http.post(path, json=body)

        assert answer.status_code < 500, (path, body.keys(), answer.text)


OWN: dict[str, dict[str, Any]] = {
    "toolgroups": {"provider_id": "brave-search"},
    "models": {"provider_model_id": "scripted/demo"},
    "shields": {"provider_id": "deny-list", "params": {"phrases": ["x"]}},
}


@pytest.mark.parametrize(
    ("kind", "identifier"),
    [
        *((kind, identifier) for kind in OWN for identifier in ("", "a\nb")),
        *(("models", each) for each in (".", "..", "a/../b", "a/.", "a/", "a\r", "a\0", "a\x7f", "a\x85b")),
    ],
    ids=repr,
)
def test_a_registration_that_no_path_could_name_is_refused_by_its_field(
    http: httpx.Client, kind: str, identifier: str
) -> None:
    field = f"{kind.removesuffix('s')}_id"

    refused = http.post(f"/v1/{kind}", json={field: identifier} | OWN[kind])

    assert assert_error(refused, 400, "invalid_request")["param"] == field


@pytest.mark.parametrize("kind", OWN)
def test_a_registration_of_an_unusual_name_is_found_by_it(http: httpx.Client, kind: str) -> None:
    for identifier in ("...", "a..b", ".a/b.", "mcp::http://example.com/x", "a b?c=#d%2e", "é\u2028"):
        path = f"/v1/{kind}/{quote(identifier, safe='')}"
        registered = http.post(f"/v1/{kind}", json={f"{kind.removesuffix('s')}_id": identifier} | OWN[kind])

        assert registered.status_code == 200, registered.text
        assert http.get(path).json()["identifier"] == identifier
        assert http.delete(path).status_code == 200
        assert http.get(path).status_code == 404


@pytest.mark.parametrize("kind", OWN)
def test_a_registration_with_a_line_break_from_before_can_be_unregistered(
    http: httpx.Client, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(registrations, "CONTROL_CHARACTERS", re.compile(r"(?!)"))
        registered = http.post(f"/v1/{kind}", json={f"{kind.removesuffix('s')}_id": "a\nb\n"} | OWN[kind])
    assert registered.status_code == 200, registered.text

    assert http.get(f"/v1/{kind}/a%0Ab%0A").json()["identifier"] == "a\nb\n"
    assert http.delete(f"/v1/{kind}/a%0Ab%0A").status_code == 200
    assert http.get(f"/v1/{kind}/a%0Ab%0A").status_code == 404


@pytest.mark.parametrize("kind", ["toolgroups", "models", "shields"])
def test_a_registration_whose_id_no_key_holds_is_refused_by_its_field(http: httpx.Client, kind: str) -> None:
    field = f"{kind.removesuffix('s')}_id"
    own = {"toolgroups": {"provider_id": "brave-search"}, "models": {"provider_model_id": "scripted/demo"}}

    refused = http.post(f"/v1/{kind}", json={field: "\U0001f600" * 256} | own.get(kind, {}))
    taken = http.post(f"/v1/{kind}", json={field: "\u00e9" * 256} | own.get(kind, {}))

    assert assert_error(refused, 400, "invalid_request")["param"] == field
    assert taken.status_code == 200, taken.text
    assert http.delete(f"/v1/{kind}/" + quote("\u00e9" * 256)).status_code == 200
    assert json.loads(http.get(f"/v1/{kind}").text)
