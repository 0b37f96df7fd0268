import pytest

from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.tools import ToolCall, ToolResponse
from stint.services.turns.tool_responses import check_new_responses, match_responses


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


def test_very_many_and_very_long_ids_are_refused_in_few_words() -> None:
    """With a time quadratic in the number of ids, this does not end before the test times out."""
    many = [response(f"x{n}") for n in range(200_000)]
    long = [response("y" * 1_000_000)] * 2

    messages = []
    for responses in (many, long):
        with pytest.raises(InvalidRequest) as unmatched:
            match_responses([call("a")], responses)
        with pytest.raises(InvalidRequest) as refused:
            check_new_responses("t", set(), responses)
        messages += [unmatched.value.message, refused.value.message]
    with pytest.raises(Conflict) as taken:
        check_new_responses("t", {long[0].call_id}, long[:1])

    assert max(map(len, [*messages, taken.value.message])) < 1_000
    assert "and 199980 more" in messages[0]
