from typing import Any

import pytest

from stint.tools.templates import Absent, fill, names_in

ARGUMENTS = {"a": 1, "b": "two", "c": [3], "n": None}
NAMES = {*ARGUMENTS, "absent"}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{a}", 1),
        ("{c}", [3]),
        ("{n}", None),
        ("{absent}", Absent.ABSENT),
        ("a is {a}, c is {c}, b is {b}{absent}.", "a is 1, c is [3], b is two."),
        ("{other} {} { a }", "{other} {} { a }"),
        ({"x": "{a}", "y": "{absent}", "z": {"b": "{b}"}}, {"x": 1, "z": {"b": "two"}}),
        (["{a}", "{absent}", 5, None], [1, 5, None]),
        (7, 7),
    ],
)
def test_placeholders_become_arguments(template: Any, filled: Any) -> None:
    assert fill(template, ARGUMENTS, NAMES) == filled


def test_an_argument_is_no_template() -> None:
    assert fill("{b}!", {"a": "{b}", "b": "{a}"}, {"a", "b"}) == "{a}!"


def test_names_are_found_at_every_depth() -> None:
    assert list(names_in({"x": ["{a} {b}", {"y": "{c}"}], "z": 1})) == ["a", "b", "c"]
