"""End users: their objects are listed, exported and erased. What is left is read from the table and the bucket."""

import base64
import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.api.api_client import assert_error, create_agent, create_session, turn
from tests.api.app_fixture import AppFixture
from tests.api.ingesting import ingesting
from tests.clock import CLOCK
from tests.route_rules import RULES
from tests.store.tenant_records import list_blobs, read_records

from stint.domain.errors import StoreUnavailable
from stint.domain.principals import ANONYMOUS
from stint.http.middleware import authentication

ANN, BOB = "ann/müller@example.com", "bob"
MARK = "plums of ann"


def as_user(user: str) -> dict[bytes, bytes]:
    return {b"x-stint-user": user.encode()}


def sent(http: httpx.Client, path: str, body: dict[str, Any], user: str | None = None) -> dict[str, Any]:
    response = http.post(path, json=body, headers=as_user(user) if user else None)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def upload(http: httpx.Client, content: bytes, user: str) -> str:
    response = http.post(
        "/v1/files", files={"file": ("notes.txt", content)}, data={"purpose": "assistants"}, headers=as_user(user)
    )
    assert response.status_code == 200, response.text
    return str(response.json()["id"])


def use_everything(http: httpx.Client, app_fixture: AppFixture, user: str, mark: str) -> dict[str, str]:
    """Create an object of each kind for an end user, and return their ids."""
    ids: dict[str, str] = {}
    agent = create_agent(http)
    path = f"/v1/agents/{agent}/session"
    ids["session"] = sent(http, path, {"session_name": mark}, user)["session_id"]
    turn(http, f"{path}/{ids['session']}", f"say: {mark}")
    conversation = sent(http, "/v1/conversations", {})["id"]
    body = {"model": "scripted/demo", "input": f"say: {mark}", "user": user, "conversation": conversation}
    ids["response"], ids["conversation"] = sent(http, "/v1/responses", body)["id"], conversation
    chat = {"model": "scripted/demo", "messages": [{"role": "user", "content": f"say: {mark}"}], "store": True}
    ids["chat_completion"] = sent(http, "/v1/chat/completions", chat | {"safety_identifier": "s" + user[:40]})["id"]
    ids["file"] = upload(http, mark.encode() * 1_000, user)
    ids["container"] = sent(http, "/v1/containers", {"name": mark, "file_ids": [ids["file"]]}, user)["id"]
    return ids


def stored_bytes(app_fixture: AppFixture) -> bytes:
    """Return everything that the tenant has in the table and the bucket."""
    records = read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant)
    keys = list_blobs(app_fixture.s3, app_fixture.settings.bucket, app_fixture.tenant)
    return json.dumps(records, default=str).encode() + b"".join(read_blob(app_fixture, key) for key in keys)


def read_blob(app_fixture: AppFixture, key: str) -> bytes:
    body: bytes = app_fixture.s3.get_object(Bucket=app_fixture.settings.bucket, Key=key)["Body"].read()
    return key.encode() + body


def written(app_fixture: AppFixture) -> float:
    """Return the write units since the proxy forgot its calls."""
    return sum(app_fixture.proxy.units[name] for name in ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem"))


def erase(http: httpx.Client, user: str) -> dict[str, Any]:
    response = http.delete(f"/v1/admin/users/{user}")
    assert response.status_code == 200, response.text
    receipt: dict[str, Any] = response.json()
    return receipt


def listed(http: httpx.Client, user: str) -> list[dict[str, Any]]:
    response = http.get(f"/v1/admin/users/{user}")
    assert response.status_code == 200, response.text
    data: list[dict[str, Any]] = response.json()["data"]
    return data


def test_the_objects_of_an_end_user_are_listed(http: httpx.Client, app_fixture: AppFixture) -> None:
    ids = use_everything(http, app_fixture, ANN, MARK)
    use_everything(http, app_fixture, BOB, "pears")

    found = {each["kind"]: each["id"] for each in listed(http, ANN)}

    assert found == {kind: each for kind, each in ids.items() if kind != "chat_completion"}
    assert listed(http, "s" + ANN[:40]) == [{"kind": "chat_completion", "id": ids["chat_completion"]}]


@pytest.mark.parametrize(
    "user", ["ann/export", "ann/export/export", "ann/", "a/v1/openai/v1/b", "/export", "/export/export"]
)
def test_an_end_user_whose_id_looks_like_another_path_can_be_named(http: httpx.Client, user: str) -> None:
    made = {name: sent(http, "/v1/conversations", {}, name)["id"] for name in ("ann", "a/v1/b", user)}
    path, own = f"/v1/admin/users/{quote(user, safe='')}", {"kind": "conversation", "id": made[user]}

    assert http.get(path, params={"export": False}).json()["data"] == [own]
    lines = http.get(path, params={"export": True}).text
    assert [made[name] in lines for name in made] == [False, False, True]
    assert http.delete(path).json()["deleted"] == {"conversation": 1}
    assert [each["id"] for each in listed(http, "ann")] == [made["ann"]]


def test_the_export_of_nobody_is_the_list_of_the_end_user_with_that_id(http: httpx.Client) -> None:
    made = sent(http, "/v1/conversations", {}, "/export")["id"]

    assert listed(http, quote("/export", safe="")) == [{"kind": "conversation", "id": made}]
    lines = http.get(f"/v1/admin/users/{quote('/export', safe='')}/export").text
    assert [json.loads(line).get("kind") for line in lines.splitlines()] == ["conversation", "end"]
    assert made in lines


def test_pages_of_objects_are_complete(http: httpx.Client) -> None:
    made = {sent(http, "/v1/conversations", {}, ANN)["id"] for _ in range(5)}

    found, after = [], None
    for _ in range(3):
        page = http.get(f"/v1/admin/users/{ANN}", params={"limit": 2} | ({"after": after} if after else {})).json()
        found += [each["id"] for each in page["data"]]
        after = page.get("next")

    assert (set(found), len(found), after) == (made, 5, None)


def test_an_erased_end_user_leaves_nothing(http: httpx.Client, app_fixture: AppFixture) -> None:
    use_everything(http, app_fixture, ANN, MARK)
    others = use_everything(http, app_fixture, BOB, "pears of bob")
    assert MARK.encode() in stored_bytes(app_fixture)

    receipts = [erase(http, ANN), erase(http, "s" + ANN[:40])]

    assert [receipt["complete"] for receipt in receipts] == [True, True]
    assert receipts[0]["deleted"] == dict.fromkeys(("session", "response", "conversation", "file", "container"), 1)
    left = stored_bytes(app_fixture)
    assert MARK.encode() not in left
    assert "müller".encode() not in left
    assert b"m\\u00fcller" not in left
    assert b"pears of bob" in left
    assert {each["id"] for each in listed(http, BOB)} == set(others.values()) - {others["chat_completion"]}
    assert erase(http, ANN)["deleted"] == {}


def test_a_container_belongs_to_each_end_user_whose_files_are_added(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    container = sent(http, "/v1/containers", {"name": "shared"}, BOB)["id"]
    for user, content in ((ANN, MARK.encode()), (ANN, b"more"), (BOB, b"pears")):
        sent(http, f"/v1/containers/{container}/files", {"file_id": upload(http, content, user)}, user)
    assert [{"kind": "container", "id": container} in listed(http, user) for user in (ANN, BOB)] == [True, True]

    assert erase(http, ANN)["deleted"] == {"file": 2, "container": 1}

    assert MARK.encode() not in stored_bytes(app_fixture)
    assert [each["kind"] for each in listed(http, BOB)] == ["file"]


def test_a_deleted_object_leaves_no_entry(http: httpx.Client, app_fixture: AppFixture) -> None:
    ids = use_everything(http, app_fixture, ANN, MARK)
    for path in ("responses", "conversations", "files", "containers"):
        assert http.delete(f"/v1/{path}/{ids[path[:-1]]}").status_code == 200
    [session] = [each for each in listed(http, ANN) if each["kind"] == "session"]
    assert http.delete(f"/v1/agents/{session['agent_id']}/session/{session['id']}").status_code == 200

    assert listed(http, ANN) == []


def test_chunks_of_an_erased_file_are_removed_from_vector_stores(http: httpx.Client, app_fixture: AppFixture) -> None:
    store = sent(http, "/v1/vector_stores", {})["id"]
    file_id = upload(http, MARK.encode(), ANN)
    sent(http, f"/v1/vector_stores/{store}/files", {"file_id": file_id})
    app_fixture.ingest()
    query = {"query": MARK}
    assert sent(http, f"/v1/vector_stores/{store}/search", query)["data"] != []

    assert erase(http, ANN)["complete"]

    assert sent(http, f"/v1/vector_stores/{store}/search", query)["data"] == []
    assert MARK.encode() not in stored_bytes(app_fixture)


def test_the_vector_db_of_an_erased_session_is_deleted(http: httpx.Client, app_fixture: AppFixture) -> None:
    path = f"/v1/agents/{create_agent(http, toolgroups=['builtin::rag'])}/session"
    session = f"{path}/{sent(http, path, {'session_name': 's'}, ANN)['session_id']}"
    with ingesting(app_fixture):
        turn(http, session, "say: hi", documents=[{"content": f"{MARK}. " * 20_000, "mime_type": "text/plain"}])
    assert "vector_db_id" in http.get(session).json()

    receipt = erase(http, ANN)

    assert (receipt["complete"], receipt["deleted"]) == (True, {"session": 1, "vector_store": 1})
    assert MARK.encode() not in stored_bytes(app_fixture)


def test_an_upload_in_parts_belongs_to_its_end_user(http: httpx.Client, app_fixture: AppFixture) -> None:
    request = {"filename": f"{MARK}.txt", "purpose": "assistants", "bytes": len(MARK), "mime_type": "text/plain"}
    made = [sent(http, "/v1/uploads", request, ANN)["id"] for _ in range(2)]
    parts = [http.post(f"/v1/uploads/{each}/parts", files={"data": MARK.encode()}).json()["id"] for each in made]
    sent(http, f"/v1/uploads/{made[0]}/complete", {"part_ids": [parts[0]]})

    assert sorted(each["kind"] for each in listed(http, ANN)) == ["file", "upload", "upload"]
    assert erase(http, ANN)["complete"]
    assert MARK.encode() not in stored_bytes(app_fixture)


def test_a_turn_for_an_end_user_makes_the_session_theirs(http: httpx.Client) -> None:
    session = create_session(http, create_agent(http))
    body = {"messages": [{"role": "user", "content": "say: hi"}]}

    first = http.post(f"{session}/turn", json=body, headers=as_user(ANN))
    again = http.post(f"{session}/turn", json=body, headers=as_user(ANN))
    other = http.post(f"{session}/turn", json=body, headers=as_user(BOB))
    plain = http.post(f"{session}/turn", json=body)

    assert [first.status_code, again.status_code, plain.status_code] == [200, 200, 200]
    assert_error(other, 403, "other_end_user")
    assert [each["kind"] for each in listed(http, ANN)] == ["session"]
    assert listed(http, BOB) == []


def test_an_export_has_everything_and_an_end(http: httpx.Client, app_fixture: AppFixture) -> None:
    ids = use_everything(http, app_fixture, ANN, MARK)

    response = http.get(f"/v1/admin/users/{ANN}/export")

    lines = [json.loads(line) for line in response.text.splitlines()]
    kinds = [line["kind"] for line in lines]
    assert kinds == [
        "container", "container_file", "container_file_content",
        "conversation", "item", "item", "file", "file_content", "response", "input_item", "session", "turn", "end",
    ]  # fmt: skip
    found = {line["kind"]: line for line in lines}
    assert found["response"]["data"]["id"] == ids["response"]
    assert base64.b64decode(found["file_content"]["base64"]) == MARK.encode() * 1_000
    assert found["turn"]["data"]["output_message"]["content"] == MARK
    assert found["end"]["objects"] == 5
    assert response.headers["content-type"].startswith("application/jsonl")


def test_a_stored_response_costs_one_unit_more_with_an_end_user(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"model": "scripted/demo", "input": "say: hi"}
    sent(http, "/v1/responses", body)

    units = []
    for user in ({}, {"user": ANN}, {"user": ANN, "safety_identifier": ANN}):
        app_fixture.proxy.forget()
        sent(http, "/v1/responses", body | user)
        units.append(written(app_fixture))

    assert [each - units[0] for each in units] == [0, 1, 1]


def test_a_turn_costs_nothing_more_if_the_session_has_the_end_user(http: httpx.Client, app_fixture: AppFixture) -> None:
    path = f"/v1/agents/{create_agent(http)}/session"
    session = f"{path}/{sent(http, path, {'session_name': 's'}, ANN)['session_id']}"
    body = {"messages": [{"role": "user", "content": "say: hi"}]}
    sent(http, f"{session}/turn", body)

    units = []
    for user in (None, ANN):
        app_fixture.proxy.forget()
        sent(http, f"{session}/turn", body, user)
        units.append(written(app_fixture))

    assert units[0] == units[1]


def test_an_entry_whose_object_was_never_stored_is_removed_later(
    http: httpx.Client, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise OSError("died")

    with monkeypatch.context() as patch:
        patch.setattr(app_fixture.store.chat_completions._documents, "put_new", fail)
        chat = {"model": "scripted/demo", "messages": [{"role": "user", "content": "hi"}], "store": True, "user": ANN}
        assert http.post("/v1/chat/completions", json=chat).status_code == 500

    assert listed(http, ANN) == []
    assert erase(http, ANN)["remaining"] == 1
    CLOCK.move(61)
    assert erase(http, ANN)["remaining"] == 0
    assert b"#user:" not in stored_bytes(app_fixture)


@pytest.mark.parametrize("scope", ["use", "users:act"])
def test_only_administrators_reach_end_users(http: httpx.Client, monkeypatch: pytest.MonkeyPatch, scope: Any) -> None:
    caller = ANONYMOUS.__class__(tenant="default", subject="s", scopes=frozenset([scope]))
    monkeypatch.setattr(authentication, "ANONYMOUS", caller)

    for response in (
        http.get(f"/v1/admin/users/{ANN}"),
        http.get(f"/v1/admin/users/{ANN}/export"),
        http.delete(f"/v1/admin/users/{ANN}"),
    ):
        assert (response.status_code, response.json()["error"]["code"]) == (403, "insufficient_scope")


def test_acting_for_an_end_user_needs_a_scope(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = ANONYMOUS.__class__(tenant="default", subject="s", scopes=frozenset(["use"]))
    monkeypatch.setattr(authentication, "ANONYMOUS", caller)

    response = http.post("/v1/conversations", json={}, headers=as_user(ANN))

    assert (response.status_code, response.json()["error"]["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize("value", [b"", b"x" * 513, b"\xff\xfe"])
def test_an_invalid_end_user_is_refused(http: httpx.Client, value: bytes) -> None:
    assert_error(http.post("/v1/conversations", json={}, headers={b"x-stint-user": value}), 400, "invalid_request")


@pytest.mark.parametrize("user", ["ann", ANN, "日本語", "Zoë 🦙"])
def test_an_end_user_is_the_same_however_the_function_gets_the_header(http: httpx.Client, user: str) -> None:
    sent_by_mangum = {b"x-stint-user": user.encode().decode("latin-1").encode()}

    assert http.post("/v1/conversations", json={}, headers=sent_by_mangum).status_code == 200
    sent(http, "/v1/conversations", {}, user)

    objects = http.get(f"/v1/admin/users/{quote(user, safe='')}").json()["data"]
    assert [each["kind"] for each in objects] == ["conversation", "conversation"]


CHAT = {"messages": [{"role": "user", "content": f"say: {MARK}"}]}
KEYED: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "the header": ("/v1/chat/completions", CHAT, ANN),
    "the body": ("/v1/chat/completions", CHAT | {"user": ANN}, None),
    "a response that is not stored": ("/v1/responses", {"input": f"say: {MARK}", "user": ANN, "store": False}, None),
}


@pytest.mark.parametrize("named_by", KEYED)
def test_the_answer_of_an_idempotency_key_belongs_to_the_end_user(
    http: httpx.Client, app_fixture: AppFixture, named_by: str
) -> None:
    path, body, user = KEYED[named_by]
    headers = {b"idempotency-key": b"k"} | (as_user(user) if user else {})
    http.post(path, json=body | {"model": "scripted/demo"}, headers=headers).raise_for_status()
    assert [each["kind"] for each in listed(http, ANN)] == ["idempotent_request"]
    assert MARK in http.get(f"/v1/admin/users/{ANN}/export").text

    receipt = erase(http, ANN)

    assert (receipt["complete"], receipt["deleted"]) == (True, {"idempotent_request": 1})
    assert MARK.encode() not in stored_bytes(app_fixture)


@pytest.mark.parametrize("api", ["vector_stores", "vector-io", "rag-tool", "October's memory"])
def test_keyed_searches_keep_nothing_of_an_erased_end_user(
    http: httpx.Client, app_fixture: AppFixture, api: str
) -> None:
    store = sent(http, "/v1/vector_stores", {})["id"]
    sent(http, f"/v1/vector_stores/{store}/files", {"file_id": upload(http, MARK.encode(), ANN)})
    app_fixture.ingest()
    path, body = {
        "vector_stores": (f"/v1/vector_stores/{store}/search", {"query": "plums"}),
        "vector-io": ("/v1/vector-io/query", {"vector_db_id": store, "query": "plums"}),
        "rag-tool": ("/v1/tool-runtime/rag-tool/query", {"vector_db_ids": [store], "content": "plums"}),
        "October's memory": ("/memory/query", {"bank_id": store, "query": "plums"}),
    }[api]
    headers = {b"idempotency-key": b"k"}
    assert MARK in http.post(path, json=body, headers=headers).text

    erase(http, ANN)

    repeated = http.post(path, json=body, headers=headers)
    assert (repeated.status_code, MARK in repeated.text) == (200, False)
    assert MARK.encode() not in stored_bytes(app_fixture)


def test_routes_that_only_read_need_no_right_to_write() -> None:
    reading = [rule for rule in RULES.values() if not rule.repeated.is_remembered]

    assert len(reading) > 10
    assert not any(rule.repeated.keeps_id or rule.repeated.is_followed or rule.scope != "use" for rule in reading)


def test_a_keyed_request_whose_answer_was_not_stored_is_erased_once_its_lease_has_ended(
    http: httpx.Client, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(app_fixture.store.requests._documents, "put_new", fail)
        headers = {b"idempotency-key": b"k"}
        http.post("/v1/chat/completions", json=CHAT | {"model": "scripted/demo", "user": ANN}, headers=headers)

    assert erase(http, ANN)["remaining"] == 1
    CLOCK.move(3_600)
    assert erase(http, ANN)["remaining"] == 0
    assert b"#idempotency:" not in stored_bytes(app_fixture)


def test_the_keyed_answer_of_a_turn_belongs_to_the_end_user_of_its_session(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    path = f"/v1/agents/{create_agent(http)}/session"
    session = f"{path}/{sent(http, path, {'session_name': 's'}, ANN)['session_id']}"
    body = {"messages": [{"role": "user", "content": f"say: {MARK}"}]}
    http.post(f"{session}/turn", json=body, headers={b"idempotency-key": b"k"}).raise_for_status()

    receipt = erase(http, ANN)

    assert (receipt["complete"], receipt["deleted"]) == (True, {"session": 1, "idempotent_request": 1})
    assert MARK.encode() not in stored_bytes(app_fixture)


def test_items_that_are_added_for_an_end_user_make_the_conversation_theirs(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    conversation = sent(http, "/v1/conversations", {})["id"]
    sent(http, f"/v1/conversations/{conversation}/items", {"items": [{"role": "user", "content": MARK}]}, ANN)

    receipt = erase(http, ANN)

    assert (receipt["complete"], receipt["deleted"]) == (True, {"conversation": 1})
    assert MARK.encode() not in stored_bytes(app_fixture)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "say: hi"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "say: hi"}], "store": True}),
        ("/v1/completions", {"prompt": "say: hi"}),
        ("/v1/embeddings", {"input": "hi"}),
    ],
)
def test_an_end_user_whom_no_path_can_name_is_refused(http: httpx.Client, path: str, body: dict[str, Any]) -> None:
    refused = http.post(path, json={"model": "scripted/demo", **body, "user": "x" * 513})

    assert_error(refused, 400, "invalid_request")
    assert refused.json()["error"]["param"] == "user"
