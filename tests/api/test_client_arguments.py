"""Nested arguments of tool calls, as the unmodified llama-stack-client 0.2.12 reads them."""

from typing import Any

import pytest
from llama_stack_client import LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from llama_stack_client.lib.agents.client_tool import client_tool
from tests.api.app_fixture import AppFixture

ORDER = 'call: order {"items": [{"name": "bolt", "sizes": [1, 2]}], "to": {"address": {"street": "Mews"}}}'


def say(text: str) -> Any:
    return [{"role": "user", "content": text}]


@client_tool
def order(items: list[Any], to: dict[str, Any]) -> str:
    """Orders things.

    :param items: the things
    :param to: where they go
    """
    return f"{items[0]['name']} to {to['address']['street']}"


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_of_the_client_gets_objects_in_lists_and_objects(client: LlamaStackClient, stream: bool) -> None:
    agent = Agent(client, model="scripted/demo", instructions="", tools=[order])
    session = agent.create_session("desk")

    given: Any = agent.create_turn(say(ORDER), session_id=session, stream=stream)

    turn = list(given)[-1].event.payload.turn if stream else given
    assert turn.output_message.content == 'order answered: "bolt to Mews"'


def test_the_model_reads_in_a_later_turn_what_it_called(client: LlamaStackClient, app_fixture: AppFixture) -> None:
    agent = Agent(client, model="recorded/model", instructions="", tools=[order])
    session = agent.create_session("desk")
    agent.create_turn(say(ORDER), session_id=session, stream=False)

    agent.create_turn(say("Thanks"), session_id=session, stream=False)

    [call] = [
        call for message in app_fixture.recorder.requests[-1].messages for call in getattr(message, "tool_calls", ())
    ]
    assert call.arguments == {
        "items": [{"name": "bolt", "sizes": [1, 2]}],
        "to": {"address": {"street": "Mews"}},
    }
