"""The lists of OpenAI's API at both addresses: limits, cursors, empty pages."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import Served
from tests.api.responses_client import assert_refused, openai_client, respond, user

Body = dict[str, Any]


def lists(http: httpx.Client, count: int) -> list[str]:
    """Fill each list with so many entries, and give their paths."""
    items = [user(str(number)) for number in range(count)]
    conversations = [http.post("/v1/conversations").json()["id"] for _ in range(count)]
    http.post(f"/v1/conversations/{conversations[0]}/items", json={"items": items})
    responses = [respond(http, "say: x") for _ in range(count - 1)]
    long = respond(http, items)["id"]
    assert len(responses) == count - 1
    return [
        "/v1/responses",
        "/v1/conversations",
        f"/v1/conversations/{conversations[0]}/items",
        f"/v1/responses/{long}/input_items",
    ]


def ids(page: Body) -> list[str]:
    return [each["id"] for each in page["data"]]


def test_a_limit_of_none_or_minus_one_means_all_and_of_zero_none(http: httpx.Client) -> None:
    for path in lists(http, 4):
        pages = {query: http.get(f"{path}{query}").json() for query in ("", "?limit=-1", "?limit=500", "?limit=0")}
        whole = pages[""]

        assert len(whole["data"]) == 4
        assert whole["has_more"] is False
        assert pages["?limit=-1"] == pages["?limit=500"] == whole
        assert pages["?limit=0"] == whole | {"data": [], "first_id": "", "last_id": "", "has_more": True}


def test_less_and_what_is_no_number_is_refused(http: httpx.Client) -> None:
    for path in lists(http, 1):
        for limit in ("-2", "-100", "1.5", "ten", "", "none"):
            assert assert_refused(http.get(f"{path}?limit={limit}"), 400, "invalid_request")["param"] == "limit"


def test_more_than_an_answer_holds_comes_in_pages(http: httpx.Client) -> None:
    conversation = http.post("/v1/conversations").json()["id"]
    path = f"/v1/conversations/{conversation}/items"
    for _ in range(51):
        http.post(path, json={"items": [user("x")] * 20})

    whole = http.get(f"{path}?limit=-1").json()
    rest = http.get(f"{path}?after={whole['last_id']}").json()

    assert (len(whole["data"]), whole["has_more"]) == (1_000, True)
    assert (len(rest["data"]), rest["has_more"]) == (20, False)
    assert len(http.get(f"{path}?limit={10**20}").json()["data"]) == 1_000


def test_cursors_and_limits_go_together(http: httpx.Client) -> None:
    for path in lists(http, 4):
        whole = ids(http.get(path).json())

        assert ids(http.get(f"{path}?after={whole[1]}").json()) == whole[2:]
        assert ids(http.get(f"{path}?after={whole[1]}&limit=-1").json()) == whole[2:]
        assert ids(http.get(f"{path}?after={whole[0]}&limit=2").json()) == whole[1:3]


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
def test_an_empty_page_has_empty_ids(http: httpx.Client, base: str) -> None:
    conversation = http.post("/v1/conversations").json()["id"]
    http.delete(f"/v1/conversations/{conversation}")
    other = http.post("/v1/conversations").json()["id"]
    response = respond(http, "x")["id"]
    pages = (
        "files",
        "vector_stores",
        "responses?model=nobody/m",
        f"conversations/{other}/items",
        f"responses/{response}/input_items?limit=0",
    )

    for path in pages:
        page = http.get(f"{base}/{path}").json()

        assert page["data"] == []
        assert (page["first_id"], page["last_id"]) == ("", "")


def test_the_client_reads_an_empty_page(server: Served) -> None:
    for base in ("/v1", "/v1/openai/v1"):
        with openai_client(server, base) as openai:
            conversation = openai.conversations.create()

            assert list(openai.conversations.items.list(conversation.id)) == []
