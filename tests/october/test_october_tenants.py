"""Ids of another tenant get the same response as unknown ones, wherever they are sent."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient

UNKNOWN = "01a20230-9738-7000-a532-b1957dde7880"
BANK = {"type": "vector", "identifier": "theirs", "embedding_model": "hashed/words-384"}


@pytest.fixture
def theirs(http: httpx.Client, october: OctoberClient, app_fixture: AppFixture) -> dict[str, str]:
    """Return the ids of another tenant's objects. The caller's own tenant has none."""
    session = agent_id, session_id = october.open_session()
    turn = october.say(session, "Hello")[-1]["turn"]
    october.call("memory_banks.register", memory_bank=BANK)
    app_fixture.tenant = f"{app_fixture.tenant}x"
    return {
        "agent_id": agent_id,
        "session_id": session_id,
        "turn_id": turn["turn_id"],
        "step_id": turn["steps"][0]["step_id"],
        "bank_id": "theirs",
    }


REQUESTS: list[tuple[str, str, tuple[str, ...], dict[str, Any]]] = [
    ("POST", "/agents/delete", ("agent_id",), {}),
    ("POST", "/agents/session/create", ("agent_id",), {"session_name": "s"}),
    ("POST", "/agents/session/get", ("agent_id", "session_id"), {}),
    ("POST", "/agents/session/delete", ("agent_id", "session_id"), {}),
    ("POST", "/agents/turn/create", ("agent_id", "session_id"), {"messages": [{"role": "user", "content": "x"}]}),
    ("POST", "/agents/turn/get", ("agent_id", "turn_id"), {}),
    ("POST", "/agents/step/get", ("agent_id", "turn_id", "step_id"), {}),
    ("POST", "/memory/get", ("bank_id",), {}),
    ("POST", "/memory/drop", ("bank_id",), {}),
    ("POST", "/memory/query", ("bank_id",), {"query": "x"}),
    ("POST", "/memory/insert", ("bank_id",), {"documents": [{"document_id": "d", "content": "x"}]}),
    ("POST", "/memory/update", ("bank_id",), {"documents": [{"document_id": "d", "content": "x"}]}),
    ("POST", "/memory/documents/get", ("bank_id",), {"document_ids": ["d"]}),
    ("POST", "/memory/documents/delete", ("bank_id",), {"document_ids": ["d"]}),
]


@pytest.mark.parametrize(("method", "path", "names", "body"), REQUESTS, ids=[path for _, path, _, _ in REQUESTS])
def test_the_ids_of_another_tenant_are_unknown(
    http: httpx.Client, theirs: dict[str, str], method: str, path: str, names: tuple[str, ...], body: dict[str, Any]
) -> None:
    unknown = {"turn_id": f"{UNKNOWN}:{UNKNOWN}", "bank_id": "nobodys"}
    foreign = {name: theirs[name] for name in names}
    absent = {name: unknown.get(name, UNKNOWN) for name in names}

    answers = [http.request(method, path, json=body | ids) for ids in (foreign, absent)]

    texts = []
    for answer, ids in zip(answers, (foreign, absent), strict=True):
        text = answer.text
        for name in names:
            for part in (ids[name], *ids[name].split(":")):  # a turn's id contains that of its session
                text = text.replace(part, "ID")
        texts.append(text)
    assert [answer.status_code for answer in answers] == [404, 404]
    assert texts[0] == texts[1]


def test_lists_and_optional_objects_do_not_show_another_tenants(http: httpx.Client, theirs: dict[str, str]) -> None:
    assert http.get("/memory_banks/list").json() == []
    assert http.get("/memory/list").json() == []
    assert http.get("/memory_banks/get", params={"identifier": theirs["bank_id"]}).json() is None
