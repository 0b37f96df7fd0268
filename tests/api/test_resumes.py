import httpx
from tests.api.api_client import STEP, TIME, WEATHER, answers_to, open_session, payloads, resume, stream, turn, turns_of
from tests.api.app_fixture import AppFixture

from stint.domain.inference import AssistantAnswer, ToolResult


def test_text_beside_a_tool_call_is_kept_everywhere(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="recorded/model", client_tools=[WEATHER])

    paused = turn(http, session, "say: Let me look.\nget_weather in Ulm")
    done = resume(http, session, paused, "sunny").json()

    assert paused["output_message"]["content"] == "Let me look."
    assert paused["steps"][0]["model_response"]["content"] == "Let me look."
    [answer] = [message for message in app_fixture.last_request.messages if isinstance(message, AssistantAnswer)]
    assert (answer.text, len(answer.tool_calls)) == ("Let me look.", 1)
    assert done["steps"][0] == paused["steps"][0]


def test_several_calls_at_once_are_answered_in_one_resume_whatever_their_order(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = open_session(http, model="recorded/model", client_tools=[WEATHER, TIME])
    paused = turn(http, session, "get_weather for Ulm and get_time")
    answers = answers_to(paused, "sunny", "noon")

    response = http.post(
        f"{session}/turn/{paused['turn_id']}/resume", json={"tool_responses": answers[::-1], "stream": False}
    )

    message = paused["output_message"]
    assert paused["status"] == "awaiting_input"
    assert message["stop_reason"] == "end_of_message"
    assert [call["tool_name"] for call in message["tool_calls"]] == ["get_weather", "get_time"]
    assert list(message["tool_calls"][0]) == ["call_id", "tool_name", "arguments", "arguments_json"]
    assert paused["steps"][0]["model_response"]["stop_reason"] == "end_of_turn"
    results = [each for each in app_fixture.last_request.messages if isinstance(each, ToolResult)]
    assert [(each.call_id, each.content) for each in results] == [
        (answers[0]["call_id"], "sunny"),
        (answers[1]["call_id"], "noon"),
    ]
    assert response.json()["status"] == "completed"


def test_a_resumed_turn_is_the_paused_one_gone_on(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather in Ulm")
    answers = answers_to(paused, "sunny")
    answers[0] |= {"metadata": {"source": "window"}}

    done = http.post(f"{session}/turn/{paused['turn_id']}/resume", json={"tool_responses": answers}).json()

    assert [step["step_type"] for step in done["steps"]] == ["inference", "tool_execution", "inference"]
    assert len({step["step_id"] for step in done["steps"]}) == 3
    assert list(done["steps"][1]) == [*STEP, "tool_calls", "tool_responses"]
    assert done["steps"][1]["tool_responses"] == answers
    assert list(done["steps"][1]["tool_responses"][0]) == ["call_id", "tool_name", "content", "metadata"]
    assert done["steps"][1]["tool_calls"] == paused["output_message"]["tool_calls"]
    assert done["output_message"]["content"] == "get_weather answered: sunny"
    assert (done["turn_id"], done["started_at"]) == (paused["turn_id"], paused["started_at"])
    assert turns_of(http, session) == [done]


def test_a_streamed_resume_begins_with_the_answered_step(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = stream(http, session, "get_weather in Ulm")[-1]["turn"]

    events = payloads(resume(http, session, paused, "sunny", stream=True))

    assert [event["event_type"] for event in events[:2]] == ["step_complete", "step_start"]
    assert events[0]["step_type"] == "tool_execution"
    assert events[-1]["event_type"] == "turn_complete"
    assert events[-1]["turn"]["output_message"]["content"] == "get_weather answered: sunny"


def test_a_wrong_resume_changes_nothing(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather in Ulm")
    path = f"{session}/turn/{paused['turn_id']}/resume"
    right = answers_to(paused, "sunny")
    unknown = [right[0] | {"call_id": "call_nobody_made"}]

    refused = [http.post(path, json={"tool_responses": wrong}) for wrong in ([], unknown, right * 2)]

    assert [response.status_code for response in refused] == [400] * 3
    assert [response.json()["error"]["param"] for response in refused] == ["tool_responses"] * 3
    assert right[0]["call_id"] in refused[0].json()["error"]["message"]
    assert "call_nobody_made" in refused[1].json()["error"]["message"]
    assert turns_of(http, session) == [paused]
    assert http.post(path, json={"tool_responses": right}).json()["status"] == "completed"


def test_what_does_not_wait_cannot_be_resumed(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather in Ulm")
    given_up = answers_to(paused, "sunny")
    later = turn(http, session, "say: another subject")

    cancelled = resume(http, session, paused, "sunny")
    completed = http.post(f"{session}/turn/{later['turn_id']}/resume", json={"tool_responses": given_up})

    assert [(each.status_code, each.json()["error"]["code"]) for each in (cancelled, completed)] == [
        (409, "turn_not_awaiting_input")
    ] * 2
    assert [each["status"] for each in turns_of(http, session)] == ["cancelled", "completed"]
    assert turns_of(http, session)[0]["output_message"]["tool_calls"] == []
