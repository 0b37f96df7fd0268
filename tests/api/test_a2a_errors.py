"""Texts of errors of A2A: they name the parts of the request, and nothing of the server's own types."""

import httpx
import pytest
from tests.api.a2a_client import Body, error_of, message, rpc, send, state_of, text_message
from tests.api.api_client import create_agent


@pytest.mark.parametrize("immediately", [False, True])
@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"url": "http://169.254.169.254/a.png", "mediaType": "image/png"}, "message.parts[1].url"),
        ({"raw": "AAAA", "mediaType": "image/png"}, "message.parts[1].raw"),
        ({"url": "http://169.254.169.254/a.txt", "mediaType": "text/plain"}, "message.parts[1].url"),
        ({"raw": "AAAA", "mediaType": "application/pdf"}, "message.parts[1].raw"),
    ],
)
def test_an_error_names_the_part(http: httpx.Client, part: Body, place: str, *, immediately: bool) -> None:
    agent = create_agent(http)
    params: Body = {"message": message([{"text": "Hi"}, part]), "configuration": {"returnImmediately": immediately}}
    answer = rpc(http, agent, "SendMessage", params).json()
    if "error" not in answer:  # only the run reads a document that has a URL
        assert "documents[0]" not in str(answer)
        return
    error = answer["error"]

    assert "messages[0]" not in str(error)
    assert "documents[0]" not in str(error)
    assert (error["data"][0]["metadata"]["param"], place in error["message"]) == (place, True)
    assert error["data"][1]["fieldViolations"][0]["field"] == place


@pytest.mark.parametrize(("budget", "says"), [({}, "budget: max_dollars is missing"), ("x", "should be an object")])
def test_a_wrong_budget_is_named_once(http: httpx.Client, budget: object, says: str) -> None:
    params = {"message": text_message("Hi"), "metadata": {"stint/budget": budget}}
    error = error_of(rpc(http, create_agent(http), "SendMessage", params), -32602, "INVALID_PARAMS")

    assert says in error["message"]
    assert ": :" not in error["message"]
    assert "SessionBudget" not in error["message"]


def test_a_part_without_content_is_named(http: httpx.Client) -> None:
    params = {"message": message([{"metadata": {}}])}
    error = error_of(rpc(http, create_agent(http), "SendMessage", params), -32602, "INVALID_PARAMS")

    assert "message.parts[0] has no content." in error["message"]


def test_null_is_data(http: httpx.Client) -> None:
    assert state_of(send(http, create_agent(http), message([{"data": None}]))) == "COMPLETED"
