import httpx
from tests.api.api_client import STEP, WEATHER, answers_to, open_session, turn, turns_of


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
