"""Conversations over HTTP, and by the unmodified openai client."""

from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from openai import OpenAI
from tests.api.api_client import assert_error
from tests.api.app_fixture import AppFixture, Served

NOWHERE = "conv_" + "0" * 32
NOTHING = "msg_" + "0" * 32


@pytest.fixture
def openai(server: Served) -> Iterator[OpenAI]:
    """The real client, without its retries."""
    http = httpx2.Client(trust_env=False)
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, http_client=http) as client:
        yield client


def said(words: str) -> Any:
    return {"type": "message", "role": "user", "content": words}


def create(http: httpx.Client, *items: Any, **fields: Any) -> str:
    response = http.post("/v1/conversations", json={"items": list(items)} | fields)
    assert response.status_code == 200, response.text
    return str(response.json()["id"])


def words(http: httpx.Client, conversation: str, query: str = "") -> list[str]:
    response = http.get(f"/v1/conversations/{conversation}/items?order=asc{query}")
    assert response.status_code == 200, response.text
    return [item["content"][0]["text"] for item in response.json()["data"]]


def test_the_client_keeps_a_conversation_from_creation_to_deletion(openai: OpenAI) -> None:
    created = openai.conversations.create(metadata={"topic": "plums"}, items=[said("one")])
    added = openai.conversations.items.create(
        created.id, items=[said(word) for word in ("two", "three")], include=["reasoning.encrypted_content"]
    )
    changed = openai.conversations.update(created.id, metadata={"topic": "pears"})
    left = openai.conversations.items.delete(added.data[0].id or "", conversation_id=created.id)
    listed: list[Any] = list(openai.conversations.items.list(created.id, limit=1, order="asc"))
    deleted = openai.conversations.delete(created.id)

    assert (created.object, created.metadata) == ("conversation", {"topic": "plums"})
    assert changed == left
    assert changed.metadata == {"topic": "pears"}
    assert [item.content[0].text for item in listed] == ["one", "three"]
    assert (added.first_id, added.last_id, added.has_more) == (added.data[0].id, added.data[1].id, False)
    assert (deleted.object, deleted.id, deleted.deleted) == ("conversation.deleted", created.id, True)


def test_a_conversation_may_be_created_with_nothing(http: httpx.Client) -> None:
    bodies: list[dict[str, Any]] = [{}, {"items": None, "metadata": None}, {"items": []}]
    for body in bodies:
        response = http.post("/v1/conversations", json=body)
        assert response.json() == response.json() | {"object": "conversation", "metadata": {}}

    assert http.post("/v1/conversations").status_code == 200


def test_conversations_are_listed(http: httpx.Client) -> None:
    ids = [create(http) for _ in range(3)]

    newest = http.get("/v1/conversations?limit=2").json()
    rest = http.get(f"/v1/conversations?limit=2&after={newest['last_id']}").json()

    assert [each["id"] for each in newest["data"]] == [ids[2], ids[1]]
    assert (newest["object"], newest["first_id"], newest["has_more"]) == ("list", ids[2], True)
    assert ([each["id"] for each in rest["data"]], rest["has_more"]) == ([ids[0]], False)
    assert http.get("/v1/conversations?order=asc").json()["first_id"] == ids[0]


@pytest.mark.parametrize("place", ["/v1/conversations", "/v1/conversations/{}/items"])
@pytest.mark.parametrize(
    ("query", "param"),
    [("limit=many", "limit"), ("order=up", "order")],
)
def test_pages_have_bounds(http: httpx.Client, place: str, query: str, param: str) -> None:
    response = http.get(f"{place.format(create(http))}?{query}")

    assert assert_error(response, 400, "invalid_request")["param"] == param


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", f"/{NOWHERE}", None, "conversation_not_found"),
        ("POST", f"/{NOWHERE}", {"metadata": {}}, "conversation_not_found"),
        ("DELETE", f"/{NOWHERE}", None, "conversation_not_found"),
        ("GET", f"/{NOWHERE}/items", None, "conversation_not_found"),
        ("POST", f"/{NOWHERE}/items", {"items": [said("hello")]}, "conversation_not_found"),
        ("GET", f"/{NOWHERE}/items/{NOTHING}", None, "conversation_not_found"),
        ("DELETE", f"/{NOWHERE}/items/{NOTHING}", None, "conversation_not_found"),
        ("GET", "/nonsense", None, "conversation_not_found"),
        ("GET", f"?after={NOWHERE}", None, "conversation_not_found"),
        ("GET", "/{}/items/" + NOTHING, None, "item_not_found"),
        ("GET", "/{}/items/nonsense", None, "item_not_found"),
        ("DELETE", "/{}/items/" + NOTHING, None, "item_not_found"),
        ("GET", "/{}/items?after=" + NOTHING, None, "item_not_found"),
    ],
)
def test_what_is_missing_is_named(http: httpx.Client, method: str, path: str, body: Any, code: str) -> None:
    conversation = create(http)

    error = assert_error(http.request(method, f"/v1/conversations{path.format(conversation)}", json=body), 404, code)

    assert "not found" in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("", {"metadata": {"key": "x" * 513}}, "metadata.key"),
        ("/{}", {}, "metadata"),
        ("/{}/items", {"items": [said("hello")] * 21}, "items"),
        ("/{}/items", {"items": [{"type": "computer_call", "id": "x"}]}, "items[0]"),
        ("/{}/items?include=everything", {"items": [said("hello")]}, "include"),
        ("/{}/items?include[]=message.output_text.logprobs", {"items": [said("hello")]}, "include"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_name(http: httpx.Client, path: str, body: Any, param: str) -> None:
    conversation = create(http)

    response = http.post(f"/v1/conversations{path.format(conversation)}", json=body)

    assert assert_error(response, 400, "invalid_request")["param"] == param
    assert words(http, conversation) == []


def test_items_of_every_type_come_back(http: httpx.Client) -> None:
    call = {"server_label": "s", "name": "n", "arguments": "{}"}
    items: list[Any] = [
        {"role": "assistant", "content": "I see.", "phase": "commentary"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "rain"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "mcp_call", "output": "done"} | call,
        {"type": "mcp_approval_request"} | call,
        {"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "n", "input_schema": {"type": "object"}}]},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
    ]
    conversation = create(http)

    added = http.post(f"/v1/conversations/{conversation}/items", json={"items": items}).json()["data"]
    listed = http.get(f"/v1/conversations/{conversation}/items?order=asc").json()["data"]

    assert listed == added
    assert [item["type"] for item in listed] == [item.get("type", "message") for item in items]
    for item in listed:
        assert http.get(f"/v1/conversations/{conversation}/items/{item['id']}").json() == item


def test_a_conversation_is_deleted_while_a_response_runs_in_it(http: httpx.Client, app_fixture: AppFixture) -> None:
    conversation = create(http, said("one"))
    body = {"model": "faulty/gated", "input": "late", "conversation": conversation, "stream": True}

    with http.stream("POST", "/v1/responses", json=body) as stream:
        lines = stream.iter_lines()
        begun = next(lines)
        locked = http.post("/v1/responses", json=body | {"input": "me too"})
        added = http.post(f"/v1/conversations/{conversation}/items", json={"items": [said("meanwhile")]})
        deleted = http.delete(f"/v1/conversations/{conversation}")
        app_fixture.faulty.silence.set()
        events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]

    assert begun == "event: response.created"
    assert assert_error(locked, 409, "conversation_locked")
    assert added.status_code == 200
    assert deleted.json() == {"id": conversation, "object": "conversation.deleted", "deleted": True}
    assert events[-1] == "response.completed"  # its ending is stored before its items, which are not added
    assert_error(http.get(f"/v1/conversations/{conversation}/items"), 404, "conversation_not_found")
    assert_error(http.delete(f"/v1/conversations/{conversation}"), 404, "conversation_not_found")
