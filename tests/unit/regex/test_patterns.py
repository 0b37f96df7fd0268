import re
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stint.regex.budget import Budget, StepLimitExceeded
from stint.regex.patterns import Patterns

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "é",
        r"\w",
        r"\W",
        r"\s",
        r"\d",
        ".",
        "[ab]",
        "[^a]",
        r"[^\s]",
        "[]a]",
        "[a-c_]",
        r"[^\d\n]",
        r"[\x61-\u00e9]",
        r"\.",
        r"\n",
        "^",
        "$",
        r"\b",
        "A",
    ]
)
COUNTS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{,2}", "*?", "+?"])
TEXTS = st.text(alphabet="abA é_.\n1ß\u03c3\u03c2\u03a3\u017fsK", max_size=12)
SCRAPS = st.lists(st.sampled_from([*"ab[]()|*+?{}^$\\-,1:=!<>Pd", "(?", "{1}", "[^", r"\\"]), max_size=8).map("".join)
PLENTY = 10_000_000


def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map(lambda part: f"({part})"),
        st.tuples(inner, COUNTS).map(lambda parts: f"(?:{parts[0]}){parts[1]}"),
    )


PATTERNS = st.recursive(ATOMS, extend, max_leaves=8)


def search(pattern: str, text: str, *, ignore_case: bool = False, steps: int = PLENTY) -> int | None:
    return Patterns([pattern], ignore_case=ignore_case).search(text, Budget(steps))


def refusal_of(pattern: str) -> str | None:
    try:
        assert Patterns([pattern]).size <= 2000
    except ValueError as error:
        return str(error.args[0])
    return None


@given(PATTERNS, TEXTS.filter(len), st.booleans())
@example("a$", "a\n", False)
@example("(?:a*)*b", "aab", False)
@example("", "a", False)
@example("[a-z]", "K", True)
@example("[^\u03c3]", "\u03c2", True)
@example("(?P<a>a)(?P<b>b)", "ab", False)
def test_a_pattern_matches_where_re_matches(pattern: str, text: str, ignore_case: bool) -> None:
    expected = re.search(pattern, text, re.IGNORECASE if ignore_case else re.NOFLAG)

    assert search(pattern, text, ignore_case=ignore_case) == (None if expected is None else 0)


@given(SCRAPS)
def test_what_is_no_pattern_for_re_is_refused(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
        except re.error:
            valid = False
        else:
            valid = True
    refusal = refusal_of(pattern)
    if refusal is None:
        assert valid or "(?<" in pattern
    else:
        assert not valid or "not supported" in refusal or "repeat" in refusal


def test_groups_may_be_named_as_in_ecmascript() -> None:
    assert search(r"^(?<year>\d{4})-(?<month>\d\d)$", "2026-11") == 0


def test_the_first_match_in_the_text_names_its_pattern() -> None:
    patterns = Patterns(["zebra", r"\d{3}", "cat|dog"])

    assert patterns.search("a dog, 123", Budget(PLENTY)) == 2
    assert patterns.search("nothing", Budget(PLENTY)) is None


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(a|aa)+$", "a*a*a*a*a*b", "(.*a){12}x", r"^(\w+\s?)*$"])
def test_a_pattern_on_which_backtracking_never_ends_costs_few_steps(pattern: str) -> None:
    assert search(pattern, "a" * 20_000 + "!", steps=10_000) is None


def test_a_search_ends_with_its_steps() -> None:
    patterns = Patterns(["(a|b)*a(a|b){300}c"])
    text = "".join("ab"[bin(number).count("1") % 2] for number in range(3_000))
    budget = Budget(100_000)

    with pytest.raises(StepLimitExceeded):
        patterns.search(text, budget)
    assert patterns.search("a" + "b" * 300 + "c", Budget(PLENTY)) == 0


def test_many_different_letters_are_one_where_no_pattern_tells_them_apart() -> None:
    text = "".join(map(chr, range(0x4E00, 0x9000))) * 20

    assert search("[a-z]{3}x|é", text, steps=len(text)) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 30 + "a" + "{1000})" * 30,
        "(a{0}){0,1000}" * 100,
        "((((){1000}){1000}){1000}){1000}",
        "|" * 2000,
        "()" * 1000,
    ],
)
def test_the_size_of_what_is_compiled_is_bounded(pattern: str) -> None:
    refusal = refusal_of(pattern)

    assert refusal is None or "repeat" in refusal or "too large" in refusal


def test_wide_sets_cost_no_more_than_narrow_ones(recwarn: pytest.WarningsRecorder) -> None:
    """`re` takes half a minute for these."""
    wide = ["".join(f"[{chr(0x100 + place)}-{chr(0x10FF00 + entry)}]" for place in range(19)) for entry in range(100)]

    assert Patterns(wide, ignore_case=True).size < 2001
    assert not recwarn.list


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "no closing ')'"),
        ("a)", "no matching '('"),
        ("[a", "no closing ']'"),
        ("[z-a]", "is empty"),
        ("*a", "nothing to repeat"),
        ("^*", "nothing to repeat"),
        ("a**", "repeated"),
        ("a{3,2}", "above the maximum"),
        ("a\\", "nothing after the backslash"),
        (r"(a)\1", "not supported"),
        (r"(?P<x>a)(?P=x)", "not supported"),
        (r"(?<x>a)\k<x>", "not supported"),
        ("(?=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        ("(?i)a", "not supported"),
        ("(?>a)", "not supported"),
        (r"\p{L}", "not supported"),
        ("a++", "not supported"),
        ("a{2000}", "more than 1000 times"),
        ("a{" + "9" * 1000 + "}", "more than 1000 times"),
        ("(" * 40 + ")" * 40, "nested deeper"),
        ("a" * 2001, "2001 characters"),
        ("((a{99}){99}){99}", "too large"),
    ],
)
def test_a_pattern_that_cannot_be_bounded_is_refused_with_the_reason(pattern: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        Patterns(["fine", pattern])

    assert said in caught.value.args[0]
    assert caught.value.args[1] == 1
    assert len(caught.value.args[0]) < 300
