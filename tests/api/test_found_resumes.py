"""Repeated resumes: exactly the answers that a turn has already get the rest of the turn."""

import threading

import httpx
import pytest
from tests.api.api_client import WEATHER, assert_error, open_session, resume, turn, turns_of
from tests.api.app_fixture import LEASE, AppFixture, run_in_thread
from tests.clock import CLOCK


@pytest.fixture
def asking(http: httpx.Client) -> str:
    return open_session(http, model="recorded/x", client_tools=[WEATHER])


@pytest.mark.parametrize("stream", [False, True])
def test_a_repeated_resume_gets_the_rest_of_the_turn(
    http: httpx.Client, app_fixture: AppFixture, asking: str, stream: bool
) -> None:
    paused = turn(http, asking, "get_weather in Ulm")

    first, again = [resume(http, asking, paused, "sunny", stream=stream) for _ in range(2)]

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.text == first.text
    assert len(app_fixture.recorder.requests) == 2
    assert len(turns_of(http, asking)[0]["steps"]) == 3


def test_each_of_two_resumes_is_found_up_to_its_own_end(http: httpx.Client, asking: str) -> None:
    first_pause = turn(http, asking, "get_weather in Ulm")
    done = resume(http, asking, first_pause, "sunny").json()
    extra = [{"call_id": "later", "tool_name": "get_weather", "content": "rainy"}]
    place = f"{asking}/turn/{done['turn_id']}/resume"
    second = http.post(place, json={"tool_responses": extra})

    again = [resume(http, asking, first_pause, "sunny"), http.post(place, json={"tool_responses": extra})]

    assert [len(each.json()["steps"]) for each in again] == [3, 5]
    assert again[1].json() == second.json()


def test_a_repeated_resume_of_an_earlier_turn_gets_its_rest(http: httpx.Client, asking: str) -> None:
    paused = turn(http, asking, "get_weather in Ulm")
    done = resume(http, asking, paused, "sunny").json()
    turn(http, asking, "say: more")

    assert resume(http, asking, paused, "sunny").json() == done


def test_a_repeated_resume_whose_result_was_blocked_gets_the_rest_of_the_turn(http: httpx.Client) -> None:
    http.post("/v1/shields", json={"shield_id": "words", "params": {"phrases": ["bomb"], "user_message": "No."}})
    shields = {"get_weather": {"output_shields": ["words"]}}
    session = open_session(http, client_tools=[WEATHER], tool_shields=shields)
    paused = turn(http, session, "get_weather in Ulm")

    first, again = [resume(http, session, paused, "a bomb") for _ in range(2)]

    assert "bomb" not in first.text
    assert (again.status_code, again.text) == (200, first.text)


def test_a_repeated_resume_is_found_after_the_death_of_an_earlier_one(
    http: httpx.Client, app_fixture: AppFixture, asking: str
) -> None:
    done = turn(http, asking, "say: Hello")
    *_, agent_id, _, session_id = asking.split("/")
    ids = app_fixture.tenant, agent_id, session_id, done["turn_id"]
    run_in_thread(app_fixture.store.session_leases.acquire(*ids, resume=True, seconds=LEASE))
    CLOCK.move(LEASE + 1)
    extra = [{"call_id": "mine", "tool_name": "get_weather", "content": "rainy"}]

    first, again = [
        http.post(f"{asking}/turn/{done['turn_id']}/resume", json={"tool_responses": extra}) for _ in range(2)
    ]

    assert (first.status_code, len(first.json()["steps"])) == (200, 3)
    assert (again.status_code, again.text) == (200, first.text)


def test_other_answers_to_calls_that_were_answered_are_refused(http: httpx.Client, asking: str) -> None:
    paused = turn(http, asking, "get_weather in Ulm")
    resume(http, asking, paused, "sunny")

    assert_error(resume(http, asking, paused, "rainy"), 409, "turn_not_awaiting_input")


def test_equal_resumes_at_the_same_time_run_once(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather in Ulm")
    answers: list[httpx.Response] = []

    def send() -> None:
        answers.append(resume(http, session, paused, "sunny"))

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [each.status_code for each in answers] == [200] * 3
    assert len({each.text for each in answers}) == 1
    assert len(turns_of(http, session)[0]["steps"]) == 3
