"""Agent cards: they say where an agent is and what it does, and nothing of how it is made."""

import json

import httpx
import pytest
from starlette.requests import Request
from tests.api.api_client import assert_error, create_agent
from tests.api.app_fixture import AppFixture

from stint.a2a.cards import CallerSchemes
from stint.a2a.routes import base_of

CARD = "/.well-known/agent-card.json"
SECRET = "marmalade"


def card_path(agent: str) -> str:
    return f"/v1/agents/{agent}/a2a{CARD}"


def test_a_card_shows_the_name_and_the_description_alone(http: httpx.Client) -> None:
    described = {"description": "Knows the time.", "team": SECRET}
    tool = {"name": SECRET, "description": SECRET, "parameters": []}
    agent = create_agent(http, name="Clock", instructions=SECRET, metadata=described, client_tools=[tool])

    card = http.get(card_path(agent)).json()

    assert (card["name"], card["description"]) == ("Clock", "Knows the time.")
    assert [(skill["id"], skill["name"]) for skill in card["skills"]] == [(agent, "Clock")]
    assert card["capabilities"] == {"streaming": True, "pushNotifications": False, "extendedAgentCard": False}
    assert SECRET not in json.dumps(card)
    assert "scripted" not in json.dumps(card)


def test_an_agent_without_name_and_description_has_a_card(http: httpx.Client) -> None:
    agent = create_agent(http)

    card = http.get(card_path(agent)).json()

    assert card["name"] == f"agent-{agent[-8:]}"
    assert "metadata.description" in card["description"]


def test_the_card_of_an_unknown_agent_is_not_found(http: httpx.Client) -> None:
    for agent in ("unknown", "01990000-0000-7000-8000-000000000000"):
        assert_error(http.get(card_path(agent)), 404, "agent_not_found")
        body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
        assert_error(
            http.post(f"/v1/agents/{agent}/a2a", json=body, headers={"A2A-Version": "1.0"}), 404, "agent_not_found"
        )


def test_the_servers_card_names_no_agent_and_no_model(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http, name=SECRET, instructions=SECRET)

    answer = http.get(CARD)

    card = answer.json()
    assert card["supportedInterfaces"][0]["url"].endswith("/v1/agents/{agent_id}/a2a")
    for hidden in (SECRET, agent, "scripted", app_fixture.tenant, "default"):
        assert hidden not in answer.text.replace("defaultInputModes", "").replace("defaultOutputModes", "")


@pytest.mark.parametrize("host", ["evil.example/path", 'a"b', "a b", "<script>", "x" * 400, ""])
def test_a_hostile_host_is_not_in_a_card(http: httpx.Client, host: str) -> None:
    agent = create_agent(http)

    for path in (CARD, card_path(agent)):
        [interface] = http.get(path, headers={"host": host}).json()["supportedInterfaces"]
        assert interface["url"].startswith("/v1/agents/")


@pytest.mark.parametrize(
    ("domain", "path", "url"),
    [
        ("a1.execute-api.eu-west-1.amazonaws.com", "/prod", "https://a1.execute-api.eu-west-1.amazonaws.com/prod"),
        ("agents.example.com", "/stint", "https://agents.example.com/stint"),
        ("agents.example.com", "", "https://agents.example.com"),
    ],
)
def test_the_domain_of_a_card_is_that_of_api_gateway(domain: str, path: str, url: str) -> None:
    context = {"domainName": domain, "path": f"{path}{CARD}"}
    headers = [(b"host", b"evil.example"), (b"x-forwarded-proto", b"http")]
    scope = {"type": "http", "path": CARD, "headers": headers, "aws.event": {"requestContext": context}}

    assert base_of(Request(scope), CARD) == url


def test_a_card_names_the_issuer_of_tokens_if_there_is_one() -> None:
    assert CallerSchemes(needs_key=False).schemes() == {}
    assert set(CallerSchemes(needs_key=True).schemes()) == {"apiKey"}
    found = CallerSchemes(needs_key=True, issuer="https://login.example.com/").schemes()["openId"].to_json()
    assert b"https://login.example.com/.well-known/openid-configuration" in found
