"""Complete turns that take tool responses, before servers that are as strict as OpenAI and Bedrock."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, assert_error, data, open_session, say, turn, turns_of
from tests.api.app_fixture import AppFixture
from tests.api.sequences import last_turn, outline, says, sequence
from tests.servers import chat_completions, converse_stream
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.converse_stream import ConverseStreamServer

from stint.models.bedrock.model import Bedrock
from stint.providers.bedrock.client import connect

ASK = "CALL get_weather Ulm"


def response(call_id: str = "mine", **fields: Any) -> dict[str, Any]:
    return {"call_id": call_id, "tool_name": "get_weather", "content": "sunny", "metadata": None} | fields


def resume_with(http: httpx.Client, session: str, turn: dict[str, Any], *responses: Any, **body: Any) -> httpx.Response:
    path = f"{session}/turn/{turn['turn_id']}/resume"
    return http.post(path, json={"tool_responses": responses or [response()]} | body)


@pytest.fixture
def session(http: httpx.Client, chat: ChatCompletionsServer) -> Iterator[str]:
    """A session of an agent with a client tool, whose model is sent nothing that OpenAI would refuse."""
    yield open_session(http, model="openai/m", client_tools=[WEATHER])
    assert [chat_completions.find_fault(body) for body in chat.bodies] == [None] * len(chat.bodies)


def test_a_complete_turn_goes_on_with_the_sequence_that_was_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, session: str
) -> None:
    chat.script(says(ASK), says(ASK), says("It is sunny."), says("Bye"))
    complete = last_turn(say(http, session, "weather?", stream=True))

    told = [resume_with(http, session, complete, response(call_id), stream=True) for call_id in ("one", "two")]
    turn(http, session, "thanks")

    going_on = ["complete tool_execution", "start inference"]
    end = ["complete inference", "turn_complete end_of_turn"]
    assert [sequence(each) for each in told] == [
        [*going_on, f"text {ASK}", *end],
        [*going_on, "text It is sunny.", *end],
    ]
    done = last_turn(told[1])
    assert turns_of(http, session)[0] == done
    assert (done["turn_id"], done["started_at"]) == (complete["turn_id"], complete["started_at"])
    assert done["steps"][1]["tool_calls"] == []
    assert done["steps"][1]["tool_responses"] == [response("one")]
    assert data(told[0])[0]["event"]["payload"]["step_details"] == done["steps"][1]
    assert [(each["role"], each["content"]) for each in chat.bodies[3]["messages"]] == [
        ("system", "Be brief."),
        ("user", "weather?"),
        ("assistant", ASK),
        ("tool", "sunny"),
        ("assistant", ASK),
        ("tool", "sunny"),
        ("assistant", "It is sunny."),
        ("user", "thanks"),
    ]


def test_without_a_stream_the_turn_is_the_same(http: httpx.Client, chat: ChatCompletionsServer, session: str) -> None:
    chat.script(says(ASK), says(ASK), says("It is sunny."), says(ASK), says(ASK), says("It is sunny."))
    streamed, answered = last_turn(say(http, session, "weather?", stream=True)), {}
    for call_id in ("one", "two"):
        streamed = last_turn(resume_with(http, session, streamed, response(call_id), stream=True))
    answered = turn(http, session, "weather?")
    for call_id in ("one", "two"):
        answered = resume_with(http, session, answered, response(call_id)).json()

    assert outline(answered) == outline(streamed)


@pytest.mark.parametrize(
    ("call_id", "content"),
    [
        ("", ""),
        ("x" * 5_000, {"type": "text", "text": "sunny"}),
        ("caf\u00e9 \u2028", [{"type": "text", "text": "sunny"}]),
        ("get_weather:0", ""),
        ("0", ""),
    ],
)
def test_whatever_ids_a_client_makes_up_no_server_is_sent_what_it_refuses(
    http: httpx.Client, chat: ChatCompletionsServer, session: str, call_id: str, content: Any
) -> None:
    chat.script(says(ASK))
    complete = turn(http, session, "weather?")

    done = resume_with(http, session, complete, response(call_id, content=content), response("other")).json()
    again = resume_with(http, session, complete, response(call_id))

    assert done["status"] == "completed"
    assert [each["call_id"] for each in done["steps"][1]["tool_responses"]] == [call_id, "other"]
    assert_error(again, 409, "turn_not_awaiting_input")


def test_the_same_ids_in_each_turn_are_told_apart(
    http: httpx.Client, chat: ChatCompletionsServer, session: str
) -> None:
    chat.script(says(ASK), says("sunny"), says(ASK), says("sunny"))

    for _ in range(2):
        done = resume_with(http, session, turn(http, session, "weather?"), response("call_1")).json()

    made = [call["id"] for each in chat.bodies[-1]["messages"] for call in each.get("tool_calls") or []]
    assert done["status"] == "completed"
    assert made[0] == "call_1"
    assert len(set(made)) == 2


@pytest.fixture
def bedrock(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConverseStreamServer]:
    with ConverseStreamServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        model = Bedrock(lambda: connect("eu-central-1"))
        app_fixture.models = {"bedrock": lambda: model}
        app_fixture.made.clear()
        yield server
        app_fixture.models = {}


@pytest.mark.parametrize("tools", [[WEATHER], []], ids=["with tools", "without tools"])
def test_bedrock_is_sent_what_it_takes(
    http: httpx.Client, bedrock: ConverseStreamServer, tools: list[dict[str, Any]]
) -> None:
    said = [converse_stream.stream(*converse_stream.text_block(text)) for text in (ASK, ASK, "It is sunny.", "Bye")]
    bedrock.script(*said)
    session = open_session(http, model="bedrock/anthropic.claude", client_tools=tools)
    complete = turn(http, session, "weather?")

    for call_id in ("a b", "c" * 65):
        resume_with(http, session, complete, response(call_id)).raise_for_status()
    turn(http, session, "thanks")

    assert [converse_stream.find_fault(body) for body in bedrock.bodies] == [None] * 4
    assert turns_of(http, session)[0]["output_message"]["content"] == "It is sunny."
