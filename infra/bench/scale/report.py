"""The report of a load: what callers saw, what retries have hidden, the hottest keys, and what binds first."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from infra.bench.scale.capacity import OF_A_NEW_TABLE, Bucket
from infra.bench.scale.load import Load, Outcome

HOTTEST = 6
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

CONCURRENCY, SCALING_SECONDS, GATEWAY_RATE = 1_000, 10, 10_000
"""Default quotas: concurrent executions of a region, which are also the new environments of a function in ten seconds,
and requests a second of a region's API Gateway.

https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
"""


@dataclass(frozen=True)
class Bound:
    """A limit, what the load needs of it, and what raises it."""

    name: str
    needed: float
    limit: float
    raised_by: str

    @property
    def share(self) -> float:
        return self.needed / self.limit


def kind_of(pk: str) -> str:
    """Return the kind of a partition key: without its tenant and ids."""
    return "T#" + ID.sub("*", pk.partition("#")[2])


def hottest(outcome: Outcome) -> list[tuple[str, Bucket, int]]:
    """Return the hottest key of each kind, and the number of its keys: those with the highest share first."""
    found: dict[str, Bucket] = {}
    counts: Counter[str] = Counter()
    for pk, bucket in outcome.capacity.keys.items():
        kind = kind_of(pk)
        counts[kind] += 1
        if kind not in found or bucket.used.peak > found[kind].used.peak:
            found[kind] = bucket
    ordered = sorted(found.items(), key=lambda each: -each[1].used.peak)
    return [(kind, bucket, counts[kind]) for kind, bucket in ordered]


def bounds(outcome: Outcome) -> list[Bound]:
    """Return the limits, the one that binds first at the top."""
    table = outcome.capacity.table(outcome.ended)
    kind, key, _ = hottest(outcome)[0]
    new = OF_A_NEW_TABLE.share
    return sorted(
        [
            Bound("Lambda: concurrent executions", outcome.in_flight, CONCURRENCY, "quota of the region"),
            Bound(
                f"Lambda: new environments in {SCALING_SECONDS} s",
                min(outcome.in_flight, outcome.arrivals * SCALING_SECONDS),
                CONCURRENCY,
                "none: provisioned concurrency before a peak",
            ),
            Bound("API Gateway: requests/s", outcome.arrivals, GATEWAY_RATE, "quota of the region"),
            Bound(
                "DynamoDB: new table, both in part",
                new("write", table.writes.peak) + new("read", table.reads.peak),
                1,
                "warm throughput of the table",
            ),
            Bound(f"DynamoDB: key {kind}, both in part", key.used.peak, 1, "none: another layout of keys"),
        ],
        key=lambda bound: -bound.share,
    )


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def render(title: str, outcome: Outcome) -> str:
    """Return the report of a load."""
    return "\n".join(
        [
            "",
            f"{title}: {describe(outcome.load)}",
            *render_callers(outcome),
            *render_throttles(outcome),
            *render_keys(outcome),
            *render_bounds(outcome),
        ]
    )


def describe(load: Load) -> str:
    spread = f"{load.tenants} tenants with {load.agents} agents each, by Zipf" if load.tenants > 1 else "one agent"
    return (
        f"{load.sessions:,} sessions of {spread}; turns of {load.seconds:g} s that arrive within {load.within:g} s; "
        f"a table with {load.table.writes:,.0f} write or {load.table.reads:,.0f} read units/s"
    )


def render_callers(outcome: Outcome) -> list[str]:
    done = [result for result in outcome.results if not result.error]
    errors = Counter(f"{result.error}{' (503)' * result.throttled}" for result in outcome.results if result.error)
    lines = [f"  turns                {len(outcome.results):>10,}   at once {outcome.in_flight:,}"]
    lines.append(f"  failed for callers   {errors.total():>10,}   {dict(errors) if errors else ''}".rstrip())
    for name, values in (
        ("until first event", [result.first_event for result in done]),
        ("whole, without model", [result.whole - outcome.load.seconds for result in done]),
    ):
        if values:
            p50, p99, most = percentile(values, 0.5), percentile(values, 0.99), max(values)
            lines.append(f"  {name:<21}{p50 * 1000:>7.0f} ms   p99 {p99 * 1000:.0f} ms, most {most * 1000:.0f} ms")
    return lines


def render_throttles(outcome: Outcome) -> list[str]:
    throttles = outcome.fleet.throttles
    attempts, calls, parts = (throttles.attempts.total(), throttles.calls.total(), throttles.parts.total())
    lines = [f"  throttled attempts   {attempts:>10,}   {named(throttles.attempts)}".rstrip()]
    lines.append(f"  of calls that failed {calls:>10,}   {named(throttles.calls)}".rstrip())
    lines.append(f"  batches in part      {parts:>10,}   {named(throttles.parts)}".rstrip())
    return lines


def named(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common() if count)


def render_keys(outcome: Outcome) -> list[str]:
    lines = [f"  {'hottest key of a kind':38}{'keys':>8}{'writes/s':>10}{'reads/s':>10}{'of limit':>10}{'refused':>9}"]
    table = outcome.capacity.table(outcome.ended)
    for name, bucket, count in [*hottest(outcome)[:HOTTEST], ("the table", table, 1)]:
        row = f"  {name:38}{count:>8,}{bucket.writes.peak:>10,.0f}{bucket.reads.peak:>10,.0f}"
        lines.append(f"{row}{bucket.used.peak:>10.0%}{bucket.refused:>9,}")
    return lines


def render_bounds(outcome: Outcome) -> list[str]:
    lines = [f"  {'what binds first':52}{'needed':>9}{'default':>9}   raised by"]
    for bound in bounds(outcome):
        needed, limit = (
            (f"{bound.needed:,.0f}", f"{bound.limit:,}") if bound.limit > 1 else (f"{bound.needed:.0%}", "100%")
        )
        lines.append(f"  {bound.name:52}{needed:>9}{limit:>9}   {bound.raised_by}")
    return lines
