"""Budgets of sessions in the API of October 2024, whose client sends them as an extra body."""

from typing import Any

import httpx
import pytest
from tests.october.client import OctoberClient, Refused


def open_limited(october: OctoberClient, **budget: Any) -> tuple[str, str]:
    agent_id = october.create_agent()
    created = october.call("agents.session.create", agent_id=agent_id, session_name="s", extra_body={"budget": budget})
    return agent_id, created["session_id"]


def test_a_session_shows_its_budget_and_refuses_turns_once_it_is_spent(
    http: httpx.Client, october: OctoberClient
) -> None:
    session = open_limited(october, max_tokens=30)

    def talk(turns: int) -> None:
        for _ in range(turns):
            october.say(session, "Hello there")

    with pytest.raises(Refused) as refused:
        talk(20)

    body = {"agent_id": session[0], "session_id": session[1]}
    shown = http.post("/agents/session/get", json=body).json()
    assert (refused.value.status, refused.value.body["error"]["code"]) == (402, "insufficient_quota")
    assert f"Session {session[1]} has spent {shown['budget']['spent_tokens']} of the 30 tokens" in refused.value.message
    assert 1 <= len(shown["turns"]) < 20
    assert shown["budget"]["max_tokens"] == 30


def test_the_client_reads_a_session_with_a_budget(october: OctoberClient) -> None:
    agent_id, session_id = open_limited(october, max_dollars=2)

    shown = october.call("agents.session.retrieve", strict=True, agent_id=agent_id, session_id=session_id)

    assert shown["session_id"] == session_id


def test_a_budget_that_is_none_is_refused(october: OctoberClient) -> None:
    with pytest.raises(Refused) as refused:
        open_limited(october, max_tokens=-1)

    assert refused.value.status == 400
