"""Retries of turns without an idempotency key: they find the turn that their first attempt created."""

import json
import threading
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, create_session, open_session, say, turns_of, user
from tests.api.app_fixture import AppFixture, wait_until

from stint.domain.errors import ModelOverloaded, StintError
from stint.domain.ids import new_id
from stint.domain.inference import Accepted, Finished, FinishReason, InferenceRequest, ModelChunk, TextChunk


def attempt(http: httpx.Client, session: str, text: str, count: int, agent: str = "Client/1", **body: Any) -> Any:
    headers = {"x-stainless-retry-count": str(count), "user-agent": agent}
    return http.post(f"{session}/turn", json={"messages": [user(text)]} | body, headers=headers)


def turn_id_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["turn_id"])


def test_a_retry_of_a_turn_is_that_turn(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="recorded/x")

    first, retry = [attempt(http, session, "say: once", count) for count in range(2)]

    assert retry.json() == first.json()
    assert len(turns_of(http, session)) == len(app_fixture.recorder.requests) == 1


def test_a_retry_of_a_stream_has_the_same_events(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="recorded/x", client_tools=[WEATHER])

    first, retry = [attempt(http, session, "get_weather in Ulm", count, stream=True) for count in range(2)]

    assert retry.headers["content-type"] == first.headers["content-type"]
    assert retry.text == first.text
    assert len(turns_of(http, session)) == len(app_fixture.recorder.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_follows_a_running_turn(http: httpx.Client, app_fixture: AppFixture, stream: bool) -> None:
    session = open_session(http, model="faulty/gated")
    answers: list[httpx.Response] = []

    def send(count: int) -> None:
        answers.append(attempt(http, session, "Hello", count, stream=stream))

    first, retry = [threading.Thread(target=send, args=(count,)) for count in range(2)]
    first.start()
    wait_until(lambda: [each["status"] for each in turns_of(http, session)] == ["in_progress"])
    app_fixture.proxy.forget()
    retry.start()
    wait_until(lambda: app_fixture.proxy.calls["PutItem"] > 0)  # the claim of the retry
    app_fixture.faulty.silence.set()
    first.join()
    retry.join()

    assert [each.status_code for each in answers] == [200, 200]
    assert all("awake" in answer.text for answer in answers)
    assert len(turns_of(http, session)) == 1


def test_equal_requests_that_are_no_retries_are_turns_of_their_own(http: httpx.Client) -> None:
    session = open_session(http)

    ids = {turn_id_of(attempt(http, session, "say: hi", 0)) for _ in range(3)}

    assert len(ids) == len(turns_of(http, session)) == 3


def test_a_turn_answers_one_retry_per_count(http: httpx.Client) -> None:
    session = open_session(http)

    ids = [turn_id_of(attempt(http, session, "say: hi", count)) for count in (0, 1, 2, 1)]

    assert ids[0] == ids[1] == ids[2] != ids[3]


def test_a_retry_whose_first_attempt_never_arrived_is_a_turn(http: httpx.Client) -> None:
    session = open_session(http)

    ids = [turn_id_of(attempt(http, session, "say: hi", count)) for count in (1, 2)]

    assert ids[0] == ids[1]
    assert len(turns_of(http, session)) == 1


@pytest.mark.parametrize(
    "other", [{"text": "say: ho"}, {"agent": "Client/2"}, {"stream": True}], ids=["body", "client", "stream"]
)
def test_a_retry_of_another_request_is_a_new_turn(http: httpx.Client, other: dict[str, Any]) -> None:
    session = open_session(http)
    attempt(http, session, "say: hi", 0)

    again: dict[str, Any] = {"text": "say: hi", "count": 1} | other
    attempt(http, session, **again)

    assert len(turns_of(http, session)) == 2


def test_a_retry_in_another_session_or_after_another_turn_is_a_new_turn(http: httpx.Client) -> None:
    session = open_session(http)
    other = create_session(http, session.split("/")[3])
    first = turn_id_of(attempt(http, session, "say: hi", 0))

    elsewhere = turn_id_of(attempt(http, other, "say: hi", 1))
    say(http, session, "say: more")
    later = turn_id_of(attempt(http, session, "say: hi", 1))

    assert len({first, elsewhere, later}) == 3


def test_a_retry_of_a_failed_turn_gets_its_error(http: httpx.Client) -> None:
    session = open_session(http)

    first, retry = [attempt(http, session, "fail: context", count) for count in range(2)]

    assert (retry.status_code, retry.json()) == (first.status_code, first.json())
    assert len(turns_of(http, session)) == 1


def test_a_retry_in_a_session_that_does_not_exist_is_a_404(http: httpx.Client) -> None:
    session = open_session(http)
    http.delete(session)

    assert attempt(http, session, "say: hi", 1).status_code == 404


def test_without_the_setting_a_retry_is_a_new_turn(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http)
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"find_retries": False})
    try:
        for count in range(2):
            attempt(http, session, "say: hi", count)
    finally:
        app_fixture.settings = settings

    assert len(turns_of(http, session)) == 2


def test_a_simple_turn_costs_four_units_with_its_fingerprint_and_a_retry_costs_one(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = open_session(http)
    attempt(http, session, "say: hi", 0)
    written = []
    for count in (0, 1):
        app_fixture.proxy.forget()
        attempt(http, session, "say: ho", count)
        units = app_fixture.proxy.units
        written.append(sum(units[call] for call in ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem")))

    assert written == [4, 1]


class Flaky:
    """A model that fails as often as `errors` say, and then answers."""

    def __init__(self) -> None:
        self.errors: list[StintError] = []
        self.requests: list[InferenceRequest] = []

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return len(request.messages)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        yield Accepted()
        yield TextChunk("fine")
        yield Finished(FinishReason.stop)


@pytest.fixture
def flaky(app_fixture: AppFixture) -> Iterator[Flaky]:
    model = Flaky()
    app_fixture.models["flaky"] = lambda: model
    app_fixture.made.clear()
    yield model
    del app_fixture.models["flaky"]
    app_fixture.made.clear()


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_repeated_before_a_step_sends_its_input_once(
    http: httpx.Client, app_fixture: AppFixture, flaky: Flaky, stream: bool
) -> None:
    """A turn that failed before a step is run again, and its input reaches the model once."""
    session = open_session(http, model="flaky/x")
    attempt(http, session, "before", 0)
    flaky.errors = [ModelOverloaded("The model is overloaded."), ModelOverloaded("The model is overloaded.")]

    answers = [attempt(http, session, "Hello", count, stream=stream) for count in range(3)]
    attempt(http, session, "after", 0)
    app_fixture.made.clear()  # a process that remembers nothing
    attempt(http, session, "last", 0)

    assert "fine" in answers[2].text
    assert [texts_of(request) for request in flaky.requests[1:]] == [
        *[["before", "Hello"]] * 3,
        ["before", "Hello", "after"],
        ["before", "Hello", "after", "last"],
    ]
    assert [each["status"] for each in turns_of(http, session)] == ["completed", "failed", "failed", *["completed"] * 3]


@pytest.mark.parametrize("failures", [1, 2])
def test_the_input_of_a_turn_that_is_repeated_after_another_one_reaches_the_model_once(
    http: httpx.Client, app_fixture: AppFixture, flaky: Flaky, failures: int
) -> None:
    session, key = open_session(http, model="flaky/x"), {"idempotency-key": new_id()}
    body = {"messages": [user("Hello")]}
    for _ in range(failures):
        flaky.errors = [ModelOverloaded("The model is overloaded.")]
        http.post(f"{session}/turn", json=body, headers=key)
        attempt(http, session, "between", 0)

    answer = http.post(f"{session}/turn", json=body, headers=key)
    attempt(http, session, "after", 0)
    app_fixture.made.clear()  # a process that remembers nothing
    attempt(http, session, "last", 0)

    assert answer.json()["status"] == "completed"
    expected = [*["between"] * failures, "Hello"]
    assert [texts_of(request) for request in flaky.requests[-3:]] == [
        expected,
        [*expected, "after"],
        [*expected, "after", "last"],
    ]


def texts_of(request: InferenceRequest) -> list[str]:
    """Return the user's texts of a request to the model."""
    found = [getattr(message, "content", "") for message in request.messages if type(message).__name__ == "UserInput"]
    return [each if isinstance(each, str) else json.dumps(each) for each in found]
