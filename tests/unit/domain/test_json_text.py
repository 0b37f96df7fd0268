import json
import math
from json import JSONDecodeError
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stint.domain.json_text import (
    MAX_DEPTH,
    MAX_VALUES,
    check_value,
    has_too_many_values,
    make_storable,
    parse_json,
    parse_leniently,
    parts_of,
)

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
        ("", "EOF while parsing a value at line 1"),
        ("{'a': 1}", "key must be a string at line 1 column 2"),
        ("NaN", "NaN and infinite numbers are not JSON"),
        ("[-Infinity]", "NaN and infinite numbers are not JSON"),
        ("-1e400", "too large"),
        ("9" * 5_000, "number out of range"),
        ('"\\ud83d"', "must form surrogate pairs"),
        ('{"\\uDFFF": 1}', "must form surrogate pairs"),
        ('"\ud83d"', "unpaired surrogate"),
        (b'"\xed\xa0\xbd"', "not UTF-8"),
        ("[" + "{}," * 200_000 + "{}]", "more than 200,000 values"),
        ('"a,b",' * 200_001, "more than 200,000 values"),
        (b"\xff", "not UTF-8"),
        ("[" * 100_000, "deeper than 100"),
        ("[" * 101 + "]" * 101, "deeper than 100"),
        ('{"a":' * 101 + "1" + "}" * 101, "deeper than 100"),
    ],
)
def test_what_could_not_be_stored_is_refused(text: str | bytes, words: str) -> None:
    with pytest.raises(JSONDecodeError, match=words):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "too_many"),
    [
        (b"[" + b"0," * (MAX_VALUES - 2) + b"0]", False),
        (b"[" + b"0," * (MAX_VALUES - 1) + b"0]", True),
        (b"[" + b"{ }," * (MAX_VALUES - 2) + b"[\n]]", False),
        (b"[" + b"{ }," * (MAX_VALUES - 1) + b"[\n]]", True),
        (b'["{}", ' + b"[1]," * (MAX_VALUES // 2 - 2) + b"0]", False),
        (b'["{}", ' + b"[1]," * (MAX_VALUES // 2 - 1) + b"0]", True),
        (b"[" + b'{"a":0},' * (MAX_VALUES // 2 - 1) + b"0]", False),
        (b"[" + b'{"a":0},' * (MAX_VALUES // 2) + b"0]", True),
        (b'["' + b"[{," * MAX_VALUES + b'"]', False),
        (b'["\\"' + b"," * MAX_VALUES + b'"]', False),
        (b'["\\\\"' + b",0" * MAX_VALUES + b"]", True),
        (b'"' + b"," * MAX_VALUES, False),
        (b'"' + b",\\" * MAX_VALUES, False),
        (b'"' + b',\\"' * MAX_VALUES + b"\\", False),
    ],
)
def test_values_are_counted_without_what_is_in_strings(text: bytes, too_many: bool) -> None:
    assert has_too_many_values(text) is too_many


@given(VALUES, st.sampled_from([None, 2]))
def test_the_count_is_exact(value: Any, indent: int | None) -> None:
    count, level = 0, [value]
    while level:
        count += len(level)
        level = [part for each in level for part in parts_of(each)]
    text = json.dumps(value, indent=indent).encode()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stint.domain.json_text.MAX_VALUES", count)
        assert not has_too_many_values(text)
        patch.setattr("stint.domain.json_text.MAX_VALUES", count - 1)
        assert has_too_many_values(text)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[float("nan")]], "NaN"),
        ({"a": {"\ud800": 1}}, "ud800 is an unpaired"),
        (["ä\udfff"], "udfff is an unpaired"),
        ([0] * MAX_VALUES, "more than 200,000 values"),
    ],
)
def test_a_value_that_another_parser_let_pass_is_refused(value: Any, words: str) -> None:
    with pytest.raises(JSONDecodeError, match=words):
        check_value(value)


def test_the_deepest_value_and_whole_pairs_pass() -> None:
    assert json.dumps(parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)).count("[") == MAX_DEPTH
    assert parse_json('"\\ud83d\\ude42"') == "🙂"
    assert parse_json('"\\\\ud83d"') == "\\ud83d"


ODD = VALUES | st.recursive(
    st.floats() | st.text(st.characters(codec=None)) | st.integers().map(lambda number: number**99),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=3),
)


@given(ODD)
def test_any_value_becomes_one_that_can_be_stored(value: Any) -> None:
    made = make_storable(value)

    assert parse_json(json.dumps(made)) == made
    assert make_storable(made) is made


@given(VALUES)
def test_a_storable_value_is_not_copied(value: Any) -> None:
    assert make_storable(value) is value


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ("a\ud800", "a?"),
        ({"\ud800": ["\udfff", 1]}, {"?": ["?", 1]}),
        ([math.inf, -math.inf, 1.5], [None, None, 1.5]),
        ([10**4_300, 10**4_000], [None, 10**4_000]),
        (nested(MAX_DEPTH), nested(MAX_DEPTH)),
        ([nested(MAX_DEPTH)], [json.loads(json.dumps(nested(MAX_DEPTH - 1)).replace("1", "null"))]),
    ],
    ids=["surrogate", "in objects", "infinite", "long integers", "deepest", "too deep"],
)
def test_what_cannot_be_stored_is_replaced(value: Any, made: Any) -> None:
    assert make_storable(value) == made


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 1_000 + "]" * 1_000, "1" * 5_000, "", "{"])
def test_a_servers_json_that_no_parser_reads_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_leniently(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [('"a\\ud800"', "a?"), ('{"\\ud800": 1}', {"?": 1}), ('"\\ud83d\\ude00"', "😀"), ("[1e999]", [math.inf])],
)
def test_a_servers_json_is_read_leniently(text: str, value: Any) -> None:
    assert parse_leniently(text) == value
