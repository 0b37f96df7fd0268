"""The points of a scenario: each of its calls, with each kind of fault."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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


def faults_of(calls: Sequence[str], kinds: Sequence[FaultKind]) -> Iterator[Fault]:
    """Yield faults for the calls of a run. POINT=7 selects one call, FAULTS=all every kind."""
    chosen = os.environ.get("POINT")
    for number, name in enumerate(calls):
        if chosen is None or number == int(chosen):
            yield from (Fault(kind, number) for kind in kinds_of(number, name, kinds))


def kinds_of(number: int, name: str, kinds: Sequence[FaultKind]) -> list[FaultKind]:
    """Return the kinds that a call has: in turns, so that neighbours have others."""
    reads = name.partition(".")[2].startswith(READS)
    fitting = [kind for kind in kinds if not (reads and kind in WITH_EFFECT)]
    if name not in BATCHES:
        fitting = [kind for kind in fitting if kind is not FaultKind.partial]
    elif not reads and FaultKind.partial in fitting:
        return [FaultKind.partial, *kinds_of(number, "write", kinds)]
    count = KINDS_PER_READ if reads else KINDS_PER_WRITE
    if os.environ.get("FAULTS") == "all" or count >= len(fitting):
        return fitting
    return [fitting[(number * count + place) % len(fitting)] for place in range(count)]


def sample(faults: Sequence[Fault], most: int) -> list[Fault]:
    """Return up to `most` faults at equal distances.

    From a distance of two on, each second one is the next neighbour, so that all kinds are among them.
    """
    count = len(faults)
    if count <= most or "POINT" in os.environ or os.environ.get("FAULTS") == "all":
        return list(faults)
    shift = 1 if count >= 2 * most else 0
    return [faults[place * count // most + shift * (place % 2)] for place in range(most)]


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
    """Return the broken promises, and the command that repeats the first one."""
    first = broken[0]
    test = "deaths" if first.fault.kind in DEATHS else "errors"
    command = f"POINT={first.fault.number} FAULTS=all make test-faults ARGS=\"-k '{test} and {first.scenario}]'\""
    return "\n".join([f"{len(broken)} of {len(points)} points:", *map(str, broken), command])


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
    if not is_enough(tried):
        yield f"a run of all scenarios tries {LEAST_DEATHS} deaths and {LEAST_ERRORS} errors of AWS at least"
    yield f"deaths: {count_findings(deaths)}"
    yield f"errors of AWS: {count_findings(errors)}"
    yield f"faults: {count_findings(tried)}"


def count_findings(tried: Sequence[dict[str, Any]]) -> str:
    """Return how many points were tried, and how many of them broke each promise."""
    found = {name: sum(name in point["findings"] for point in tried) for name in ("lost", "stuck", "doubled")}
    return f"{len(tried)} tried, " + ", ".join(f"{count} {name}" for name, count in found.items())
