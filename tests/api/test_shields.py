"""Shields over HTTP."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error, open_session, say

SORRY = "Not here."


@pytest.fixture
def words(http: httpx.Client) -> str:
    """A shield that forbids "dynamite"."""
    return forbid(http, "words", "dynamite")


def forbid(http: httpx.Client, name: str, *phrases: str, **params: Any) -> str:
    body = {"shield_id": name, "params": {"phrases": phrases, "user_message": SORRY} | params}
    response = http.post("/v1/shields", json=body)
    assert response.status_code == 200, response.text
    return name


def test_a_shield_keeps_the_model_that_a_registered_name_had_when_it_was_registered(http: httpx.Client) -> None:
    model = {"model_id": "guardian", "provider_id": "scripted", "provider_model_id": "demo"}
    guard = {"shield_id": "guard", "provider_id": "llama-guard", "provider_shield_id": "guardian", "params": {}}
    early = http.post("/v1/shields", json=guard)
    http.post("/v1/models", json=model)
    registered = http.post("/v1/shields", json=guard)
    safe = {"shield_id": "guard", "messages": [{"role": "user", "content": "\nsay: safe"}], "params": {}}

    judgement = http.post("/v1/safety/run-shield", json=safe)
    http.delete("/v1/models/guardian")
    http.post("/v1/models", json=model | {"provider_model_id": "nobody"})
    late = http.post("/v1/safety/run-shield", json=safe)

    assert [registered.status_code, judgement.status_code] == [200, 200], judgement.text
    assert judgement.json()["violation"] is None
    assert_error(early, 400, "model_not_found")
    assert (late.status_code, late.json()["violation"]) == (200, None), late.text
    shown = http.get("/v1/shields/guard").json()
    assert (shown["provider_resource_id"], shown["model"]) == ("guardian", "scripted/demo")


def test_more_shields_than_are_asked_at_once_are_refused(http: httpx.Client, words: str) -> None:
    session = open_session(http)

    response = say(http, session, "hi", output_shields=[words] * 9)

    assert "at most 8" in assert_error(response, 400, "invalid_request")["message"]
    assert response.json()["error"]["param"] == "output_shields"
