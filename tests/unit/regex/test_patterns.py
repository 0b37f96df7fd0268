import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

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
        r"\.",
        r"\n",
        "^",
        "$",
        r"\b",
        "A",
    ]
)
COUNTS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{,2}", "*?", "+?"])
TEXTS = st.text(alphabet="abA é_.\n1", max_size=12)


def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map(lambda part: f"({part})"),
        st.tuples(inner, COUNTS).map(lambda parts: f"(?:{parts[0]}){parts[1]}"),
    )


PATTERNS = st.recursive(ATOMS, extend, max_leaves=8)


@settings(max_examples=400, deadline=None)
@given(PATTERNS, TEXTS.filter(len), st.booleans())
@example("a$", "a\n", False)
@example("(?:a*)*b", "aab", False)
@example("", "a", False)
def test_a_pattern_matches_where_re_matches(pattern: str, text: str, ignore_case: bool) -> None:
    expected = re.search(pattern, text, re.IGNORECASE if ignore_case else re.NOFLAG)

    found = Patterns([pattern], ignore_case=ignore_case).search(text)

    assert found == (None if expected is None else 0)


def test_the_first_match_in_the_text_names_its_pattern() -> None:
    patterns = Patterns(["zebra", r"\d{3}", "cat|dog"])

    assert patterns.search("a dog, 123") == 2
    assert patterns.search("nothing") is None


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(a|aa)+$", "a*a*a*a*a*b", "(.*a){12}x", r"^(\w+\s?)*$"])
def test_a_pattern_on_which_backtracking_never_ends_is_matched_at_once(pattern: str) -> None:
    text = "a" * 20_000 + "!"
    begin = time.monotonic()

    assert Patterns([pattern]).search(text) is None
    assert time.monotonic() - begin < 5


def test_a_search_ends_when_its_time_is_over() -> None:
    with pytest.raises(TimeoutError):
        Patterns(["(a|b)*a(a|b){300}c"]).search("ab" * 1000, until=time.monotonic() - 1)


def test_memory_stays_bounded_when_every_character_leads_to_new_states() -> None:
    patterns = Patterns(["(a|b)*a(a|b){200}c"])
    text = "".join("ab"[bin(number).count("1") % 2] for number in range(3_000))

    patterns.search(text)

    assert sum(len(states) for states in patterns._sets) < 600_000


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "missing"),
        (r"(a)\1", "not supported"),
        ("(?=a)b", "not supported"),
        ("(?i)a", "not supported"),
        ("a++", "not supported"),
        ("a{2000}", "more than 1000 times"),
        ("(" * 40 + ")" * 40, "nested deeper"),
        ("a" * 501, "501 characters"),
        ("((a{99}){99}){99}", "too large"),
    ],
)
def test_a_pattern_that_cannot_be_bounded_is_refused_with_the_reason(pattern: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        Patterns(["fine", pattern])

    assert said in caught.value.args[0]
    assert caught.value.args[1] == 1
