import httpx
from tests.api.api_client import create_agent, create_session, open_session, turn, turns_of


def test_deletion_takes_sessions_along_and_answers_null_once(http: httpx.Client) -> None:
    agent = create_agent(http)
    session = create_session(http, agent)

    deleted = http.delete(f"/v1/agents/{agent}")
    again = http.delete(f"/v1/agents/{agent}")

    assert (deleted.status_code, deleted.content) == (200, b"null")
    assert again.status_code == 404
    assert http.get(f"/v1/agents/{agent}").status_code == 404
    assert http.get(session).status_code == 404
    assert http.get(f"/v1/agents/{agent}/sessions").status_code == 404


def test_a_session_larger_than_a_page_is_written_while_it_is_read(http: httpx.Client) -> None:
    agent = create_agent(http)
    session = create_session(http, agent, '"turns":[ "x"')
    turns = [turn(http, session, f"say: {number}\n" + f"{number}" * 1_500_000) for number in range(6)]
    picked = [turns[4]["turn_id"], turns[0]["turn_id"]]

    answer = http.get(session)

    assert answer.headers["content-type"] == "application/json"
    assert "content-length" not in answer.headers
    assert list(answer.json()) == ["session_id", "session_name", "turns", "started_at"]
    assert answer.json()["session_name"] == '"turns":[ "x"'
    assert answer.json()["turns"] == turns
    assert http.get(session, params={"turn_ids": picked}).json()["turns"] == [turns[0], turns[4]]


def test_deleting_a_session_answers_null_once_and_leaves_the_others(http: httpx.Client) -> None:
    agent = create_agent(http)
    session, other = create_session(http, agent), create_session(http, agent)

    deleted, again = http.delete(session), http.delete(session)

    assert (deleted.status_code, deleted.content) == (200, b"null")
    assert again.status_code == 404
    assert turns_of(http, other) == []


def test_a_sessions_name_may_be_anything_but_null(http: httpx.Client) -> None:
    agent = create_agent(http)
    names = ["", "same", "same", "ünïcödé 🙂", "a\u0000b", "x" * 5_000]

    created = [http.post(f"/v1/agents/{agent}/session", json={"session_name": name}) for name in names]
    refused = [http.post(f"/v1/agents/{agent}/session", json=body) for body in ({"session_name": None}, {})]

    assert [response.status_code for response in created] == [200] * len(names)
    assert [entry["session_name"] for entry in http.get(f"/v1/agents/{agent}/sessions").json()["data"]] == names
    assert [(response.status_code, response.json()["error"]["param"]) for response in refused] == [
        (400, "session_name")
    ] * 2


def test_a_session_is_shown_with_its_keys_in_llama_stacks_order(http: httpx.Client) -> None:
    session = open_session(http)

    assert list(http.get(session).json()) == ["session_id", "session_name", "turns", "started_at"]
