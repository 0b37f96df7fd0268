"""Pauses and resumes, held against what Llama Stack 0.2.12 was recorded to do."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, assert_error, create_session, data, open_session, resume, say, turn, turns_of
from tests.api.sequences import ADD, calls, last_turn, outline, says, sequence
from tests.servers.chat_completions import ChatCompletionsServer

ASK = ("call_c", "get_weather", '{"city": "Ulm"}')
TOOL = ["start tool_execution", "call in_progress add", "complete tool_execution"]
END = ["complete inference", "turn_complete end_of_turn"]


@pytest.fixture
def asking(http: httpx.Client, chat: ChatCompletionsServer) -> str:
    """A session of an agent with a client tool."""
    return open_session(http, model="openai/m", client_tools=[WEATHER])


def resume_with(http: httpx.Client, session: str, turn_id: str, *responses: dict[str, Any]) -> httpx.Response:
    return http.post(f"{session}/turn/{turn_id}/resume", json={"tool_responses": responses, "stream": True})


def pause(http: httpx.Client, chat: ChatCompletionsServer, session: str) -> dict[str, Any]:
    """Begin a turn that waits for one call of the client tool."""
    chat.script(calls(ASK))
    return last_turn(say(http, session, "weather?", stream=True))


RIGHT: dict[str, Any] = {"call_id": "call_c", "tool_name": "get_weather", "content": "sunny"}


def test_a_client_tool_pauses_the_turn_and_its_answer_resumes_it_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str
) -> None:
    chat.script(calls(ASK), calls(ASK), says("final"))

    told = [say(http, asking, "weather?", stream=True)]
    for answer in ("sunny", "rainy"):
        told.append(resume(http, asking, last_turn(told[-1]), answer, stream=True))

    pause = [
        "start inference",
        "call succeeded get_weather",
        "complete inference",
        "turn_awaiting_input end_of_message",
    ]
    assert [sequence(each) for each in told] == [
        ["turn_start", *pause],
        ["complete tool_execution", *pause],
        ["complete tool_execution", "start inference", "text final", *END],
    ]
    paused = last_turn(told[0])
    assert paused["output_message"]["content"] == ""
    assert paused["output_message"]["tool_calls"] == paused["steps"][0]["model_response"]["tool_calls"]
    assert paused["steps"][0]["model_response"]["stop_reason"] == "end_of_turn"
    assert turns_of(http, asking) == [last_turn(told[2])]


def test_a_resumed_step_has_an_id_of_its_own_as_reading_it_would_give_another_step(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str
) -> None:
    chat.script(calls(ASK), says("fine"))
    paused = last_turn(say(http, asking, "weather?", stream=True))

    told = resume(http, asking, paused, "sunny", stream=True)

    steps = last_turn(told)["steps"]
    assert len({step["step_id"] for step in steps}) == len(steps) == 3
    assert data(told)[0]["event"]["payload"]["step_details"] == steps[1]
    path = f"{asking}/turn/{paused['turn_id']}/step/{steps[1]['step_id']}"
    assert http.get(path).json() == {"step": steps[1]}
    assert paused["steps"][0]["completed_at"] <= steps[1]["started_at"] <= steps[1]["completed_at"]


def test_server_tools_run_before_a_turn_waits_for_the_clients_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, mcp: str
) -> None:
    session = open_session(http, model="openai/m", toolgroups=[mcp], client_tools=[WEATHER])
    chat.script(calls(ASK, ADD), says("done"))

    told = [say(http, session, "both", stream=True)]
    told.append(resume(http, session, last_turn(told[0]), "sunny", stream=True))

    assert sequence(told[0]) == [
        *["turn_start", "start inference", "call succeeded get_weather", "call succeeded add", "complete inference"],
        *TOOL,
        "turn_awaiting_input end_of_message",
    ]
    output = last_turn(told[0])["output_message"]
    assert [call["tool_name"] for call in output["tool_calls"]] == ["get_weather"]
    assert sequence(told[1]) == ["complete tool_execution", "start inference", "text done", *END]


def test_iterations_count_across_resumes_as_recorded_and_the_last_one_completes_the_turn(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    session = open_session(http, model="openai/m", client_tools=[WEATHER], max_infer_iters=2)
    chat.script(calls(ASK), calls(ASK))
    paused = last_turn(say(http, session, "loop", stream=True))

    told = sequence(resume(http, session, paused, "sunny", stream=True))
    beyond = resume(http, session, paused, "rainy", stream=True)

    recorded = ["complete tool_execution", "start inference", "call succeeded get_weather", "complete inference"]
    assert told == [*recorded, "turn_complete end_of_turn"]
    assert beyond.status_code == 409
    assert len(chat.bodies) == 2


@pytest.mark.parametrize(
    "content",
    ["sunny", {"type": "text", "text": "sunny"}, [{"type": "text", "text": "sunny"}, {"type": "text", "text": "warm"}]],
)
def test_a_result_of_any_shape_and_its_metadata_are_kept_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str, content: Any
) -> None:
    paused = pause(http, chat, asking)
    response = RIGHT | {"content": content, "metadata": {"src": "t"}}

    told = resume_with(http, asking, paused["turn_id"], response)

    assert sequence(told)[0] == "complete tool_execution"
    step = data(told)[0]["event"]["payload"]["step_details"]
    assert step["tool_calls"] == paused["output_message"]["tool_calls"]
    assert step["tool_responses"] == [response]
    assert chat.bodies[1]["messages"][-1]["tool_call_id"] == "call_c"


def test_a_result_needs_its_tools_name_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str
) -> None:
    paused = pause(http, chat, asking)

    refused = resume_with(http, asking, paused["turn_id"], {"call_id": "call_c", "role": "tool", "content": "sunny"})

    assert assert_error(refused, 400, "invalid_request")["param"] == "tool_responses[0].tool_name"
    assert turns_of(http, asking) == [paused]


@pytest.mark.parametrize(
    "responses",
    [[], [RIGHT | {"call_id": "nobodys"}], [RIGHT, RIGHT], [RIGHT, RIGHT | {"call_id": "nobodys"}]],
    ids=["none", "a wrong id", "one id twice", "one too many"],
)
def test_results_that_do_not_fit_the_calls_are_refused(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str, responses: list[dict[str, Any]]
) -> None:
    """Otherwise the model would be told what never happened."""
    paused = pause(http, chat, asking)

    refused = resume_with(http, asking, paused["turn_id"], *responses)

    assert assert_error(refused, 400, "tool_responses_mismatch")["param"] == "tool_responses"
    assert turns_of(http, asking) == [paused]
    assert len(chat.bodies) == 1
    assert sequence(resume_with(http, asking, paused["turn_id"], RIGHT))[-1] == "turn_complete end_of_turn"


def test_a_second_resume_is_refused_as_it_would_rewrite_what_was_answered(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str
) -> None:
    paused = pause(http, chat, asking)
    done = last_turn(resume_with(http, asking, paused["turn_id"], RIGHT))

    again = resume_with(http, asking, paused["turn_id"], RIGHT | {"content": "rainy"})

    assert_error(again, 409, "turn_not_awaiting_input")
    assert turns_of(http, asking) == [done]
    assert len(chat.bodies) == 2


def test_the_turn_that_is_named_is_resumed_as_the_last_one_by_its_random_id_was_another(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str
) -> None:
    chat.script(says("EARLIER"))
    earlier = last_turn(say(http, asking, "earlier", stream=True))
    paused = pause(http, chat, asking)

    told = resume_with(http, asking, paused["turn_id"], RIGHT)

    done = last_turn(told)
    assert (done["turn_id"], done["started_at"]) == (paused["turn_id"], paused["started_at"])
    assert done["input_messages"] == paused["input_messages"]
    assert [step["step_type"] for step in done["steps"]] == ["inference", "tool_execution", "inference"]
    assert turns_of(http, asking) == [earlier, done]


def test_an_unknown_turn_is_404(http: httpx.Client, chat: ChatCompletionsServer, asking: str) -> None:
    """A new turn with that id would be a copy of another one."""
    empty = create_session(http, asking.split("/")[3])
    paused = pause(http, chat, asking)

    refused = [resume_with(http, session, "nope", RIGHT) for session in (empty, asking)]
    refused.append(resume_with(http, empty, paused["turn_id"], RIGHT))

    for response in refused:
        assert_error(response, 404, "turn_not_found")
    assert turns_of(http, empty) == []
    assert turns_of(http, asking) == [paused]


def test_a_resume_that_is_not_streamed_returns_the_same_turn(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str
) -> None:
    """The original refuses it."""
    beside = create_session(http, asking.split("/")[3])
    chat.script(calls(ASK), calls(ASK), says("final"), calls(ASK), calls(ASK), says("final"))

    told = last_turn(say(http, asking, "weather?", stream=True))
    for answer in ("sunny", "rainy"):
        told = last_turn(resume(http, asking, told, answer, stream=True))
    answered = turn(http, beside, "weather?")
    for answer in ("sunny", "rainy"):
        answered = resume(http, beside, answered, answer).json()

    assert outline(answered) == outline(told)
