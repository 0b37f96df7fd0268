"""The benchmark of `make run` against real processes."""

import sys

import pytest
from infra.bench.base import this_tree
from infra.bench.side import running_side
from infra.bench.streams import SHORT, run_client
from tests.system.run_process import all_end


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_sessions_are_measured_with_the_memory_and_cpu_time_of_their_function() -> None:
    async with running_side(this_tree()) as side:
        measured = await run_client(side.url, 4, 2, SHORT)
        peak, cpu = side.peak_memory("turns"), side.cpu_seconds("turns")
        side.kill("turns")
        again = await run_client(side.url, 1, 1, SHORT)

    assert (measured.errors, again.errors) == (0, 0)
    assert measured.turns > 0
    assert peak > 20
    assert cpu > 0
    assert all_end({side.pid}, within=10)
