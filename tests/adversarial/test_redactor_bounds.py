"""Bounds of the redaction of hostile texts, in steps, CPU time and memory."""

import time
import tracemalloc

import pytest

from stint.domain.redaction import Redactor

HOSTILE = {
    "a prefix again and again": (["a" * 4000 + "b"], "a"),
    "many secrets of one beginning": ([f"{'a' * 12}{n:04}" for n in range(1000)], "a"),
    "a secret again and again": (["abcdefgh"], "abcdefgh"),
    "a secret and a letter": (["abcdefgh"], "abcdefgh."),
    "almost a secret": (["ab" * 2000 + "x"], "ab"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_the_steps_grow_with_the_length_of_the_text_alone(case: str) -> None:
    secrets, unit = HOSTILE[case]
    matcher = Redactor(secrets).matcher
    steps = 0

    class Counted(list[dict[str, int]]):
        def __getitem__(self, node: int) -> dict[str, int]:  # type: ignore[override]  # no slices are asked for
            nonlocal steps
            steps += 1
            return list.__getitem__(self, node)

    matcher.moves = Counted(matcher.moves)
    text = unit * (20_000 // len(unit))
    matcher.find(text)

    assert steps <= 2 * len(text) + 1


@pytest.mark.parametrize("case", HOSTILE)
def test_a_long_text_is_redacted_in_bounded_memory(case: str) -> None:
    secrets, unit = HOSTILE[case]
    text = unit * (1_000_000 // len(unit))
    redactor = Redactor(secrets)
    tracemalloc.start()

    redactor.text(text)

    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "unit",
    [
        "%41" * 8 + " ",
        "%41",
        "%4",
        "\\u0041" * 8 + " ",
        "\\u00",
        "a" * 20 + "\n",
        "a" * 20,
        "a \n",
        "a" * 20 + " ",
        "\n ",
    ],
)
def test_the_time_for_encoded_runs_grows_with_the_length_alone(unit: str) -> None:
    begin = time.process_time()

    Redactor(["abcdefgh"]).text(unit * (3_000_000 // len(unit)))

    assert time.process_time() - begin < 10
