"""The load of `make bench SCALE=1`, small: what callers see, what retries hide, and the report of both."""

import random
from collections import Counter
from functools import cache, partial

from infra.bench.scale.capacity import OF_A_KEY, OF_A_TABLE, UNLIMITED, Limit
from infra.bench.scale.load import Load, Outcome, run_load, shares
from infra.bench.scale.report import bounds, describe, hottest, kind_of, percentile, render
from infra.bench.scale.virtual_time import run_virtually

SMALL = Load(sessions=12, within=1, silent=0, words=2)
SCARCE = Limit(OF_A_KEY.writes, 4)
"""Reads for a few turns a second."""


@cache
def outcome_of(load: Load) -> Outcome:
    random.seed(1)  # retries wait for a random time
    return run_virtually(partial(run_load, load=load))


def with_reads(load: Load) -> Load:
    return Load(sessions=load.sessions, within=load.within, silent=0, words=2, key=SCARCE, table=UNLIMITED)


def test_turns_under_their_limits_are_not_throttled() -> None:
    outcome = outcome_of(SMALL)

    assert [result.error for result in outcome.results] == [""] * 12
    assert all(0 < result.first_event < result.whole for result in outcome.results)
    assert outcome.fleet.throttles.attempts.total() == outcome.capacity.table(0).refused == 0
    assert 1 < outcome.in_flight <= 12


def test_throttles_are_hidden_by_retries_or_seen_by_callers() -> None:
    outcome = outcome_of(with_reads(SMALL))
    throttles, failed = outcome.fleet.throttles, [result for result in outcome.results if result.error]

    assert throttles.attempts.total() > throttles.calls.total() > 0
    assert 0 < len(failed) < len(outcome.results)
    assert {(result.error, result.throttled) for result in failed} == {("StoreUnavailable", True)}


def test_the_report_separates_what_callers_see() -> None:
    outcome = outcome_of(with_reads(SMALL))
    failed = sum(result.throttled for result in outcome.results)
    lines = render("scarce", outcome).splitlines()

    assert any(line.split()[:4] == ["failed", "for", "callers", str(failed)] for line in lines)
    assert any("StoreUnavailable (503)" in line for line in lines)
    [attempts] = [line.split()[2] for line in lines if line.startswith("  throttled attempts")]
    assert int(attempts) == outcome.fleet.throttles.attempts.total()


def test_the_hottest_key_of_each_kind_is_at_the_top() -> None:
    outcome = outcome_of(with_reads(SMALL))
    kinds = hottest(outcome)

    assert [bucket.used.peak for _, bucket, _ in kinds] == sorted((b.used.peak for _, b, _ in kinds), reverse=True)
    assert {kind: count for kind, _, count in kinds}["T#agent"] == 1
    assert kinds[0][1].refused > 0


def test_the_limit_that_binds_first_is_at_the_top() -> None:
    found = bounds(outcome_of(with_reads(SMALL)))

    assert found[0].name.startswith("DynamoDB: key T#")
    assert [bound.share for bound in found] == sorted((bound.share for bound in found), reverse=True)


def test_sessions_are_drawn_by_the_law_of_zipf() -> None:
    outcome = outcome_of(Load(sessions=60, tenants=3, agents=2, within=1, silent=0, words=1, table=OF_A_TABLE))
    tenants = Counter(pk.partition("#")[0] for pk in outcome.capacity.keys if kind_of(pk) == "T#session:*:*")

    assert shares(3) == [1, 1.5, 1.5 + 1 / 3]
    assert [name for name, _ in tenants.most_common()] == ["tenant-0", "tenant-1", "tenant-2"]
    assert tenants.total() == 60
    assert "3 tenants with 2 agents each" in describe(outcome.load)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(value) for value in range(100, 0, -1)]

    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([7.0], 0.99)) == (51, 100, 7)
