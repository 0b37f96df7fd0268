"""Lists of responses, and of what they were answered from."""

import time
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, run_in_thread
from tests.api.responses_client import RESPONSES, UNKNOWN, assert_refused, get, post, respond, user

from stint.domain.openai.stored_responses import ResponseHeader


def ids(page: dict[str, Any]) -> list[str]:
    return [each["id"] for each in page["data"]]


def test_responses_are_listed_newest_first_in_pages(http: httpx.Client) -> None:
    made = [respond(http, f"say: {n}")["id"] for n in range(5)]

    first = http.get(f"{RESPONSES}?limit=2").json()
    second = http.get(f"{RESPONSES}?limit=2&after={first['last_id']}").json()
    third = http.get(f"{RESPONSES}?limit=2&after={second['last_id']}").json()

    assert ids(first) + ids(second) + ids(third) == made[::-1]
    assert [page["has_more"] for page in (first, second, third)] == [True, True, False]
    assert (first["object"], first["first_id"], first["last_id"]) == ("list", made[4], made[3])
    assert ids(http.get(f"{RESPONSES}?order=asc").json()) == made


def test_a_listed_response_is_the_response_with_its_input(http: httpx.Client) -> None:
    created = respond(http, "say: Hi")

    [listed] = http.get(RESPONSES).json()["data"]

    [message] = listed.pop("input")
    assert listed == created
    assert message["content"] == [{"type": "input_text", "text": "say: Hi"}]


def test_responses_of_one_model_are_listed(http: httpx.Client) -> None:
    demo = respond(http)["id"]
    other = respond(http, model="recorded/m")["id"]

    assert ids(http.get(f"{RESPONSES}?model=scripted/demo").json()) == [demo]
    assert ids(http.get(f"{RESPONSES}?model=recorded/m").json()) == [other]


@pytest.mark.parametrize("missing", [UNKNOWN, "nonsense", "%00"])
def test_a_page_behind_nothing_is_not_found(http: httpx.Client, missing: str) -> None:
    respond(http)

    assert_refused(http.get(f"{RESPONSES}?after={missing}"), 404, "response_not_found")


def test_input_items_come_in_pages_between_two_of_them(http: httpx.Client) -> None:
    response = respond(http, [user(str(n)) for n in range(6)])["id"]
    path = f"{RESPONSES}/{response}/input_items"
    whole = ids(http.get(f"{path}?order=asc").json())

    page = http.get(f"{path}?order=asc&limit=2&after={whole[0]}").json()

    assert ids(http.get(path).json()) == whole[::-1]
    assert (ids(page), page["has_more"], page["first_id"], page["last_id"]) == (whole[1:3], True, whole[1], whole[2])
    assert ids(http.get(f"{path}?order=asc&after={whole[1]}&before={whole[4]}").json()) == whole[2:4]
    assert ids(http.get(f"{path}?after={whole[2]}").json()) == [whole[1], whole[0]]
    assert ids(http.get(f"{path}?order=asc&before={whole[0]}").json()) == []
    for cursor in ("after", "before"):
        assert_refused(http.get(f"{path}?{cursor}=msg_{'0' * 32}"), 404, "item_not_found")


def test_input_items_outlive_what_the_response_continued(http: httpx.Client) -> None:
    first = respond(http, "one")["id"]
    second = respond(http, "two", previous_response_id=first)["id"]
    http.delete(f"{RESPONSES}/{first}")

    [item] = http.get(f"{RESPONSES}/{second}/input_items").json()["data"]

    assert item["content"][0]["text"] == "two"


def test_a_response_whose_process_died_is_shown_as_failed_for_good(http: httpx.Client, app_fixture: AppFixture) -> None:
    dead = ResponseHeader(response_id=UNKNOWN, created_at=1, model="m", until=time.time() - 1)
    alive = dead.model_copy(update={"response_id": f"resp_{'1' * 32}", "until": time.time() + 60})
    for header in (dead, alive):
        run_in_thread(app_fixture.store.responses.put(app_fixture.tenant, header))

    listed = {each["id"]: each["status"] for each in http.get(RESPONSES).json()["data"]}
    shown = get(http, dead.response_id)

    assert listed == {dead.response_id: "failed", alive.response_id: "in_progress"}
    assert (shown["status"], shown["error"]["code"]) == ("failed", "interrupted")
    assert get(http, alive.response_id)["status"] == "in_progress"
    stored = run_in_thread(app_fixture.store.responses.get(app_fixture.tenant, dead.response_id))
    assert stored.ending is not None
    assert respond(http, previous_response_id=dead.response_id)["status"] == "completed"
    assert_refused(post(http, previous_response_id=alive.response_id), 409, "response_in_progress")
