from typing import Any

import pytest

from stint.http.errors import locate_field

BODY = {
    "input": [{"role": "user", "content": [{"type": "input_text", "text": 3}]}, "words"],
    "strategy": {"type": "top_p", "top_p": 0.9, "temperature": 0},
    "tools": [{"type": "function", "function": {"name": ""}}],
    "metadata": {"a.b": 1},
}


@pytest.mark.parametrize(
    ("location", "place"),
    [
        (("input", 0, "message", "content", 0, "input_text", "text"), "input[0].content[0].text"),
        (("input", 1, "message"), "input[1]"),
        (("input", 9), "input"),
        (("strategy", "top_p", "temperature"), "strategy.temperature"),
        (("strategy", "top_p", "top_p"), "strategy.top_p"),
        (("strategy", "top_p"), "strategy.top_p"),
        (("tools", 0, "function", "function", "name"), "tools[0].function.name"),
        (("metadata", "a.b", "[key]"), "metadata.a.b"),
        (("nothing", "of", "it"), ""),
        ((), ""),
    ],
)
def test_a_place_is_a_path_in_the_body_without_the_names_of_union_members(location: Any, place: str) -> None:
    assert locate_field(location, BODY, missing=False) == place


@pytest.mark.parametrize(
    ("location", "place"),
    [
        (("model",), "model"),
        (("input", 0, "message", "id"), "input[0].id"),
        (("input", 0, "message", "content", 0, "input_text", "detail"), "input[0].content[0].detail"),
        (("input", 1, "message", "role"), "input[1]"),
    ],
)
def test_what_is_missing_is_named_where_it_should_be(location: Any, place: str) -> None:
    assert locate_field(location, BODY, missing=True) == place


@pytest.mark.parametrize("body", [None, "text", 3, [1]])
def test_a_body_of_another_form_has_no_places(body: Any) -> None:
    assert locate_field(("input", "str"), body, missing=True) == ""
