"""Outputs and approvals anywhere in an input, which models get directly after their calls."""

from typing import Any

import pytest
from tests.unit.services.responses.item_fixture import INPUT, asks, call, messages, output, read, says, shape

from stint.domain.errors import InvalidRequest
from stint.loop.transcript import Transcript
from stint.services.responses.items_to_messages import MessageBuilder

ONE_CALL = ["user go", "answer  -> c1", "result sunny", "user and?"]
TWO_CALLS = ["answer  -> c1 -> c2", "result sunny", "result rain", "user and?"]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([asks("go"), call("c1"), output("c1"), asks("and?")], ONE_CALL),
        ([asks("go"), call("c1"), asks("and?"), output("c1")], ONE_CALL),
        ([output("c1"), asks("go"), call("c1"), asks("and?")], ONE_CALL),
        ([asks("go"), output("c1"), call("c1"), asks("and?")], ONE_CALL),
        ([call("c1"), call("c2"), asks("and?"), output("c1"), output("c2", "rain")], TWO_CALLS),
        ([call("c1"), call("c2"), output("c1"), asks("and?"), output("c2", "rain")], TWO_CALLS),
        (
            [call("c1"), output("c2", "rain"), output("c1"), call("c2")],
            ["answer  -> c1", "result sunny", "answer  -> c2", "result rain"],
        ),
        (
            [call("c1"), call("c2"), output("c1"), call("c3"), output("c3", "hail"), output("c2", "rain")],
            ["answer  -> c1 -> c2", "result sunny", "result rain", "answer  -> c3", "result hail"],
        ),
        (
            [call("c1"), asks("one"), output("c1"), call("c1"), asks("two"), output("c1", "rain")],
            ["answer  -> c1", "result sunny", "user one", "answer  -> c1", "result rain", "user two"],
        ),
        ([call("c1"), says("wait"), asks("and?"), output("c1")], ["answer wait -> c1", "result sunny", "user and?"]),
    ],
)
def test_an_output_follows_its_call(items: list[Any], expected: list[str]) -> None:
    assert shape(messages(*items)) == expected


@pytest.mark.parametrize(
    "items",
    [
        [output("c1"), asks("and?")],
        [asks("and?"), output("c1")],
        [call("c1"), output("c1"), asks("and?")],
        [asks("and?"), call("c1"), output("c1")],
        [call("c1"), asks("and?"), output("c1")],
    ],
)
def test_an_output_of_a_call_before_the_input_comes_first(items: list[Any]) -> None:
    reader = read(asks("go"), call("c1"))
    reader.read(INPUT.validate_python(items))

    assert shape(reader.transcript.messages) == ONE_CALL


@pytest.mark.parametrize("order", [1, -1])
def test_an_approval_may_follow_a_message(order: int) -> None:
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "add", "arguments": "{}"}
    agrees = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    reader = read(asks("go"), request)
    reader.read(INPUT.validate_python([agrees, asks("and?")][::order]))

    assert [each.call_id for each in reader.approved] == ["mcpr_1"]
    reader.flush_later()
    assert shape(reader.transcript.messages)[-1] == "user and?"


@pytest.mark.parametrize(
    ("items", "place"),
    [
        ([asks("go"), output("c9")], 1),
        ([call("c1"), output("c1"), asks("x"), output("c1", "rain")], 3),
        ([output("c1"), call("c1"), output("c1", "rain")], 2),
    ],
)
def test_an_output_without_a_call_is_refused_where_it_stands(items: list[Any], place: int) -> None:
    with pytest.raises(InvalidRequest, match=rf"input\[{place}\]"):
        messages(*items)


def test_many_outputs_are_ordered_in_linear_time() -> None:
    """With their square, this would take minutes."""
    names = [f"c{number}" for number in range(4_000)]
    reader = MessageBuilder(Transcript())
    items = [*(call(name) for name in names), asks("and?"), *(output(name) for name in reversed(names))]

    reader.read(INPUT.validate_python(items))

    assert len(reader.transcript.messages) == 4_002
