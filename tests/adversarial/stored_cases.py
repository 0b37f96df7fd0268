"""Large stored data, which is written by many requests."""

import re

from tests.adversarial.case import Case, case, create_session, get, post

TEXT = "say: ok\n" + "x" * 5_900_000


@case
def session_of_large_turns() -> Case:
    session = yield from create_session()
    for _ in range(8):
        answer = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": TEXT}]})
        assert answer.status == 200, answer.body[:300]
    for request in (get(session), post(f"{session}/turn", {"messages": [{"role": "user", "content": "say: ok"}]})):
        answer = yield request
        assert answer.status == 200, answer.body[:300]


@case
def conversation_of_large_items() -> Case:
    answer = yield post("/v1/conversations", {})
    conversation = f"/v1/conversations/{answer.json()['id']}"
    for _ in range(8):
        answer = yield post(f"{conversation}/items", {"items": [{"role": "user", "content": TEXT}]})
        assert answer.status == 200, answer.body[:300]
    yield get(f"{conversation}/items?limit=100")
    body = {"model": "scripted/demo", "input": "say: ok", "conversation": conversation.rpartition("/")[2]}
    answer = yield post("/v1/responses", {**body, "truncation": "auto"})
    assert answer.status in (200, 400), answer.body[:300]


@case
def large_responses() -> Case:
    for _ in range(8):
        answer = yield post("/v1/responses", {"model": "scripted/demo", "input": TEXT})
        assert answer.status == 200, answer.body[:300]
    found = re.search(rb'"id":"(resp_\w+)"', answer.body)
    assert found
    response = f"/v1/responses/{found[1].decode()}"
    for path in ("/v1/responses?limit=100", f"{response}/input_items?limit=100", response):
        answer = yield get(path)
        assert answer.status == 200, answer.body[:300]


@case
def history_of_small_messages() -> Case:
    """Continue a session whose messages take many times their JSON in memory, in all of STINT_HISTORY_BYTES."""
    session = yield from create_session()
    messages = [*[{"role": "user", "content": ""}] * 9_900, {"role": "user", "content": "say: ok"}]
    for _ in range(12):
        answer = yield post(f"{session}/turn", {"messages": messages})
        assert answer.status == 200, answer.body[:300]
    for request in (get(session), post(f"{session}/turn", {"messages": messages})):
        answer = yield request
        assert answer.status == 200, answer.body[:300]


@case
def conversation_of_small_items() -> Case:
    answer = yield post("/v1/conversations", {})
    conversation = answer.json()["id"]
    items = [{"role": "user", "content": ""}] * 9_900
    body = {"model": "scripted/demo", "input": [*items, {"role": "user", "content": "say: ok"}]}
    for _ in range(6):
        answer = yield post("/v1/responses", {**body, "conversation": conversation, "truncation": "auto"})
        assert answer.status in (200, 400), answer.body[:300]


@case
def chain_of_small_items() -> Case:
    items = [{"role": "user", "content": ""}] * 9_900
    body = {"model": "scripted/demo", "input": [*items, {"role": "user", "content": "say: ok"}]}
    previous = None
    for _ in range(8):
        answer = yield post("/v1/responses", {**body, "previous_response_id": previous, "truncation": "auto"})
        assert answer.status in (200, 400), answer.body[:300]
        previous = answer.json().get("id", previous)
