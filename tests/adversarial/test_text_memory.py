"""Patterns and phrases of shields take bounded memory for any text."""

import tracemalloc

import pytest

from stint.regex.budget import Budget
from stint.regex.patterns import Patterns
from stint.shields.folding import fold_pieces
from stint.shields.phrases import Phrases

PLENTY = 10_000_000


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a|b)*a(a|b){200}c", "".join("ab"[bin(number).count("1") % 2] for number in range(4_000))),
        ("x[^a]{1000}y", "".join(map(chr, range(0x4E00, 0x9000))) * 3),
        (".", ""),
        ("\n", "".join(map(chr, range(0xE000, 0x20000)))),
    ],
)
def test_the_memory_of_patterns_stays_bounded_whatever_a_text_leads_to(pattern: str, text: str) -> None:
    patterns = Patterns([pattern], ignore_case=True)
    tracemalloc.start()
    try:
        patterns.search(text, Budget(PLENTY))
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 30_000_000


@pytest.mark.parametrize(
    "text",
    [
        "a" * 400_000,
        "a " * 200_000,
        " " * 400_000,
        "\u0301\u0323" * 200_000,
        "e" + "\u200b" * 400_000,
        "\ufdfa" * 20_000,
        "\u1e9b\u0323" * 100_000,
        "".join(map(chr, range(0xE000, 0x30000))),
    ],
)
def test_the_memory_for_a_text_is_that_of_its_pieces(text: str) -> None:
    phrases = Phrases(["a" * size + "b" for size in range(200)], whole_words=True)
    tracemalloc.start()
    try:
        phrases.find(fold_pieces(text, case=False), Budget(10_000_000))
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 25_000_000


def test_the_memory_of_phrases_is_bounded() -> None:
    tracemalloc.start()
    try:
        Phrases([f"{number:0>50}"[::-1] for number in range(1_000)], whole_words=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    with pytest.raises(ValueError, match="at most 50000 are allowed"):
        Phrases(["a" * 51] * 1_000, whole_words=True)

    assert peak < 30_000_000
