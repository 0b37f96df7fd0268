"""OpenAI's Agents API with OpenAI's client, served by this process: agents, sessions and streams."""

from collections.abc import Iterator

import pytest
from openai import OpenAI
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import MODEL, openai_client

NONE = {"type": "none"}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": CITY}


@pytest.fixture
def client(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as client:
        yield client


def test_a_new_session_streams_its_first_turn(client: OpenAI) -> None:
    events = client.beta.agents.sessions.create(environment=NONE, agent={"model": MODEL}, input="Hello", stream=True)

    kinds = [event.type for event in events]

    assert kinds[0] == "agent.session.created"
    assert kinds[-1] == "agent.session.idle"
    print(kinds)


def test_a_stream_gets_the_turn_of_a_later_request(client: OpenAI, app_fixture: AppFixture) -> None:
    session = client.beta.agents.sessions.create(environment=NONE, agent={"model": MODEL}, input="Hello")
    app_fixture.run_waiting()
    with client.beta.agents.sessions.stream(session.id, input="Tell me more") as stream:
        for event in stream:
            print(event.type)
    print(stream.get_final_result() if hasattr(stream, "get_final_result") else "")
