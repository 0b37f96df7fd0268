"""Rejoining of a turn's stream over HTTP."""

import json
import threading
from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, open_session, payloads, resume, say, user
from tests.api.app_fixture import AppFixture

from stint.domain.ids import new_id


def frames(response: httpx.Response) -> list[tuple[int, Any]]:
    """Return the numbers and payloads of events."""
    found = []
    for frame in response.text.strip().split("\n\n"):
        number, _, data = frame.removeprefix("id: ").partition("\ndata: ")
        found.append((int(number), json.loads(data)["event"]["payload"]))
    return found


def turn_of(response: httpx.Response) -> str:
    return str(payloads(response)[0]["turn_id"])


def test_a_turn_is_rejoined_with_its_events_and_their_numbers(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    first = say(http, session, "say: Let me look.\nget_weather in Ulm", stream=True)
    turn_id = turn_of(first)
    second = resume(http, session, payloads(first)[-1]["turn"], "sunny", stream=True)

    rejoined = http.get(f"{session}/turn/{turn_id}/events")

    assert rejoined.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert rejoined.headers["cache-control"] == "no-store"
    assert frames(rejoined) == list(enumerate([*payloads(first), *payloads(second)]))
    assert rejoined.text == first.text + second.text


def test_the_last_event_id_precedes_starting_after(http: httpx.Client) -> None:
    session = open_session(http)
    turn_id = turn_of(say(http, session, "say: one two three", stream=True))
    path = f"{session}/turn/{turn_id}/events"

    by_query = http.get(path, params={"starting_after": 3})
    by_header = http.get(path, params={"starting_after": 0}, headers={"Last-Event-ID": "3"})

    assert [number for number, _ in frames(by_query)] == [4, 5, 6]
    assert by_header.content == by_query.content
    assert http.get(path, params={"starting_after": 6}).content == b""


@pytest.mark.parametrize("last", [b"-1", b"x", b"1.5", b"9" * 11, "\u00b2".encode(), b"1, 2", b"1" * 5_000])
def test_a_last_event_id_that_is_no_number_is_refused(http: httpx.Client, last: bytes) -> None:
    session = open_session(http)
    turn_id = turn_of(say(http, session, "Hello", stream=True))

    answer = http.get(f"{session}/turn/{turn_id}/events", headers=[(b"Last-Event-ID", last)])

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "Last-Event-ID")
    assert answer.json()["error"]["message"].startswith("Last-Event-ID must be the number of an event")


@pytest.mark.parametrize("after", ["7", "999999999"])
def test_a_number_beyond_the_end_is_refused(http: httpx.Client, after: str) -> None:
    session = open_session(http)
    turn_id = turn_of(say(http, session, "say: one two three", stream=True))

    answer = http.get(f"{session}/turn/{turn_id}/events", headers={"Last-Event-ID": after})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")
    assert "has 7 events, numbered from 0" in answer.json()["error"]["message"]


@pytest.mark.parametrize("after", ["-1", "x", "1000000000"])
def test_a_starting_after_that_is_no_number_is_refused(http: httpx.Client, after: str) -> None:
    answer = http.get(f"/v1/agents/{new_id()}/session/{new_id()}/turn/{new_id()}/events?starting_after={after}")

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "starting_after")


def test_an_unknown_turn_is_not_found(http: httpx.Client) -> None:
    answer = http.get(f"{open_session(http)}/turn/{new_id()}/events")

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "turn_not_found")


def test_a_running_turn_is_followed_to_its_end(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="faulty/slow")
    body = {"messages": [user("Hello")], "stream": True}
    found: list[httpx.Response] = []

    with http.stream("POST", f"{session}/turn", json=body) as response:
        lines = response.iter_lines()
        assert next(lines) == "id: 0"
        turn_id = json.loads(next(lines)[6:])["event"]["payload"]["turn_id"]
        path = f"{session}/turn/{turn_id}/events"
        readers = [threading.Thread(target=lambda: found.append(http.get(path))) for _ in range(3)]
        for reader in readers:
            reader.start()
        app_fixture.faulty.silence.set()  # until then the model says nothing
        rest = [line for line in lines if line.startswith("data: ")]
    for reader in readers:
        reader.join()

    sent = [turn_id, *[json.loads(line[6:])["event"]["payload"] for line in rest]]
    for each in found:
        assert [payload for _, payload in frames(each)][1:] == sent[1:]
    assert len(found) == 3


def test_a_foreground_response_is_rejoined_with_its_events(http: httpx.Client) -> None:
    body = {"model": "scripted/demo", "input": "say: one two three", "stream": True}
    first = http.post("/v1/responses", json=body).text.split("\n\n")
    response_id = json.loads(first[0].partition("data: ")[2])["response"]["id"]
    path = f"/v1/responses/{response_id}?stream=true"

    assert http.get(path).text.split("\n\n") == first
    assert http.get(f"{path}&starting_after=4").text.split("\n\n") == first[5:]
    assert http.get(path, headers={"Last-Event-ID": "4"}).text.split("\n\n") == first[5:]


@pytest.mark.parametrize(("last", "param"), [("x", "Last-Event-ID"), ("999", "starting_after")])
def test_an_event_that_a_response_does_not_have_is_refused(http: httpx.Client, last: str, param: str) -> None:
    response_id = http.post("/v1/responses", json={"model": "scripted/demo", "input": "Hello"}).json()["id"]

    answer = http.get(f"/v1/responses/{response_id}?stream=true", headers={"Last-Event-ID": last})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
