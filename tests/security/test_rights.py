"""A valid key opens the models, the tenant and the rights that it has, and nothing else."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, say
from tests.api.isolation.belongings import TURN
from tests.security.attacks import Attacks, Record
from tests.security.stack import Stack

KEYS = "/v1/admin/keys"
DEMO = "scripted/demo"
MESSAGES = [{"role": "user", "content": "Hello"}]
MODEL_REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/responses": {"model": DEMO, "input": "Hello"},
    "/v1/responses/compact": {"model": DEMO, "input": "Hello"},
    "/v1/chat/completions": {"model": DEMO, "messages": MESSAGES},
    "/v1/completions": {"model": DEMO, "prompt": "Hello"},
    "/v1/inference/chat-completion": {"model_id": DEMO, "messages": MESSAGES},
    "/v1/inference/completion": {"model_id": DEMO, "content": "Hello"},
    "/v1/inference/batch-chat-completion": {"model_id": DEMO, "messages_batch": [MESSAGES]},
    "/v1/inference/batch-completion": {"model_id": DEMO, "content_batch": ["Hello"]},
    "/v1/embeddings": {"model": "hashed/words-384", "input": "Hello"},
    "/v1/inference/embeddings": {"model_id": "hashed/words-384", "contents": ["Hello"]},
}


def test_a_key_opens_no_session_of_another_tenant(stack: Stack, record_property: Record) -> None:
    """Here, the tenant is that of a key. `tests/api/isolation` sends every id of another tenant to every route."""
    attacks = Attacks()
    with stack.client(stack.create_key("alice").key) as http:
        session = open_session(http)
        assert http.get(session).status_code == 200
    with stack.client(stack.create_key("bob").key) as http:
        for method, path in (("GET", session), ("POST", f"{session}/turn"), ("DELETE", session)):
            with attacks.attack(f"{method} {path}"):
                answer = http.request(method, path, json={"messages": MESSAGES})
            if answer.status_code != 404:
                attacks.got_in.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        listed = http.get("/v1/agents").text
    with stack.client(stack.create_key("alice").key) as http:
        assert http.get(session).status_code == 200

    attacks.record(record_property)
    assert session.split("/")[3] not in listed


@pytest.mark.parametrize("path", MODEL_REQUESTS)
def test_a_key_for_other_models_cannot_call(stack: Stack, path: str, record_property: Record) -> None:
    attacks = Attacks()
    with stack.client(stack.create_key("acme", models=["openai/*"]).key) as http:
        with attacks.attack(f"POST {path}"):
            answer = http.post(path, json=MODEL_REQUESTS[path])
        listed = {model["id"] for model in http.get("/v1/models").json()["data"]}
    if answer.status_code != 403:
        attacks.got_in.append(f"{path}: {answer.status_code} {answer.text[:200]}")

    attacks.record(record_property)
    assert DEMO not in listed


def test_an_agent_with_another_model_does_not_run_for_a_key(stack: Stack, record_property: Record) -> None:
    attacks = Attacks()
    with stack.client(stack.create_key("acme").key) as http:
        session = open_session(http)
    with stack.client(stack.create_key("acme", models=["openai/*"]).key) as http, attacks.attack(f"POST {TURN}"):
        answer = say(http, session, "Hello")
    if answer.status_code != 403:
        attacks.got_in.append(f"a turn: {answer.status_code} {answer.text[:200]}")

    attacks.record(record_property)


def test_an_admin_manages_keys_of_its_own_tenant_only(stack: Stack, record_property: Record) -> None:
    attacks, victim = Attacks(), stack.create_key("victim")
    with stack.client(stack.create_key("thief").key) as http:
        for method, path, body in admin_requests(victim.id):
            with attacks.attack(f"{method} {path}"):
                answer = http.request(method, path, json=body)
            if answer.status_code not in (403, 404) or victim.key[-64:] in answer.text:
                attacks.got_in.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
    with stack.client(victim.key) as http:
        assert http.get("/v1/version").status_code == 200

    attacks.record(record_property)


def admin_requests(key_id: str) -> list[tuple[str, str, dict[str, Any] | None]]:
    return [
        ("GET", f"{KEYS}?tenant=victim", None),
        ("POST", KEYS, {"tenant": "victim"}),
        ("POST", KEYS, {"tenant": "operator", "scopes": ["admin"]}),
        ("GET", f"{KEYS}/{key_id}", None),
        ("POST", f"{KEYS}/{key_id}/rotate", {}),
        ("DELETE", f"{KEYS}/{key_id}", None),
    ]


@pytest.mark.parametrize("excess", [{"scopes": ["use"]}, {"models": []}, {"expires_at": 4_000_000_000}])
def test_an_admin_cannot_create_a_key_with_more_rights(
    stack: Stack, excess: dict[str, Any], record_property: Record
) -> None:
    attacks = Attacks()
    own: dict[str, Any] = {"scopes": ["admin"], "models": ["openai/*"], "expires_at": 3_000_000_000}
    with stack.client(stack.create_key("acme", **own).key) as http:
        with attacks.attack(f"POST {KEYS}"):
            answer: httpx.Response = http.post(KEYS, json=own | excess)
        if answer.status_code != 403:
            attacks.got_in.append(f"{excess}: {answer.status_code} {answer.text[:200]}")

    attacks.record(record_property)
