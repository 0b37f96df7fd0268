"""The units that each partition takes of 64 turns of one agent.

The turns are run as in `make bench SCALE=1`: each in a process of its own that has served nothing before, against the
engine that counts units, in virtual time. So renewals and watches of 30 seconds are counted, too.
"""

from collections import defaultdict
from dataclasses import replace
from functools import cache, partial

import pytest
from infra.bench.scale.capacity import OF_A_KEY, UNLIMITED, Bucket
from infra.bench.scale.load import Load, Outcome, run_load
from infra.bench.scale.report import kind_of
from infra.bench.scale.virtual_time import run_virtually

from stint.store.keys import SHARDS

SESSIONS = 64
SHORT = Load(sessions=SESSIONS, within=1, silent=0, words=3, table=UNLIMITED, key=UNLIMITED)
LONG = Load(sessions=SESSIONS, within=1, silent=5, words=25, table=UNLIMITED, key=UNLIMITED)
BUDGETED = replace(SHORT, limits='{"*": {"budgets": {"dollars_per_month": 1000}}}')
Units = defaultdict[str, float]
RENEWALS, PARTS = 2, 5
"""Of a turn of 30 seconds: its lease lasts 30 seconds, and a part of its step is stored after each 5 seconds."""
LISTED = 2
"""Of the same turn: its record in the list of running runs, and the deletion of that."""
AT_ONCE = 10_000


@cache
def outcome_of(load: Load) -> Outcome:
    outcome = run_virtually(partial(run_load, load=load))
    assert not [result.error for result in outcome.results if result.error]
    return outcome


def per_turn(load: Load) -> tuple[Units, Units]:
    """Return the write and the read units of a turn, by the kind of their partition."""
    writes, reads = defaultdict[str, float](float), defaultdict[str, float](float)
    for pk, bucket in outcome_of(load).capacity.keys.items():
        writes[kind_of(pk)] += bucket.writes.total / SESSIONS
        reads[kind_of(pk)] += bucket.reads.total / SESSIONS
    return writes, reads


def test_a_short_turn_writes_four_units() -> None:
    assert sum(per_turn(SHORT)[0].values()) == 4


def test_a_long_turn_also_writes_its_renewals_and_parts_and_is_listed_as_running() -> None:
    writes, _ = per_turn(LONG)

    assert sum(writes.values()) == 4 + RENEWALS + PARTS + LISTED
    assert writes["T#partial_step:*:*"] == PARTS
    assert listed(LONG) == LISTED


@pytest.mark.parametrize(("seconds", "units"), [(9, 0), (12, 2), (48, 2), (55, 3), (95, 4), (135, 5)])
def test_a_turn_is_listed_after_10_seconds_and_again_every_40_seconds(seconds: int, units: int) -> None:
    assert listed(replace(SHORT, words=seconds)) == units


def listed(load: Load) -> float:
    """Return the write units of a turn in the list of running runs, which has a record in one of eight partitions."""
    return sum(units for kind, units in per_turn(load)[0].items() if kind.startswith("T#running."))


@pytest.mark.parametrize("load", [SHORT, LONG])
def test_a_process_reads_agent_and_registrations_once_for_each_turn_that_it_knows_nothing_of(load: Load) -> None:
    _, reads = per_turn(load)

    assert (reads["T#agent"], reads["T#agent:*"], reads["T#registry"]) == (2, 1, 1)


def test_the_watch_reads_stops_and_signals_for_half_a_unit_each_per_second() -> None:
    _, short = per_turn(SHORT)
    _, long = per_turn(LONG)

    assert (sum(long.values()) - sum(short.values())) / (LONG.seconds - SHORT.seconds) == pytest.approx(1, abs=0.05)


def test_the_partitions_of_all_sessions_take_the_same() -> None:
    own = [
        (bucket.writes.total, bucket.writes.peak)
        for pk, bucket in outcome_of(LONG).capacity.keys.items()
        if kind_of(pk) == "T#session:*:*"
    ]

    assert len(own) == SESSIONS
    assert len({writes for writes, _ in own}) == 1
    assert max(peak for _, peak in own) <= 2


def test_a_budget_of_money_is_written_twice_per_turn() -> None:
    writes, _ = per_turn(BUDGETED)

    assert writes["T#budget:tenant"] == 2
    assert sum(writes.values()) == sum(per_turn(SHORT)[0].values()) + 2


def shared(load: Load) -> dict[str, Bucket]:
    """Return what the partitions have consumed that are not those of one session."""
    buckets = outcome_of(load).capacity.keys
    return {pk: bucket for pk, bucket in buckets.items() if not kind_of(pk).endswith(":*:*")}


def part_of_limit(bucket: Bucket, load: Load) -> float:
    """Return what a partition consumes with many of the load's turns at once, as a part of its limit."""
    rate = AT_ONCE / SESSIONS / load.seconds
    return OF_A_KEY.share("write", bucket.writes.total * rate) + OF_A_KEY.share("read", bucket.reads.total * rate)


def test_a_short_turn_writes_no_partition_that_sessions_share() -> None:
    assert [pk for pk, bucket in shared(SHORT).items() if bucket.writes.total] == []


def test_a_long_turn_writes_only_the_list_of_running_runs_of_what_sessions_share() -> None:
    written = [kind_of(pk) for pk, bucket in shared(LONG).items() if bucket.writes.total]

    assert sorted(written) == [f"T#running.{shard}" for shard in range(SHARDS)]


@pytest.mark.parametrize("load", [SHORT, LONG])
def test_a_turn_reads_nothing_of_the_list_of_sessions(load: Load) -> None:
    assert "T#session:*" not in {kind_of(pk) for pk in shared(load)}


def test_10000_turns_of_one_agent_at_once_take_less_than_half_of_each_partition() -> None:
    parts = {kind_of(pk): part_of_limit(bucket, LONG) for pk, bucket in shared(LONG).items()}

    assert parts
    assert {kind: part for kind, part in parts.items() if part > 0.5} == {}


def test_with_the_layout_of_the_release_before_an_agent_has_3400_such_turns_at_once() -> None:
    load = replace(LONG, layout="compatible")
    parts = {kind_of(pk): part_of_limit(bucket, load) for pk, bucket in shared(load).items()}

    assert AT_ONCE / parts["T#session:*"] == pytest.approx(3_400, rel=0.02)
    assert AT_ONCE / parts["T#stop"] == pytest.approx(6_000, rel=0.02)
