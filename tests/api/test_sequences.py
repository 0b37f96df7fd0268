"""The events of a turn, held against what Llama Stack 0.2.12 was recorded to send for the same answers of a model.

`turn_start` comes before every recorded sequence: clients learn the turn's id before anything can go wrong.
"""

from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, data, open_session, say, turn, turns_of
from tests.api.sequences import ADD, calls, last_turn, outline, says, sequence
from tests.servers.chat_completions import ChatCompletionsServer, stream
from tests.servers.scripted_http import Reply

ASK = ("call_c", "get_weather", '{"city": "Ulm"}')
TOTAL = ("call_b", "total", '{"numbers": [1, 2, 4]}')
TOOL = ["start tool_execution", "call in_progress add", "complete tool_execution"]
END = ["complete inference", "turn_complete end_of_turn"]


@pytest.fixture
def plain(http: httpx.Client, chat: ChatCompletionsServer) -> str:
    """A session of an agent without tools."""
    return open_session(http, model="openai/m")


@pytest.fixture
def asking(http: httpx.Client, chat: ChatCompletionsServer) -> str:
    """A session of an agent with a client tool."""
    return open_session(http, model="openai/m", client_tools=[WEATHER])


@pytest.fixture
def adding(http: httpx.Client, chat: ChatCompletionsServer, mcp: str) -> str:
    """A session of an agent with the tools of an MCP server."""
    return open_session(http, model="openai/m", toolgroups=[mcp])


@pytest.mark.parametrize(
    ("reply", "recorded"),
    [
        pytest.param(
            says("Hello", " there", ",", " friend", "."),
            ["text Hello", "text  there", "text ,", "text  friend", "text ."],
            id="a plain text is an event for each of the model's pieces",
        ),
        pytest.param(says(""), [], id="an empty answer has no piece"),
        pytest.param(says("filtered", finish="content_filter"), ["text filtered"], id="a filtered answer"),
        pytest.param(says("no ", "finish", finish=None), ["text no ", "text finish"], id="a finish without a reason"),
    ],
)
def test_text_is_streamed_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, plain: str, reply: Reply, recorded: list[str]
) -> None:
    chat.script(reply)

    told = say(http, plain, "hi", stream=True)

    assert sequence(told) == ["turn_start", "start inference", *recorded, *END]
    assert turns_of(http, plain) == [last_turn(told)]


def test_an_answer_cut_by_length_says_out_of_tokens_as_clients_cannot_know_otherwise(
    http: httpx.Client, chat: ChatCompletionsServer, plain: str
) -> None:
    chat.script(says("cut ", "off", finish="length"))

    told = say(http, plain, "hi", stream=True)

    assert sequence(told)[2:] == ["text cut ", "text off", "complete inference", "turn_complete out_of_tokens"]
    assert last_turn(told)["steps"][0]["model_response"]["stop_reason"] == "out_of_tokens"


def test_an_agent_with_tools_sends_no_empty_piece_of_text_as_it_tells_nothing(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str
) -> None:
    chat.script(says("", "You ", "said ", "hi"))

    told = sequence(say(http, asking, "hi", stream=True))

    assert told == ["turn_start", "start inference", "text You ", "text said ", "text hi", *END]


def test_a_server_tool_is_run_between_two_inferences_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, adding: str
) -> None:
    chat.script(calls(ADD), says("The ", "sum ", "is ", "5."))

    told = say(http, adding, "2+3?", stream=True)

    assert sequence(told) == [
        *["turn_start", "start inference", "call succeeded add", "complete inference"],
        *TOOL,
        *["start inference", "text The ", "text sum ", "text is ", "text 5.", *END],
    ]
    called = {"call_id": "call_a", "tool_name": "add", "arguments": {"a": 2, "b": 3}, "arguments_json": ADD[2]}
    content = [{"type": "text", "text": "5"}]
    answered = {"call_id": "call_a", "tool_name": "add", "content": content, "metadata": None}
    inference, execution, _ = last_turn(told)["steps"]
    assert inference["model_response"]["tool_calls"] == execution["tool_calls"] == [called]
    assert execution["tool_responses"] == [answered]
    assert inference["model_response"]["stop_reason"] == "end_of_turn"


def test_server_tools_of_one_answer_have_steps_in_its_order(
    http: httpx.Client, chat: ChatCompletionsServer, adding: str
) -> None:
    """As recorded, each has a step, though they run at once."""
    chat.script(calls(ADD, TOTAL), says("done"))

    told = sequence(say(http, adding, "both", stream=True))

    assert told == [
        *["turn_start", "start inference", "call succeeded add", "call succeeded total", "complete inference"],
        *TOOL,
        *["start tool_execution", "call in_progress total", "complete tool_execution"],
        *["start inference", "text done", *END],
    ]


def test_text_beside_a_call_is_streamed_and_kept(http: httpx.Client, chat: ChatCompletionsServer, adding: str) -> None:
    """It is streamed as recorded. Unlike there, it is kept, because users have read it."""
    chat.script(calls(ADD, text=("thin", "king")), says("done"))

    told = say(http, adding, "text and tool", stream=True)

    assert sequence(told)[1:5] == ["start inference", "text thin", "text king", "call succeeded add"]
    assert last_turn(told)["steps"][0]["model_response"]["content"] == "thinking"
    assert chat.bodies[1]["messages"][2]["content"] == "thinking"


@pytest.mark.parametrize(("allowed", "rounds"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_exhausted_iterations_complete_the_turn_as_nobody_could_answer_its_calls(
    http: httpx.Client, chat: ChatCompletionsServer, adding: str, allowed: int, rounds: int
) -> None:
    chat.script(*[calls(ADD)] * (rounds + 1), says("after"))

    told = say(http, adding, "loop", stream=True, max_infer_iters=allowed)
    after = say(http, adding, "go on", stream=True)

    inference = ["start inference", "call succeeded add", "complete inference"]
    assert sequence(told) == ["turn_start", *[*inference, *TOOL] * rounds, *inference, "turn_complete end_of_turn"]
    assert last_turn(told)["output_message"]["tool_calls"] == []
    assert len(last_turn(told)["steps"][-1]["model_response"]["tool_calls"]) == 1
    assert sequence(after)[-1] == "turn_complete end_of_turn"


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", '"x"'])
def test_arguments_that_are_no_object_are_told_to_the_model(
    http: httpx.Client, chat: ChatCompletionsServer, adding: str, arguments: str
) -> None:
    """The recorded answer in Python helps nobody."""
    chat.script(calls(("c1", "add", arguments)), says("Let me see."))

    told = say(http, adding, "2+3?", stream=True)

    assert sequence(told) == [
        *["turn_start", "start inference", f"call failed {arguments}", "complete inference"],
        *TOOL,
        *["start inference", "text Let me see.", *END],
    ]
    assert "not a JSON object" in chat.bodies[1]["messages"][-1]["content"]


def test_an_empty_argument_string_is_an_empty_object_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, asking: str
) -> None:
    chat.script(calls(("c1", "get_weather", "")))

    told = say(http, asking, "weather?", stream=True)

    [call] = last_turn(told)["output_message"]["tool_calls"]
    assert (call["arguments"], call["arguments_json"]) == ({}, "{}")


def test_a_model_that_breaks_off_ends_a_kept_turn(http: httpx.Client, chat: ChatCompletionsServer, adding: str) -> None:
    """The stream ends as recorded. The turn is kept, because its steps may have had effects."""
    broken = stream({"content": "par"}, {"content": "tial "}, finish=None, done=False)
    chat.script(calls(ADD), Reply(broken.parts, headers=broken.headers, ending="cut"))

    told = say(http, adding, "2+3?", stream=True)

    assert sequence(told)[-4:] == ["start inference", "text par", "text tial ", "error model_error"]
    [stored] = turns_of(http, adding)
    assert (stored["status"], [step["step_type"] for step in stored["steps"]]) == (
        "failed",
        ["inference", "tool_execution"],
    )
    assert stored["turn_id"] == data(told)[0]["event"]["payload"]["turn_id"]


@pytest.mark.parametrize(
    "replies",
    [
        (says("Hello", " there"),),
        (says(""),),
        (says("cut", finish="length"),),
        (calls(ADD, text=("Let me ", "see.")), says("5")),
        (calls(ADD, TOTAL), says("5 and 7")),
        (calls(ASK, ADD),),
        (calls(("c1", "nosuch", "{}")), says("Sorry.")),
        (calls(("c1", "add", "[")), says("Sorry.")),
    ],
)
def test_a_turn_that_is_not_streamed_is_the_same_turn(
    http: httpx.Client, chat: ChatCompletionsServer, mcp: str, replies: tuple[Reply, ...]
) -> None:
    """The original refuses it."""
    config: dict[str, Any] = {"model": "openai/m", "toolgroups": [mcp], "client_tools": [WEATHER]}
    streamed, whole = open_session(http, **config), open_session(http, **config)
    chat.script(*replies, *replies)

    told = last_turn(say(http, streamed, "go", stream=True))
    answered = turn(http, whole, "go", stream=False)

    assert outline(answered) == outline(told)
    assert turns_of(http, whole) == [answered]
