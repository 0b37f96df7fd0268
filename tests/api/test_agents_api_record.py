"""One record: agents, sessions and turns that clients of OpenAI's Agents API and of Llama Stack's use in turns."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from llama_stack_client import NotFoundError as LlamaNotFound
from openai import NotFoundError, OpenAI
from tests.api.agents_api_client import AGENT, CALL, NONE, WEATHER, post_events, result_of, start_session
from tests.api.api_client import WEATHER as LLAMA_WEATHER
from tests.api.api_client import agent_config
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import MODEL, openai_client


@pytest.fixture
def openai(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as openai:
        yield openai


def say(llama: LlamaStackClient, agent: str, session: str, text: str) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return llama.agents.turn.create(session_id=session, agent_id=agent, messages=messages, stream=False)


def texts_of(openai: OpenAI, session: str) -> list[str]:
    """Return the texts of a session's messages, as the Agents API shows them."""
    items: Any = openai.beta.agents.sessions.items.list(session, order="asc")
    return [part.text for item in items if item.type == "message" for part in item.content]


def test_clients_of_both_apis_continue_one_session(openai: OpenAI, client: LlamaStackClient) -> None:
    agent = client.agents.create(agent_config=agent_config()).agent_id  # type: ignore[arg-type]
    session = client.agents.session.create(agent, session_name="talk").session_id

    say(client, agent, session, "say: One")
    with openai.beta.agents.sessions.stream(session, input="say: Two") as stream:
        assert stream.get_final_result().output_text == "Two"
    say(client, agent, session, "say: Three")

    assert texts_of(openai, session) == ["say: One", "One", "say: Two", "Two", "say: Three", "Three"]
    turns = client.agents.session.retrieve(session, agent_id=agent).turns
    assert [turn.output_message.content for turn in turns] == ["One", "Two", "Three"]
    assert [each.id for each in openai.beta.agents.sessions.turns.list(session, order="asc")] == [
        turn.turn_id for turn in turns
    ]


def test_agents_and_sessions_are_listed_by_both_apis(
    openai: OpenAI, client: LlamaStackClient, http: httpx.Client
) -> None:
    saved = openai.beta.agents.create(model=MODEL, name="Ada", instructions="Be brief.")
    made = client.agents.create(agent_config=agent_config(name="Bob")).agent_id  # type: ignore[arg-type]
    session = openai.beta.agents.sessions.create(environment=NONE, agent_id=saved.id, input="Hello")

    assert {saved.id, made} == {agent.id for agent in openai.beta.agents.list()}
    assert {saved.id, made} == {agent["agent_id"] for agent in http.get("/v1/agents").json()["data"]}
    assert http.get(f"/v1/agents/{saved.id}").json()["agent_config"]["instructions"] == "Be brief."
    assert openai.beta.agents.retrieve(made).name == "Bob"
    [listed] = http.get(f"/v1/agents/{saved.id}/sessions").json()["data"]
    assert listed["session_id"] == session.id
    assert session.id in {each.id for each in openai.beta.agents.sessions.list()}


def test_each_api_answers_calls_that_wait_in_the_other(
    openai: OpenAI, client: LlamaStackClient, http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = start_session(openai, CALL, tools=[WEATHER])
    app_fixture.run_waiting()
    agent = session.agent.id
    [paused] = client.agents.session.retrieve(session.id, agent_id=agent).turns
    [call] = paused.output_message.tool_calls or []
    response: Any = {"call_id": call.call_id, "tool_name": call.tool_name, "content": "sunny"}
    done = client.agents.turn.resume(
        paused.turn_id, agent_id=agent, session_id=session.id, tool_responses=[response], stream=False
    )
    assert "sunny" in str(done.output_message.content)
    assert openai.beta.agents.sessions.retrieve(session.id).status == "idle"

    other = client.agents.create(agent_config=agent_config(client_tools=[LLAMA_WEATHER])).agent_id  # type: ignore[arg-type]
    second = client.agents.session.create(other, session_name="talk").session_id
    say(client, other, second, CALL)
    [action] = openai.beta.agents.sessions.retrieve(second).required_actions
    assert post_events(http, second, result_of(action, "rainy")).status_code == 202
    app_fixture.run_waiting()
    [turn] = client.agents.session.retrieve(second, agent_id=other).turns
    assert "rainy" in str(turn.output_message.content)


def test_each_api_deletes_what_the_other_has_made(openai: OpenAI, client: LlamaStackClient) -> None:
    agent = client.agents.create(agent_config=agent_config()).agent_id  # type: ignore[arg-type]
    session = client.agents.session.create(agent, session_name="talk").session_id
    openai.beta.agents.sessions.delete(session)
    openai.beta.agents.delete(agent)
    with pytest.raises(LlamaNotFound):
        client.agents.session.create(agent, session_name="talk")

    stream = openai.beta.agents.sessions.create(environment=NONE, agent=AGENT, input="Hello", stream=True)
    created: Any = next(iter(stream))
    own = created.session
    stream.close()
    client.agents.session.delete(own.id, agent_id=own.agent.id)
    with pytest.raises(NotFoundError):
        openai.beta.agents.sessions.retrieve(own.id)


def test_changes_of_a_saved_agent_do_not_reach_its_sessions(openai: OpenAI, client: LlamaStackClient) -> None:
    saved = openai.beta.agents.create(model=MODEL, instructions="Be brief.")
    before = openai.beta.agents.sessions.create(environment=NONE, agent_id=saved.id, input="Hello")
    openai.beta.agents.update(saved.id, instructions="Be long.", tools=[WEATHER])

    after = client.agents.session.create(saved.id, session_name="talk").session_id
    openai.beta.agents.update(saved.id, instructions=None)

    found: Any = [openai.beta.agents.sessions.retrieve(each).agent for each in (before.id, after)]
    assert [agent.instructions for agent in found] == ["Be brief.", "Be long."]
    assert [len(agent.tools) for agent in found] == [0, 1]
    assert openai.beta.agents.retrieve(saved.id).instructions is None
