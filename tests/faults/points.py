"""The points of a scenario: each of its calls, with each kind of fault.

A run tries a sample of them, which begins at another point for each commit, so that all points have their turn. A run
prints its start: `FAULTS_START=1234 make test-faults` repeats the whole sample, and `POINT=7 FAULTS=all` with the test
of a scenario repeats a point. `FAULTS=all make test-faults` leaves nothing out.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.commit import commit_number
from tests.faults.aws_calls import BATCHES
from tests.faults.cloud import FaultyCloud
from tests.faults.fault_proxy import DEATHS, ERRORS, Fault, FaultKind
from tests.faults.scenario import Finding, Outcome, Scenario, run_scenario

PROPERTY = "points of failure"
LEFT_OUT = "points left out"
LEAST_DEATHS, LEAST_ERRORS = 150, 250
"""Minimum deaths, and errors of AWS, of all scenarios."""

KINDS_PER_READ, KINDS_PER_WRITE = 1, 2
"""Kinds of errors that each call has, in turns, unless FAULTS=all."""
READS = ("Get", "BatchGet", "Query", "List", "Head", "Scan")
WITH_EFFECT = (FaultKind.death_after, FaultKind.lost, FaultKind.lost_once)
"""Kinds that are the same as others if the call has no effect."""

TURNS_OF_KINDS = 64
"""Starts after which a sample begins at the next point. Until then, each one has other kinds at the same points."""


@dataclass(frozen=True)
class TriedPoint:
    """A point that a fault hit, and what its check found."""

    scenario: str
    call: str
    fault: Fault
    findings: tuple[Finding, ...]

    def to_property(self) -> dict[str, Any]:
        """Return the value that a test reports."""
        service = self.call.partition(".")[0]
        found = [finding.kind for finding in self.findings]
        return {"kind": self.fault.kind.value, "service": service, "findings": found}

    def __str__(self) -> str:
        found = "; ".join(f"{finding.kind}: {finding.text}" for finding in self.findings)
        return f"{self.scenario}, call {self.fault.number} ({self.call}), {self.fault.kind.value}: {found}"


def sample_start() -> int:
    """Return where samples begin: FAULTS_START, or a number of the commit."""
    return int(os.environ.get("FAULTS_START") or commit_number())


def faults_of(calls: Sequence[str], kinds: Sequence[FaultKind]) -> Iterator[Fault]:
    """Yield faults for the calls of a run. POINT=7 selects one call, FAULTS=all every kind."""
    chosen = os.environ.get("POINT")
    for number, name in enumerate(calls):
        if chosen is None or number == int(chosen):
            yield from (Fault(kind, number) for kind in kinds_of(number, name, kinds))


def kinds_of(number: int, name: str, kinds: Sequence[FaultKind]) -> list[FaultKind]:
    """Return the kinds that a call has: in turns, so that neighbours have others, and so does each start."""
    reads = name.partition(".")[2].startswith(READS)
    fitting = [kind for kind in kinds if not (reads and kind in WITH_EFFECT)]
    if name not in BATCHES:
        fitting = [kind for kind in fitting if kind is not FaultKind.partial]
    elif not reads and FaultKind.partial in fitting:
        return [FaultKind.partial, *kinds_of(number, "write", kinds)]
    count = KINDS_PER_READ if reads else KINDS_PER_WRITE
    if os.environ.get("FAULTS") == "all" or count >= len(fitting):
        return fitting
    first = sample_start() + number * count
    return [fitting[(first + place) % len(fitting)] for place in range(count)]


def sample(faults: Sequence[Fault], most: int) -> list[Fault]:
    """Return up to `most` faults at equal distances, from the start of the sample on and around the end.

    From a distance of two on, each second one is the next neighbour, so that all kinds are among them.
    """
    count = len(faults)
    if count <= most or "POINT" in os.environ or os.environ.get("FAULTS") == "all":
        return list(faults)
    shift = 1 if count >= 2 * most else 0
    places = [place * count // most + shift * (place % 2) for place in range(most)]
    return [faults[place] for place in sorted((place + sample_start() // TURNS_OF_KINDS) % count for place in places)]


def try_points(kind: type[Scenario], cloud: FaultyCloud, kinds: Sequence[FaultKind]) -> tuple[list[TriedPoint], int]:
    """Run a scenario without a fault, and then once for each fault of a sample. Return also how many are left out."""
    calls = count_calls(kind, cloud)
    every = list(faults_of(calls, kinds))
    chosen = sample(every, kind.most_deaths if tuple(kinds) == DEATHS else kind.most_errors)
    chosen += [fault for fault in every if is_partial_deletion(fault, calls) and fault not in chosen][:1]
    outcomes = [(fault, run_scenario(kind, cloud, fault)) for fault in chosen]
    points = [point_of(kind, fault, outcome) for fault, outcome in outcomes if outcome.injected]
    return points, len(every) - len(chosen)


def count_calls(kind: type[Scenario], cloud: FaultyCloud) -> list[str]:
    """Return the calls of a scenario without a fault, which runs once in a cloud."""
    if kind.name not in cloud.counted:
        undisturbed = run_scenario(kind, cloud)
        assert not undisturbed.findings, f"{kind.name}, without a fault: {undisturbed.findings}"
        cloud.counted[kind.name] = undisturbed.calls
    return cloud.counted[kind.name]


def is_partial_deletion(fault: Fault, calls: Sequence[str]) -> bool:
    """Return whether a fault leaves a part of a batch of objects, of which there are few."""
    return fault.kind is FaultKind.partial and calls[fault.number].startswith("s3.")


def point_of(kind: type[Scenario], fault: Fault, outcome: Outcome) -> TriedPoint:
    return TriedPoint(kind.name, outcome.calls[fault.number], fault, tuple(outcome.findings))


def report(points: Sequence[TriedPoint], broken: Sequence[TriedPoint]) -> str:
    """Return the broken promises, with the command that repeats each, and the one that repeats the sample."""
    lines = [line for point in broken for line in (str(point), f"  to repeat it: {command_of(point)}")]
    test = f"-k '{kind_of_test(broken[0])} and {broken[0].scenario}]'"
    whole = f'FAULTS_START={sample_start()} make test-faults ARGS="{test}"'
    return "\n".join([f"{len(broken)} of {len(points)} points:", *lines, f"to repeat this sample: {whole}"])


def kind_of_test(point: TriedPoint) -> str:
    """Return a part of the name of the test that tries a point."""
    return "deaths" if point.fault.kind in DEATHS else "errors"


def command_of(point: TriedPoint) -> str:
    """Return the command that tries a point again, with all kinds of faults of its test."""
    test = f"-k '{kind_of_test(point)} and {point.scenario}]'"
    return f'POINT={point.fault.number} FAULTS=all make test-faults ARGS="{test}"'


def is_enough(tried: Sequence[dict[str, Any]]) -> bool:
    """Return whether as many deaths and errors were tried as a run of all scenarios must try."""
    deaths = sum(point["kind"] in DEATHS for point in tried)
    return deaths >= LEAST_DEATHS and len(tried) - deaths >= LEAST_ERRORS


def summarize(tried: Sequence[dict[str, Any]], left_out: int) -> Iterator[str]:
    """Yield a line for each kind of fault, with the number of points in each service, and the sums."""
    for kind in (*DEATHS, *ERRORS):
        those = [point for point in tried if point["kind"] == kind.value]
        if those:
            services = Counter(point["service"] for point in those)
            where = ", ".join(f"{service} {count}" for service, count in sorted(services.items()))
            yield f"{kind.value} ({where}): {count_findings(those)}"
    deaths = [point for point in tried if point["kind"] in DEATHS]
    errors = [point for point in tried if point["kind"] not in DEATHS]
    yield f"left out at equal distances: {left_out} points (FAULTS=all tries them, and every kind at each point)"
    yield f"to repeat this sample: FAULTS_START={sample_start()} make test-faults"
    if not is_enough(tried):
        yield f"a run of all scenarios tries {LEAST_DEATHS} deaths and {LEAST_ERRORS} errors of AWS at least"
    yield f"deaths: {count_findings(deaths)}"
    yield f"errors of AWS: {count_findings(errors)}"
    yield f"faults: {count_findings(tried)}"


def count_findings(tried: Sequence[dict[str, Any]]) -> str:
    """Return how many points were tried, and how many of them broke each promise."""
    found = {name: sum(name in point["findings"] for point in tried) for name in ("lost", "stuck", "doubled")}
    return f"{len(tried)} tried, " + ", ".join(f"{count} {name}" for name, count in found.items())
