"""Files that code writes: their costs, and a session that is gone."""

import pytest
from tests.script_model import called, said, script
from tests.services.conftest import MakeTurnFixture
from tests.services.turns.test_turn_costs import write_units
from tests.store.conftest import Cloud

from stint.domain.errors import Interrupted
from stint.domain.ids import new_id
from stint.services.turns.code_outputs import choose_outputs, keep_outputs
from stint.store.session_files import StoredSessionFile
from stint.store.session_leases import SessionLease


async def acquire(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> SessionLease:
    opened = await make_turn_fixture(script(said(), called("add"))).open()
    return await cloud.store.session_leases.acquire(
        opened.tenant, opened.agent_id, opened.session_id, new_id(), resume=False, seconds=30
    )


async def test_files_cost_one_write_unit_and_unchanged_ones_none(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    lease = await acquire(make_turn_fixture, cloud)
    cloud.forget()

    await keep_outputs(cloud.store.session_files, lease, {"a": b"1", "b": b"2"}, [])
    units = write_units(cloud)
    omitted = await keep_outputs(cloud.store.session_files, lease, {"a": b"1"}, ["c"])

    assert (units, write_units(cloud), omitted) == (1, 1, [])
    assert await cloud.store.session_files.read(lease) == {"a": b"1", "b": b"2"}


async def test_files_of_a_run_that_lost_its_session_are_not_stored(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    lease = await acquire(make_turn_fixture, cloud)
    await lease.release()

    with pytest.raises(Interrupted):
        await keep_outputs(cloud.store.session_files, lease, {"a": b"1"}, [])

    assert lease.files is None


def test_files_have_the_place_that_the_others_leave() -> None:
    earlier = [StoredSessionFile(name=name, bytes=1_000_000, sha256="", blob="") for name in ("a", "b")]
    written = {"a": b"x" * 2_500_001, "c": b"x" * 1_500_000, "d": b"x", "b": b"x" * 999_999, "e": b"x"}

    added, omitted = choose_outputs(earlier, written)

    assert ([*added], omitted) == (["c", "b", "e"], ["a", "d"])
