import json
from json import JSONDecodeError
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stint.domain.json_text import MAX_DEPTH, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.booleans())
def test_json_is_read_as_it_was_written(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)

    assert parse_json(text) == value
    assert parse_json(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ("{'a': 1}", "property name"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("-1e400", "too large"),
        ("9" * 5_000, "integer string conversion"),
        ('"\\ud83d"', "ud83d is half of a surrogate pair"),
        ('{"\\uDFFF": 1}', "udfff is half of a surrogate pair"),
        (b"\xff", "not UTF-8"),
        ("[" * 100_000, "deeper than 100"),
        ("[" * 101 + "]" * 101, "deeper than 100"),
        ('{"a":' * 101 + "1" + "}" * 101, "deeper than 100"),
    ],
)
def test_what_could_not_be_stored_is_refused(text: str | bytes, words: str) -> None:
    with pytest.raises(JSONDecodeError, match=words):
        parse_json(text)


def test_the_deepest_value_and_whole_pairs_pass() -> None:
    assert json.dumps(parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)).count("[") == MAX_DEPTH
    assert parse_json('"\\ud83d\\ude42"') == "🙂"
    assert parse_json('"\\\\ud83d"') == "\\ud83d"
