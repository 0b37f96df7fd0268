"""The events of shields, held against what Llama Stack 0.2.12 was recorded to send."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, assert_error, create_session, open_session, resume, say, turn, turns_of
from tests.api.sequences import ADD, calls, last_turn, outline, says, sequence
from tests.servers.chat_completions import ChatCompletionsServer

SORRY = "I can't answer that."
ASK = ("q0", "get_weather", '{"city": "Ulm"}')
BEFORE = ["start shield_call user-input", "complete shield_call passes"]
AFTER = ["start shield_call assistant-output", "complete shield_call passes"]
BLOCKED = ["complete shield_call blocks", "turn_complete end_of_turn"]
REFUSAL = {"role": "assistant", "content": SORRY, "stop_reason": "end_of_turn", "tool_calls": []}


@pytest.fixture
def guard(http: httpx.Client) -> str:
    """A shield that forbids "bomb"."""
    return forbid(http, "guard", "bomb")


@pytest.fixture
def guarded(http: httpx.Client, chat: ChatCompletionsServer, guard: str) -> str:
    """A session of an agent with that shield on both sides, and with a client tool."""
    shields = {"input_shields": [guard], "output_shields": [guard]}
    return open_session(http, model="openai/m", client_tools=[WEATHER], **shields)


def forbid(http: httpx.Client, name: str, phrase: str, **params: Any) -> str:
    body = {"shield_id": name, "params": {"phrases": [phrase], "user_message": SORRY, **params}}
    assert http.post("/v1/shields", json=body).status_code == 200
    return name


def violation_of(turn: dict[str, Any]) -> dict[str, Any]:
    violation: dict[str, Any] = turn["steps"][-1]["violation"]
    return violation


def test_shields_that_pass_are_a_step_on_each_side(
    http: httpx.Client, chat: ChatCompletionsServer, guarded: str
) -> None:
    """The steps are as recorded. The text comes at once, because it was held back."""
    chat.script(says("You ", "said: ", "hello", "."))

    told = say(http, guarded, "hello", stream=True)

    assert sequence(told) == [
        "turn_start",
        *BEFORE,
        *["start inference", "text You said: hello.", "complete inference"],
        *AFTER,
        "turn_complete end_of_turn",
    ]
    assert [step["violation"] for step in last_turn(told)["steps"][::2]] == [None, None]


def test_blocked_input_ends_the_turn_without_the_model_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, guarded: str
) -> None:
    told = say(http, guarded, "how to make a bomb", stream=True)

    assert sequence(told) == ["turn_start", "start shield_call user-input", *BLOCKED]
    ended = last_turn(told)
    assert ended["output_message"] == REFUSAL
    assert (violation_of(ended)["violation_level"], violation_of(ended)["user_message"]) == ("error", SORRY)
    assert chat.bodies == []
    assert turns_of(http, guarded) == [ended]


def test_a_turn_after_blocked_input_does_not_send_it(
    http: httpx.Client, chat: ChatCompletionsServer, guarded: str
) -> None:
    """The turn runs as recorded. The model would answer what was blocked."""
    say(http, guarded, "how to make a bomb", stream=True)

    told = sequence(say(http, guarded, "hello again", stream=True))

    assert told[:3] + told[-3:] == ["turn_start", *BEFORE, *AFTER, "turn_complete end_of_turn"]
    assert "bomb" not in str(chat.bodies)
    roles = [(message["role"], message["content"]) for message in chat.bodies[0]["messages"][-2:]]
    assert roles == [("assistant", SORRY), ("user", "hello again")]


def test_a_blocked_answer_has_steps_and_none_of_its_words(
    http: httpx.Client, chat: ChatCompletionsServer, guarded: str
) -> None:
    """The steps are as recorded. Users would have read the words."""
    chat.script(says("this ", "is ", "a bomb ", "text"))

    told = say(http, guarded, "tell me", stream=True)
    again = turn(http, guarded, "say again")

    assert sequence(told) == [
        "turn_start",
        *BEFORE,
        *["start inference", "complete inference", "start shield_call assistant-output"],
        *BLOCKED,
    ]
    assert last_turn(told)["output_message"] == REFUSAL
    assert "bomb" not in told.text + http.get(guarded).text + str(chat.bodies[1:])
    assert [message["role"] for message in chat.bodies[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert again["status"] == "completed"


def test_several_shields_are_one_step_as_recorded(http: httpx.Client, chat: ChatCompletionsServer, guard: str) -> None:
    forbid(http, "careful", "word", violation_level="warn")
    forbid(http, "second", "bomb", user_message="The second one.")
    session = open_session(http, model="openai/m", input_shields=["careful", guard, "second"])

    blocked = say(http, session, "a bomb of a word", stream=True)
    warned = say(http, session, "a word", stream=True)

    assert sequence(blocked) == ["turn_start", "start shield_call user-input", *BLOCKED]
    assert violation_of(last_turn(blocked))["user_message"] == SORRY
    assert sequence(warned)[:4] == ["turn_start", *BEFORE, "start inference"]


def test_shields_watch_a_client_tools_call_and_its_result_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, guarded: str
) -> None:
    chat.script(calls(ASK), says("fine"))

    paused = say(http, guarded, "weather?", stream=True)
    resumed = resume(http, guarded, last_turn(paused), "sunny", stream=True)

    assert sequence(paused) == [
        "turn_start",
        *BEFORE,
        *["start inference", "call succeeded get_weather", "complete inference"],
        *AFTER,
        "turn_awaiting_input end_of_message",
    ]
    assert sequence(resumed) == [
        "complete tool_execution",
        *BEFORE,
        *["start inference", "text fine", "complete inference"],
        *AFTER,
        "turn_complete end_of_turn",
    ]
    steps = [step["step_type"] for step in last_turn(resumed)["steps"]]
    assert steps == [*["shield_call", "inference", "shield_call", "tool_execution"], *steps[:3]]


def test_an_answer_that_calls_a_server_tool_is_screened_too(
    http: httpx.Client, chat: ChatCompletionsServer, guard: str, mcp: str
) -> None:
    """Its words and arguments would have left the stack."""
    session = open_session(http, model="openai/m", toolgroups=[mcp], output_shields=[guard])
    chat.script(calls(ADD), says("5"), calls(("c2", "boom", '{"why": "a bomb"}')))

    passed = sequence(say(http, session, "2+3?", stream=True))
    blocked = say(http, session, "boom", stream=True)

    assert passed == [
        *["turn_start", "start inference", "call succeeded add", "complete inference", *AFTER],
        *["start tool_execution", "call in_progress add", "complete tool_execution"],
        *["start inference", "text 5", "complete inference", *AFTER, "turn_complete end_of_turn"],
    ]
    assert sequence(blocked)[1:] == [
        *["start inference", "complete inference", "start shield_call assistant-output"],
        *BLOCKED,
    ]
    assert "a bomb" not in blocked.text + http.get(session).text


def test_a_failing_shield_ends_the_stream_and_fails_the_turn(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    """The stream ends with an error, as recorded, and the turn is kept as failed."""
    body = {"shield_id": "fails", "provider_id": "llama-guard", "provider_shield_id": "scripted/demo", "params": {}}
    assert http.post("/v1/shields", json=body).status_code == 200
    session = open_session(http, model="openai/m", input_shields=["fails"])

    told = say(http, session, "hello", stream=True)

    assert sequence(told) == ["turn_start", "start shield_call user-input", "error shield_failed"]
    assert [(each["status"], each["steps"]) for each in turns_of(http, session)] == [("failed", [])]
    assert chat.bodies == []


def test_an_unknown_shield_is_a_status_as_a_stream_that_has_begun_has_none(http: httpx.Client) -> None:
    session = open_session(http, input_shields=["nope"])

    told = say(http, session, "hello", stream=True)

    assert_error(told, 400, "shield_not_found")


@pytest.mark.parametrize("said", ["hello", "a bomb"])
def test_shielded_turns_that_are_not_streamed_are_the_same_turns(
    http: httpx.Client, chat: ChatCompletionsServer, guarded: str, said: str
) -> None:
    beside = create_session(http, guarded.split("/")[3])
    replies = [says("fine"), says("a ", "bomb"), calls(ASK)]
    chat.script(*(replies * 2 if said == "hello" else []))

    told = [last_turn(say(http, guarded, said, stream=True)) for _ in replies]
    answered = [turn(http, beside, said) for _ in replies]

    assert [outline(each) for each in answered] == [outline(each) for each in told]


def test_a_shield_is_asked_by_itself_as_recorded(http: httpx.Client, guard: str) -> None:
    def ask(shield: str, text: str) -> httpx.Response:
        body = {"shield_id": shield, "messages": [{"role": "user", "content": text}], "params": {}}
        return http.post("/v1/safety/run-shield", json=body)

    assert ask(guard, "hi").json() == {"violation": None}
    violation = ask(guard, "bomb").json()["violation"]
    assert list(violation) == ["violation_level", "user_message", "metadata"]
    assert (violation["violation_level"], violation["user_message"]) == ("error", SORRY)
    assert "nope" in assert_error(ask("nope", "bomb"), 400, "shield_not_found")["message"]
