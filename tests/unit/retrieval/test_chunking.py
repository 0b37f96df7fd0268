import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.domain.errors import InvalidRequest
from stint.retrieval.chunking.static import BLOCK_CHARACTERS, chunk_static
from stint.retrieval.chunking.tokens import TOKEN, count_tokens, find_token_starts
from stint.retrieval.chunking.windows import chunk_windows

ROOT = Path(__file__).parents[3]
ENGLISH = (
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in Liberty, "
    "and dedicated to the proposition that all men are created equal."
)
CHARACTERS = [*"aB7.,!_-(\n\t\r \u00a0\u2003üяのあ中한ก🙂\u0301"]
TEXTS = st.text(st.sampled_from(CHARACTERS), max_size=600) | st.text(max_size=300)


def words(count: int) -> str:
    """Return a text with one token per word."""
    return " ".join(["word"] * count)


@given(TEXTS)
def test_the_tokens_cover_the_text(text: str) -> None:
    starts = find_token_starts(text)

    assert "".join(TOKEN.findall(text)) == text
    assert count_tokens(text) == len(starts) - 1 == len(TOKEN.findall(text))
    assert list(starts) == sorted(set(starts))


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("{}", 1), ("word15", 2), ("".join(f" word{n}" for n in range(15, 25)), 20), ("人人生而自由", 6)],
)
def test_counts_agree_with_those_of_llama_3_where_these_were_recorded(text: str, count: int) -> None:
    assert count_tokens(text) == count


def test_english_has_about_four_and_a_half_characters_per_token() -> None:
    assert 4.2 < len(ENGLISH) / count_tokens(ENGLISH) < 5


def test_windows_overlap_by_a_quarter() -> None:
    chunks = chunk_windows(words(1_100), 512)

    assert [chunk.token_count for chunk in chunks] == [512, 512, 332]
    assert chunks[0].text.split()[-128:] == chunks[1].text.split()[:128]


def test_the_last_window_may_have_only_tokens_of_the_one_before() -> None:
    assert [chunk.token_count for chunk in chunk_windows(words(10), 8)] == [8, 4]
    assert [chunk.token_count for chunk in chunk_windows(words(8), 8)] == [8, 2]


def test_windows_join_to_the_text_without_overlap() -> None:
    text = "Größe: 12345\n\n  人人 🙂" * 50

    assert "".join(chunk.text for chunk in chunk_windows(text, 7, 0)) == text


def test_a_text_without_tokens_has_no_windows_and_white_space_neither() -> None:
    assert chunk_windows("", 512) == chunk_windows(" \n" * 10_000, 512) == []


@pytest.mark.parametrize(("size", "overlap"), [(0, None), (-1, None), (4, 4), (4, -1)])
def test_windows_of_an_impossible_size_are_refused(size: int, overlap: int | None) -> None:
    with pytest.raises(InvalidRequest, match="is invalid") as caught:
        chunk_windows("a b c", size, overlap)

    assert caught.value.param == "chunk_size_in_tokens"


SIZES = st.integers(100, 400).flatmap(lambda most: st.tuples(st.just(most), st.integers(0, most // 2)))


@given(st.lists(TEXTS, max_size=30).map("".join), SIZES)
def test_chunks_fit_and_miss_nothing(text: str, sizes: tuple[int, int]) -> None:
    chunks = chunk_static(text, *sizes)

    assert all(0 < chunk.token_count == count_tokens(chunk.text) <= sizes[0] for chunk in chunks)
    assert not any(chunk.text.isspace() for chunk in chunks)
    place, flat = 0, "".join(text.split())
    for chunk in chunks:  # each begins within or directly after the one before
        piece = "".join(chunk.text.split())
        found = max(at for at in range(place + 1) if flat.startswith(piece, at))
        place = found + len(piece)
    assert place == len(flat)


def test_paragraphs_and_sentences_are_not_divided_if_they_fit() -> None:
    paragraphs = [f"{ENGLISH} This is paragraph {number}." for number in range(40)]

    chunks = chunk_static("\n\n".join(paragraphs), 100, 0)

    assert all(re.fullmatch(r"Four.*paragraph \d+\.", chunk.text, re.DOTALL) for chunk in chunks)


def test_chunks_of_the_automatic_strategy_overlap_by_up_to_400_tokens() -> None:
    lines = [f"{number}: {ENGLISH}" for number in range(200)]

    chunks = chunk_static("\n".join(lines))

    for before, after in pairwise(chunks):
        shared = set(before.text.splitlines()) & set(after.text.splitlines())
        assert 200 < count_tokens("\n".join(shared)) <= 400
        assert before.token_count > 600


def test_chunks_overlap_where_a_block_ends() -> None:
    text = " ".join(f"w{number:05}" for number in range(BLOCK_CHARACTERS))

    chunks = [set(chunk.text.split()) for chunk in chunk_static(text, 200, 50)]

    assert all(before & after for before, after in pairwise(chunks))


def test_a_small_text_is_one_chunk_without_the_white_space_around_it() -> None:
    assert [chunk.text for chunk in chunk_static("\n\n  one\ttwo\r\n\r\nthree \n")] == ["one\ttwo\n\nthree"]
    assert chunk_static("") == chunk_static(" \n\t\u3000") == []


BLANKS = "\t\n\r\x0b\x0c\x85\u2003\u2028\u3000 "
SIGNS = ".?!;,()[]“”‘’'\"`*:—…/\\–&-"  # noqa: RUF001
HOSTILE: dict[str, Callable[[random.Random], str]] = {
    "letters": lambda _: "a" * 1_000_000,
    "lines of growing distance": lambda _: "".join("a" + "\n" * count for count in range(1_500, 0, -1)),
    "blanks of growing length": lambda _: "".join("a" + " " * count for count in range(1_500, 0, -1)),
    "blanks of every kind": lambda some: "".join("a" + "".join(some.choices(BLANKS, k=4)) for _ in range(100_000)),
    "punctuation": lambda some: "".join(some.choices(SIGNS, k=300_000)),
}
"""Texts that make semchunk recurse once per separator, or divide a text into characters."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_divided_in_few_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, counted = HOSTILE[name](random.Random(1)), 0

    def count(piece: str) -> int:
        nonlocal counted
        counted += len(piece)
        return count_tokens(piece)

    monkeypatch.setattr("stint.retrieval.chunking.static.count_tokens", count)
    chunks = chunk_static(text, 400, 200)

    assert all(chunk.token_count <= 400 for chunk in chunks)
    assert counted < 60 * len(text)


def test_chunks_are_the_same_in_every_process() -> None:
    program = (
        "import json, sys; from stint.retrieval.chunking.static import chunk_static\n"
        "print(json.dumps([chunk.text for chunk in chunk_static(sys.stdin.read(), 100, 30)]))"
    )
    text = f"{ENGLISH}\n\n# Title\n\n* one, two; (three)\n" * 30
    done = [
        subprocess.run(
            [sys.executable, "-c", program],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": str(ROOT / "layers" / "core"), "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]

    assert done[0].stdout == done[1].stdout == json.dumps([chunk.text for chunk in chunk_static(text, 100, 30)]) + "\n"


def test_semchunk_is_loaded_only_by_a_division() -> None:
    program = "import sys, stint.retrieval.chunking.static; from stint.retrieval.chunking.windows import chunk_windows"
    environment = {"PYTHONPATH": str(ROOT / "layers" / "core")}

    done = subprocess.run(
        [sys.executable, "-c", f"{program}; chunk_windows('a', 1); print('semchunk' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )

    assert done.stdout == "False\n"


@pytest.mark.parametrize(("size", "count"), [(1, 100_001), (4, 300_001)])
def test_a_text_is_not_divided_into_more_than_100_000_windows(size: int, count: int) -> None:
    with pytest.raises(InvalidRequest, match="Choose larger chunks") as refused:
        chunk_windows("a\n" * (count // 2 + 1), size)
    assert refused.value.param == "chunk_size_in_tokens"
    assert len(chunk_windows("a\n" * 40_000, size)) <= 100_000
