from typing import Any

import pytest

from stint.domain.content import Content, ImageContentItem, ImageSource, TextContentItem, text_of
from stint.domain.json_text import check_value
from stint.tools.outcomes import head_of
from stint.tools.port import ToolOutcome

IMAGE = ImageContentItem(image=ImageSource(data="A" * 100))


@pytest.mark.parametrize("content", ["x" * 10, [TextContentItem(text="x" * 10)], "", []])
def test_a_result_within_the_limit_stays_as_it_is(content: Content) -> None:
    assert head_of(content, 10) is content


def test_a_longer_result_keeps_its_head_and_says_so() -> None:
    assert (
        text_of(head_of("abcdef", 3)) == "abc\n[The result has 6 bytes and was truncated: only the first 3 are shown.]"
    )


def test_bytes_are_counted_and_no_character_is_torn() -> None:
    assert text_of(head_of("ä" * 10, 5)).startswith("ää\n[The result has 20 bytes")


def test_an_image_that_does_not_fit_is_left_out_and_what_follows_too() -> None:
    text = TextContentItem(text="hello")

    head = head_of([text, IMAGE, text], 50)

    assert isinstance(head, list)
    assert head[0] == text
    assert IMAGE not in head
    assert "has 110 bytes" in text_of(head[1:])


def test_what_a_tool_says_is_storable() -> None:
    deep: Any = []
    for _ in range(180):
        deep = [deep]

    outcome = ToolOutcome("a\ud800", {"structured_content": {"a": deep, "b": 1e999, "c": "\udfff"}})

    assert outcome.content == "a?"
    check_value(outcome.metadata)
    assert outcome.metadata["structured_content"] | {"a": 0} == {"a": 0, "b": None, "c": "?"}
