import pytest
from pydantic import TypeAdapter, ValidationError

from stint.domain.filters import MAX_CONDITIONS, MAX_DEPTH, Filter, NewAttributes, NewFilter

FILTER: TypeAdapter[Filter] = TypeAdapter(NewFilter)
ATTRIBUTES: TypeAdapter[dict[str, object]] = TypeAdapter(NewAttributes)
KNOWN = {"year": 2020, "author": "Ada", "draft": False, "score": 0.5}


def compare(kind: str, key: str, value: object) -> bool:
    return FILTER.validate_python({"type": kind, "key": key, "value": value}).matches(KNOWN)


@pytest.mark.parametrize(
    ("kind", "key", "value", "expected"),
    [
        ("eq", "year", 2020, True),
        ("eq", "year", 2020.0, True),
        ("eq", "year", "2020", False),
        ("eq", "draft", False, True),
        ("eq", "draft", 0, False),
        ("ne", "author", "Bob", True),
        ("ne", "author", 1, False),
        ("gt", "year", 2019, True),
        ("gt", "author", "Aa", True),
        ("lte", "score", 0.5, True),
        ("lt", "score", 0.5, False),
        ("in", "author", ["Bob", "Ada"], True),
        ("nin", "author", ["Bob", "Ada"], False),
        ("in", "draft", [0], False),
    ],
)
def test_a_comparison_needs_values_of_one_type(kind: str, key: str, value: object, expected: bool) -> None:
    assert compare(kind, key, value) is expected


@pytest.mark.parametrize("kind", ["eq", "ne", "gt", "lt"])
def test_no_comparison_matches_an_attribute_that_is_missing(kind: str) -> None:
    assert not compare(kind, "absent", 1)
    assert not compare("nin", "absent", [1])


def test_compound_filters_combine_comparisons() -> None:
    recent = {"type": "gt", "key": "year", "value": 2000}
    other = {"type": "eq", "key": "author", "value": "Bob"}

    assert FILTER.validate_python({"type": "or", "filters": [recent, other]}).matches(KNOWN)
    assert not FILTER.validate_python({"type": "and", "filters": [recent, other]}).matches(KNOWN)
    assert FILTER.validate_python({"type": "and", "filters": []}).matches(KNOWN)


def nested(depth: int) -> dict[str, object]:
    found: dict[str, object] = {"type": "eq", "key": "year", "value": 1}
    for _ in range(depth - 1):
        found = {"type": "and", "filters": [found]}
    return found


def test_the_nesting_of_a_filter_is_limited() -> None:
    assert FILTER.validate_python(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 50):
        with pytest.raises(ValidationError, match="nested"):
            FILTER.validate_python(nested(depth))


def test_the_comparisons_of_a_filter_are_limited() -> None:
    condition = {"type": "eq", "key": "year", "value": 1}

    with pytest.raises(ValidationError, match="100 comparisons"):
        FILTER.validate_python({"type": "or", "filters": [condition] * MAX_CONDITIONS})


@pytest.mark.parametrize(
    "value",
    [
        {"type": "eq", "key": "year", "value": [1]},
        {"type": "in", "key": "year", "value": 1},
        {"type": "eq", "key": "year", "value": None},
        {"type": "like", "key": "year", "value": 1},
        {"type": "not", "filters": []},
        {"type": "in", "key": "year", "value": [1] * 101},
    ],
)
def test_a_malformed_filter_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        FILTER.validate_python(value)


@pytest.mark.parametrize(
    "value", [{"k": "x" * 513}, {"k" * 65: 1}, {str(n): n for n in range(17)}, {"k": None}, {"k": [1]}]
)
def test_attributes_over_the_limits_are_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        ATTRIBUTES.validate_python(value)


def test_attributes_keep_their_types() -> None:
    assert ATTRIBUTES.validate_python(KNOWN) == KNOWN
    assert [type(each) for each in ATTRIBUTES.validate_python(KNOWN).values()] == [int, str, bool, float]
