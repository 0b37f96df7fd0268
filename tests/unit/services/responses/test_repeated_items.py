"""Clients that continue a response with all that they sent before, such as Semantic Kernel's agent."""

from typing import Any, NoReturn

import pytest
from tests.unit.services.responses.item_fixture import INPUT, asks, call, output, read, says, shape

from stint.domain.openai.conversations import StoredItem
from stint.services.responses.items_to_messages import find_results, leave_out_repetitions

FIRST_ROUND = ["user go", "answer  -> c1", "result sunny"]
PICTURE = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}


@pytest.mark.parametrize(
    ("before", "items", "expected"),
    [
        ([asks("go"), call("c1")], [asks("go"), output("c1")], FIRST_ROUND),
        ([asks("go"), call("c1")], [asks("go"), output("c1"), output("c1")], FIRST_ROUND),
        (
            [asks("go"), call("c1"), output("c1"), call("c2")],
            [asks("go"), output("c1"), output("c2", "rain")],
            [*FIRST_ROUND, "answer  -> c2", "result rain"],
        ),
        (
            [asks("go"), says("wait"), call("c1")],
            [asks("go"), says("wait"), output("c1")],
            ["user go", "answer wait -> c1", "result sunny"],
        ),
        (
            [{"role": "system", "content": "be kind"}, asks("go"), call("c1")],
            [{"role": "developer", "content": "be kind"}, asks("go"), output("c1")],
            ["system be kind", *FIRST_ROUND],
        ),
    ],
)
def test_what_a_client_sends_again_is_left_out(before: list[Any], items: list[Any], expected: list[str]) -> None:
    reader = read(*before)
    reader.read(INPUT.validate_python(items))

    assert shape(reader.transcript.messages) == expected


def test_a_picture_that_is_sent_again_is_left_out() -> None:
    reader = read(PICTURE, call("c1"))
    reader.read(INPUT.validate_python([PICTURE, output("c1")]))

    assert len(reader.transcript.messages) == 3


@pytest.mark.parametrize(
    ("before", "items", "last"),
    [
        ([asks("go"), call("c1")], [output("c1"), asks("go")], "user go"),
        ([asks("go"), call("c1")], [asks("go on"), output("c1")], "user go on"),
        ([asks("go"), says("done")], [asks("go")], "user go"),
        ([asks("go"), says("done"), asks("more"), call("c1")], [asks("go"), output("c1")], "user go"),
        ([asks("go"), call("c1")], [{"role": "system", "content": "go"}, output("c1")], "system go"),
    ],
)
def test_a_message_that_is_not_a_repetition_stays(before: list[Any], items: list[Any], last: str) -> None:
    reader = read(*before)
    reader.read(INPUT.validate_python(items))

    assert shape(reader.transcript.messages)[-1] == last


class Unread(list[Any]):
    """Messages that nobody may read."""

    def __iter__(self) -> NoReturn:
        raise AssertionError

    def __reversed__(self) -> NoReturn:
        raise AssertionError


def test_outputs_of_waiting_calls_are_taken_without_reading_the_history() -> None:
    """Each link of a chain is read again. With the history for each, a chain would cost its square."""
    transcript = read(PICTURE, call("c1")).transcript
    transcript.messages = Unread(transcript.messages)
    items = {
        place: StoredItem(item=item) for place, item in enumerate(INPUT.validate_python([output("c1"), asks("and?")]))
    }

    assert find_results(items, transcript) == {}
    assert leave_out_repetitions(items, transcript) == items


def test_many_repetitions_are_found_in_linear_time() -> None:
    """With their square, this would take minutes."""
    question = [asks(f"line {number}") for number in range(3_000)]
    answered = [item for number in range(3_000) for item in (call(f"c{number}"), output(f"c{number}"))]
    outputs = [item for item in answered if "output" in item]
    reader = read(*question, *answered, call("open"))

    reader.read(INPUT.validate_python([*question, *outputs, output("open")]))

    assert len(reader.transcript.messages) == 9_002
