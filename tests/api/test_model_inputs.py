"""Inputs of model calls, read afterwards over HTTP, are what the models' server received."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.api_client import WEATHER, assert_error, open_session, resume, turn
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import respond
from tests.api.sequences import calls, says
from tests.api.test_responses_file_search import CHUNKS, SEARCH
from tests.api.test_responses_file_search import TOOL as FILE_SEARCH
from tests.servers.chat_completions import ChatCompletionsServer

from stint.services.runs.shown_inputs import LONGEST_TEXT

MODEL = "openai/m"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SECRET = "sk-very-secret-key-42"
LARGE = 250_000


def read_turn(http: httpx.Client, session: str, answered: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    """Return the inputs of the model calls of a turn."""
    steps = [step["step_id"] for step in answered["steps"] if step["step_type"] == "inference"]
    return [read(http, f"{session}/turn/{answered['turn_id']}/step/{step_id}/input", **query) for step_id in steps]


def read_response(http: httpx.Client, response: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    """Return the inputs of the model calls of a response."""
    path = f"/v1/responses/{response['id']}/steps"
    steps = [step["id"] for step in http.get(path).json()["data"] if step["type"] == "model_call"]
    return [read(http, f"{path}/{step_id}/input", **query) for step_id in steps]


def read(http: httpx.Client, path: str, **query: Any) -> dict[str, Any]:
    answered = http.get(path, params=query)
    assert answered.status_code == 200, answered.text
    shown: dict[str, Any] = answered.json()
    return shown


def sent(chat: ChatCompletionsServer) -> list[dict[str, Any]]:
    """Return the bodies that the model's server received, as inputs show them."""
    return [comparable(body) for body in chat.bodies]


def comparable(body: dict[str, Any]) -> dict[str, Any]:
    left_out = ("model", "stream", "stream_options", "messages", "tools", "prompt_cache_key")
    parameters = {name: value for name, value in body.items() if name not in left_out}
    return {"messages": body["messages"], "tools": body.get("tools", []), "parameters": parameters}


def as_sent(inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: shown[name] for name in ("messages", "tools", "parameters")} for shown in inputs]


def test_plain_turns_are_shown_as_they_were_sent(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    sampling = {"strategy": {"type": "top_p", "temperature": 0.2, "top_p": 0.9}, "max_tokens": 100}
    session = open_session(http, model=MODEL, sampling_params=sampling)
    answered = [turn(http, session, text) for text in ("Hello", "How are you?")]

    inputs = [shown for each in answered for shown in read_turn(http, session, each)]

    assert as_sent(inputs) == sent(chat)
    assert [message["role"] for message in inputs[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert inputs[1]["parameters"] == {"temperature": 0.2, "top_p": 0.9, "max_tokens": 100}
    assert inputs[1]["model"] == MODEL
    assert (inputs[1]["unknown"], inputs[1]["is_history_cut"], inputs[1]["has_more"]) == ([], False, False)


def test_resumed_turns_with_forced_tools_are_shown_as_they_were_sent(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    session = open_session(http, model=MODEL, client_tools=[WEATHER], tool_config={"tool_choice": "get_weather"})
    chat.script(calls(("call_c", "get_weather", '{"city": "Lima"}')), says("Fine."))
    paused = turn(http, session, "Weather?")
    answered = resume(http, session, paused, "sunny").json()

    inputs = read_turn(http, session, answered)

    assert as_sent(inputs) == sent(chat)
    assert inputs[0]["parameters"]["tool_choice"]["function"]["name"] == "get_weather"
    assert "tool_choice" not in inputs[1]["parameters"]


def test_tools_of_mcp_servers_are_shown_as_they_were_sent(
    http: httpx.Client, chat: ChatCompletionsServer, mcp: str
) -> None:
    session = open_session(http, model=MODEL, toolgroups=[mcp])
    answered = turn(http, session, 'add {"a": 1, "b": 2}')

    inputs = read_turn(http, session, answered)

    assert as_sent(inputs) == sent(chat)
    assert len(inputs) == 2
    [told] = inputs[0]["unknown"]
    assert mcp in told


def test_documents_are_shown_as_they_were_sent(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    session = open_session(http, model=MODEL)
    documents = [{"content": "Llamas live in the Andes.", "mime_type": "text/plain"}]
    answered = [turn(http, session, "What is this?", documents=documents), turn(http, session, "And?")]

    inputs = [shown for each in answered for shown in read_turn(http, session, each)]

    assert as_sent(inputs) == sent(chat)
    assert "Llamas live" in str(inputs[1]["messages"])


def test_images_are_shown_with_their_sizes(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    session = open_session(http, model=MODEL)
    content = [{"type": "image", "image": {"data": PIXEL}}, {"type": "text", "text": "What is this?"}]
    answered = turn(http, session, content)

    [shown] = read_turn(http, session, answered)

    image, text = shown["messages"][-1]["content"]
    assert image == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,"},
        "omitted_bytes": pytest.approx(len(PIXEL) * 3 // 4, abs=3),
    }
    assert text == chat.bodies[0]["messages"][-1]["content"][1]
    assert PIXEL not in json.dumps(shown)


def test_what_a_shield_blocked_is_shown_as_later_calls_saw_it(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    shield = {"shield_id": "words", "params": {"phrases": ["dynamite"], "user_message": "No."}}
    assert http.post("/v1/shields", json=shield).status_code == 200
    session = open_session(http, model=MODEL, input_shields=["words"], output_shields=["words"])
    turn(http, session, "Where is the dynamite?")
    answered = turn(http, session, "Hello")

    inputs = read_turn(http, session, answered)

    assert as_sent(inputs) == sent(chat)
    assert "dynamite" not in json.dumps(inputs)


@pytest.fixture
def knowledge(app_fixture: AppFixture) -> Iterator[None]:
    app_fixture.knowledge.chunks = CHUNKS
    yield
    app_fixture.knowledge.chunks = ()


def test_responses_with_file_search_are_shown_as_they_were_sent(
    http: httpx.Client, chat: ChatCompletionsServer, knowledge: None
) -> None:
    chat.script(calls(("call_s", "file_search", '{"query": "andes"}')), says("In the Andes."), says("Yes."))
    first = respond(http, SEARCH, model=MODEL, tools=[FILE_SEARCH], instructions="Be brief.", temperature=0.5)
    second = respond(http, "Sure?", model=MODEL, tools=[FILE_SEARCH], previous_response_id=first["id"])

    inputs = [*read_response(http, first), *read_response(http, second)]

    assert as_sent(inputs) == sent(chat)
    assert len(inputs) == 3


def test_responses_in_a_conversation_are_shown_as_they_were_sent(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    items = [{"type": "message", "role": "user", "content": "I am Ann."}]
    conversation = http.post("/v1/conversations", json={"items": items}).json()["id"]
    responses = [respond(http, text, model=MODEL, conversation=conversation) for text in ("Hello", "Who am I?")]

    inputs = [shown for response in responses for shown in read_response(http, response)]

    assert as_sent(inputs) == sent(chat)
    assert inputs[1]["messages"][0]["content"] == "I am Ann."


def test_a_file_of_a_response_is_shown_as_it_was_sent(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    data = "data:text/plain;base64,TGxhbWFzLg=="
    parts = [{"type": "input_file", "filename": "a.txt", "file_data": data}, {"type": "input_text", "text": "What?"}]
    response = respond(http, [{"role": "user", "content": parts}], model=MODEL)

    inputs = read_response(http, response)

    assert as_sent(inputs) == sent(chat)
    assert "Llamas." in json.dumps(inputs)


def test_a_result_that_was_shortened_for_the_model_is_marked(
    http: httpx.Client, chat: ChatCompletionsServer, app_fixture: AppFixture, mcp: str
) -> None:
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"tool_result_bytes": 1})
    app_fixture.made.clear()
    session = open_session(http, model=MODEL, toolgroups=[mcp])
    answered = turn(http, session, 'add {"a": 17, "b": 20}')
    app_fixture.settings = settings

    first, second = read_turn(http, session, answered)

    assert as_sent([first, second]) == sent(chat)
    assert first["shortened_results"] == []
    assert [second["messages"][place]["role"] for place in second["shortened_results"]] == ["tool"]


def test_long_inputs_come_in_pages_and_long_texts_are_cut(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    session = open_session(http, model=MODEL)
    chat.script(*[says("Fine.") for _ in range(8)])
    answered = [turn(http, session, f"{number} " + "x" * LARGE) for number in range(8)]

    [first] = read_turn(http, session, answered[-1])
    [second] = read_turn(http, session, answered[-1], start_index=len(first["messages"]))

    assert first["has_more"]
    assert not second["has_more"]
    pages = [*first["messages"], *second["messages"]]
    assert first["message_count"] == second["message_count"] == len(pages) == 16
    assert second["start_index"] == len(first["messages"])
    whole = chat.bodies[-1]["messages"]
    assert [message["role"] for message in pages] == [message["role"] for message in whole]
    cut = {each["message"]: each["characters"] for page in (first, second) for each in page["cut_texts"]}
    assert cut == dict.fromkeys(range(1, 16, 2), LARGE + 2 - LONGEST_TEXT)
    assert pages[1]["content"].endswith(" characters are left out here.]")
    assert len(json.dumps(first)) < 1_500_000


def test_a_page_beyond_the_end_is_empty(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    session = open_session(http, model=MODEL)
    answered = turn(http, session, "Hello")

    [shown] = read_turn(http, session, answered, start_index=1000)

    assert (shown["messages"], shown["message_count"], shown["has_more"]) == ([], 2, False)


def test_secrets_of_the_agents_tools_are_masked(http: httpx.Client, chat: ChatCompletionsServer, mcp: str) -> None:
    groups = [{"name": mcp, "args": {"api_key": SECRET}}]
    session = open_session(http, model=MODEL, toolgroups=groups, instructions=f"The key is {SECRET}.")
    answered = turn(http, session, f"Is it {SECRET}?")

    [shown] = read_turn(http, session, answered)

    assert SECRET not in json.dumps(shown)
    assert shown["messages"][0]["content"] == "The key is ***."


def test_a_secret_of_the_reader_is_masked(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    session = open_session(http, model=MODEL)
    answered = turn(http, session, f"Is it {SECRET}?")
    [step] = answered["steps"]
    path = f"{session}/turn/{answered['turn_id']}/step/{step['step_id']}/input"

    headers = {"X-LlamaStack-Provider-Data": json.dumps({"tavily_search_api_key": SECRET})}
    shown = http.get(path, headers=headers)

    assert shown.status_code == 200
    assert SECRET not in shown.text


def test_a_server_of_tools_that_is_gone_leaves_the_messages(
    http: httpx.Client, chat: ChatCompletionsServer, app_fixture: AppFixture, mcp: str
) -> None:
    session = open_session(http, model=MODEL, toolgroups=[mcp])
    answered = turn(http, session, "Hello")
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"registry": "{}"})
    app_fixture.made.clear()

    [shown] = read_turn(http, session, answered)

    app_fixture.settings = settings
    assert shown["tools"] is None
    assert mcp in shown["unknown"][0]
    assert shown["messages"] == chat.bodies[0]["messages"]


def test_the_input_of_another_step_is_refused(http: httpx.Client, chat: ChatCompletionsServer, mcp: str) -> None:
    session = open_session(http, model=MODEL, toolgroups=[mcp])
    answered = turn(http, session, 'add {"a": 1, "b": 2}')
    step = answered["steps"][1]

    refused = http.get(f"{session}/turn/{answered['turn_id']}/step/{step['step_id']}/input")

    assert assert_error(refused, 400, "step_without_input")["param"] == "step_id"


@pytest.mark.parametrize("start_index", ["-1", "x", "10000000"])
def test_an_unusable_place_is_refused(http: httpx.Client, chat: ChatCompletionsServer, start_index: str) -> None:
    session = open_session(http, model=MODEL)
    answered = turn(http, session, "Hello")
    path = f"{session}/turn/{answered['turn_id']}/step/{answered['steps'][0]['step_id']}/input"

    assert http.get(path, params={"start_index": start_index}).status_code == 400


def test_a_deleted_session_has_no_inputs(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    session = open_session(http, model=MODEL)
    answered = turn(http, session, "Hello")
    path = f"{session}/turn/{answered['turn_id']}/step/{answered['steps'][0]['step_id']}/input"
    http.delete(session)

    assert http.get(path).status_code == 404


def test_an_unmodified_client_reads_the_time_to_the_first_token(
    http: httpx.Client, client: LlamaStackClient, chat: ChatCompletionsServer
) -> None:
    session = open_session(http, model=MODEL)
    answered = turn(http, session, "Hello")
    [_, _, _, agent_id, _, session_id] = session.split("/")
    ids = {"agent_id": agent_id, "session_id": session_id, "turn_id": answered["turn_id"]}

    step = client.agents.steps.retrieve(answered["steps"][0]["step_id"], **ids).step

    assert step.step_type == "inference"
    assert step.to_dict()["first_token_ms"] == answered["steps"][0]["first_token_ms"] >= 0
