"""The sample of points that `make test-faults` tries, and its last lines."""

from itertools import product
from typing import Any

import pytest
from tests.commit import commit_number
from tests.faults.fault_proxy import DEATHS, ERRORS, Fault, FaultKind
from tests.faults.points import (
    TURNS_OF_KINDS,
    TriedPoint,
    faults_of,
    is_enough,
    report,
    sample,
    sample_start,
    summarize,
)
from tests.faults.scenario import Finding

CALLS = ["dynamodb.GetItem", "dynamodb.PutItem", "s3.DeleteObjects", "sqs.SendMessage"] * 10


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POINT", "FAULTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FAULTS_START", "0")


def points(deaths: int, errors: int, *findings: str) -> list[dict[str, Any]]:
    """Return tried points, of which the first one broke promises."""
    kinds = [FaultKind.death_before] * deaths + [FaultKind.reset] * errors
    tried = [{"kind": kind.value, "service": "dynamodb", "findings": list[str]()} for kind in kinds]
    tried[0]["findings"] = list(findings)
    return tried


@pytest.mark.parametrize(
    ("deaths", "errors", "enough"), [(150, 250, True), (149, 251, False), (400, 249, False), (151, 400, True)]
)
def test_a_run_needs_enough_deaths_and_enough_errors(deaths: int, errors: int, enough: bool) -> None:
    assert is_enough(points(deaths, errors)) is enough


def test_the_last_lines_count_what_each_class_lost() -> None:
    *_, deaths, errors, faults = summarize(points(200, 300, "lost", "doubled"), 7)

    assert deaths == "deaths: 200 tried, 1 lost, 0 stuck, 1 doubled"
    assert errors == "errors of AWS: 300 tried, 0 lost, 0 stuck, 0 doubled"
    assert faults == "faults: 500 tried, 1 lost, 0 stuck, 1 doubled"


def test_each_kind_has_a_line() -> None:
    lines = list(summarize(points(1, 2, "stuck"), 7))

    assert lines[:2] == [
        "death before the call (dynamodb 1): 1 tried, 0 lost, 1 stuck, 0 doubled",
        "connection reset (dynamodb 2): 2 tried, 0 lost, 0 stuck, 0 doubled",
    ]
    assert any("at least" in line for line in lines)


def test_calls_without_an_effect_are_not_killed_after_it() -> None:
    deaths = list(faults_of(CALLS, DEATHS))

    assert Fault(FaultKind.death_before, 0) in deaths
    assert Fault(FaultKind.death_after, 0) not in deaths
    assert Fault(FaultKind.death_after, 1) in deaths


def test_each_batch_fails_in_part() -> None:
    partial = [fault.number for fault in faults_of(CALLS, ERRORS) if fault.kind is FaultKind.partial]

    assert [CALLS[number] for number in partial] == ["s3.DeleteObjects"] * 10


def test_a_sample_reaches_the_end() -> None:
    every = list(faults_of(CALLS, ERRORS))

    chosen = sample(every, 20)

    assert len(set(chosen)) == 20
    assert {fault.kind for fault in sample(every, 40)} == set(ERRORS)
    assert chosen[-1].number >= len(CALLS) * 0.9


def test_a_sample_begins_by_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sample_start() == 0

    monkeypatch.delenv("FAULTS_START")
    assert sample_start() == commit_number()


@pytest.mark.parametrize("most", [3, 7, 12, 20])
def test_every_point_is_in_the_sample_of_some_start(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    tried = set[Fault]()
    for place, turn in product(range(24), range(6)):
        monkeypatch.setenv("FAULTS_START", str(place * TURNS_OF_KINDS + turn))
        chosen = sample(list(faults_of(CALLS[:12], ERRORS)), most)
        assert len(set(chosen)) == most
        tried.update(chosen)
    monkeypatch.setenv("FAULTS", "all")

    assert tried == set(faults_of(CALLS[:12], ERRORS))


def test_a_report_has_the_command_of_each_point_and_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTS_START", "1234")
    finding = Finding("lost", "a turn")
    points = [
        TriedPoint("a-turn", CALLS[number], Fault(FaultKind.reset, number), findings=(finding,)) for number in (3, 7)
    ]

    lines = report(points, points).splitlines()

    assert lines[0] == "2 of 2 points:"
    assert "  to repeat it: POINT=3 FAULTS=all make test-faults ARGS=\"-k 'errors and a-turn]'\"" in lines
    assert "  to repeat it: POINT=7 FAULTS=all make test-faults ARGS=\"-k 'errors and a-turn]'\"" in lines
    assert lines[-1].endswith("FAULTS_START=1234 make test-faults ARGS=\"-k 'errors and a-turn]'\"")


def test_the_last_lines_have_the_command_of_the_sample() -> None:
    assert "to repeat this sample: FAULTS_START=0 make test-faults" in summarize(points(1, 1), 0)
