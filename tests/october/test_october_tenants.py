"""Ids of another tenant get the same response as unknown ones, in every route of the API and wherever they are sent."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import CONFIG, OctoberClient
from tests.october.test_october_memory_tool import memory

from stint.http.requests import LazyRoute
from stint.october_2024.routes.parts import list_october_parts

UNKNOWN = "01a20230-9738-7000-a532-b1957dde7880"
BANK = {"type": "vector", "identifier": "theirs", "embedding_model": "hashed/words-384"}
MODEL = {"identifier": "their-model", "llama_model": "scripted/demo", "metadata": {}, "provider_id": "scripted"}
SHIELD = {"identifier": "their-shield", "type": "deny_list", "params": {"phrases": ["x"]}, "provider_id": "deny-list"}
MESSAGES = [{"role": "user", "content": "x"}]
DOCUMENTS = [{"document_id": "d", "content": "x"}]


@pytest.fixture
def theirs(http: httpx.Client, october: OctoberClient, app_fixture: AppFixture) -> dict[str, str]:
    """Return the ids of another tenant's objects. The caller's own tenant has none."""
    session = agent_id, session_id = october.open_session()
    turn = october.say(session, "Hello")[-1]["turn"]
    october.call("memory_banks.register", memory_bank=BANK)
    october.call("models.register", model=MODEL)
    october.call("shields.register", shield=SHIELD)
    app_fixture.tenant = f"{app_fixture.tenant}x"
    return {
        "agent_id": agent_id,
        "session_id": session_id,
        "turn_id": turn["turn_id"],
        "step_id": turn["steps"][0]["step_id"],
        "bank_id": "theirs",
        "identifier": "theirs",
        "model": "their-model",
        "shield_type": "their-shield",
    }


REQUESTS: dict[str, tuple[tuple[str, ...], dict[str, Any], int]] = {
    "/agents/delete": (("agent_id",), {}, 404),
    "/agents/session/create": (("agent_id",), {"session_name": "s"}, 404),
    "/agents/session/get": (("agent_id", "session_id"), {}, 404),
    "/agents/session/delete": (("agent_id", "session_id"), {}, 404),
    "/agents/turn/create": (("agent_id", "session_id"), {"messages": MESSAGES}, 404),
    "/agents/turn/get": (("agent_id", "turn_id"), {}, 404),
    "/agents/step/get": (("agent_id", "turn_id", "step_id"), {}, 404),
    "/memory_banks/get": (("identifier",), {}, 200),
    "/memory/get": (("bank_id",), {}, 404),
    "/memory/drop": (("bank_id",), {}, 404),
    "/memory/query": (("bank_id",), {"query": "x"}, 404),
    "/memory/insert": (("bank_id",), {"documents": DOCUMENTS}, 404),
    "/memory/update": (("bank_id",), {"documents": DOCUMENTS}, 404),
    "/memory/documents/get": (("bank_id",), {"document_ids": ["d"]}, 404),
    "/memory/documents/delete": (("bank_id",), {"document_ids": ["d"]}, 404),
    "/models/get": (("model",), {}, 200),
    "/shields/get": (("shield_type",), {}, 200),
    "/safety/run_shield": (("shield_type",), {"messages": MESSAGES, "params": {}}, 400),
    "/inference/chat_completion": (("model",), {"messages": MESSAGES}, 400),
    "/inference/completion": (("model",), {"content": "x"}, 400),
    "/inference/embeddings": (("model",), {"contents": ["x"]}, 400),
}
"""The names of the ids of each route, the rest of its body, and the status for ids that nobody has."""

OTHER_NAMES = {"/models/get": {"model": "identifier"}}

WITHOUT_IDS = {
    "/agents/create",
    "/memory_banks/register",
    "/memory/create",
    "/models/register",
    "/shields/register",
    "/telemetry/log_event",
    "/telemetry/get_trace",
    "/health",
}

ROUTES = [
    (method, route.path)
    for part in list_october_parts()
    for route in part.routes
    if isinstance(route, LazyRoute) and not route.path.endswith(("/list", "{method:path}"))
    for method in sorted(route.methods or ())
]


def test_every_route_is_walked() -> None:
    assert {path for _, path in ROUTES} == set(REQUESTS) | WITHOUT_IDS


WALKED = [(method, path) for method, path in ROUTES if path in REQUESTS]


@pytest.mark.parametrize(("method", "path"), WALKED, ids=[f"{method} {path}" for method, path in WALKED])
def test_the_ids_of_another_tenant_are_unknown(
    http: httpx.Client, theirs: dict[str, str], method: str, path: str
) -> None:
    names, body, status = REQUESTS[path]
    unknown = {"turn_id": f"{UNKNOWN}:{UNKNOWN}", "agent_id": UNKNOWN, "session_id": UNKNOWN, "step_id": UNKNOWN}
    foreign = {name: theirs[name] for name in names}
    absent = {name: unknown.get(name, "nobodys") for name in names}
    others = OTHER_NAMES.get(path, {})

    answers = [
        http.request(method, path, json=body | {others.get(name, name): ids[name] for name in names})
        for ids in (foreign, absent)
    ]

    texts = [without_ids(answer.text, ids) for answer, ids in zip(answers, (foreign, absent), strict=True)]
    assert [answer.status_code for answer in answers] == [status, status]
    assert texts[0] == texts[1]


def without_ids(text: str, ids: dict[str, str]) -> str:
    for value in ids.values():
        for part in (value, *value.split(":")):  # a turn's id contains that of its session
            text = text.replace(part, "ID")
    return text


def test_another_tenants_names_in_an_agents_configuration_are_unknown(
    http: httpx.Client, october: OctoberClient, theirs: dict[str, str]
) -> None:
    def run(model: str, shields: list[str], bank_id: str) -> tuple[int, str]:
        tools = [memory({"type": "keyword", "bank_id": bank_id})]
        config = CONFIG | {"model": model, "input_shields": shields, "tools": tools}
        agent_id, session_id = october.open_session(**config)
        body = {"agent_id": agent_id, "session_id": session_id, "messages": MESSAGES}
        answer = http.post("/agents/turn/create", json=body)
        if answer.status_code != 200:
            return answer.status_code, answer.text
        [step, *_] = answer.json()["event"]["payload"]["turn"]["steps"]
        return 200, str(step["inserted_context"])

    for foreign, absent in (
        (("their-model", [], "own"), ("no-one-model", [], "own")),
        (("scripted/demo", ["their-shield"], "own"), ("scripted/demo", ["no-one-shield"], "own")),
        (("scripted/demo", [], "theirs"), ("scripted/demo", [], "no-one")),
    ):
        [refused, missing] = run(*foreign), run(*absent)
        assert refused[0] == missing[0]
        assert refused[1].replace("their-", "ID").replace("theirs", "ID") == missing[1].replace(
            "no-one-", "ID"
        ).replace("no-one", "ID")


def test_another_sessions_turn_is_not_among_the_turns_of_a_session(
    http: httpx.Client, october: OctoberClient, theirs: dict[str, str]
) -> None:
    agent_id, session_id = october.open_session()
    ids = {"agent_id": agent_id, "session_id": session_id}

    foreign = http.post("/agents/session/get", params=ids, json={"turn_ids": [theirs["turn_id"]]})
    absent = http.post("/agents/session/get", params=ids, json={"turn_ids": [f"{UNKNOWN}:{UNKNOWN}"]})

    assert foreign.status_code == absent.status_code
    assert without_ids(foreign.text, theirs) == without_ids(absent.text, {"turn_id": f"{UNKNOWN}:{UNKNOWN}"})


def test_lists_do_not_show_another_tenants_objects(http: httpx.Client, theirs: dict[str, str]) -> None:
    listed = [http.get(path).text for path in ("/memory_banks/list", "/memory/list", "/models/list", "/shields/list")]

    assert listed[:2] == ["[]", "[]"]
    assert "their" not in "".join(listed)
