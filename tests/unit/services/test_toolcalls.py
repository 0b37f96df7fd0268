import pytest

from stint.domain.errors import InvalidRequest
from stint.domain.tools import ToolCall, ToolResponse
from stint.services.toolcalls import match_responses


def call(call_id: str, name: str = "add", arguments: str | None = None) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name=name, arguments={} if arguments is None else arguments)


def response(call_id: str) -> ToolResponse:
    return ToolResponse(call_id=call_id, tool_name="add", content=f"result of {call_id}")


def test_responses_are_put_into_the_order_of_the_calls() -> None:
    matched = match_responses([call("a"), call("b")], [response("b"), response("a")])

    assert [each.call_id for each in matched] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["a"], "missing: b"),
        (["a", "b", "x"], "unknown: x"),
        (["a", "b", "a"], "given twice: a"),
        ([], "missing: a, b"),
        (["x", "x"], "missing: a, b; unknown: x; given twice: x"),
    ],
)
def test_responses_that_do_not_match_are_refused_by_their_ids(given: list[str], problem: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        match_responses([call("a"), call("b")], [response(call_id) for call_id in given])

    assert problem in caught.value.message
    assert "The turn still waits for: a, b." in caught.value.message
    assert caught.value.param == "tool_responses"
