"""Signals to runs, as the process that runs them reads them."""

import pytest
from tests.store.conftest import Cloud

from stint.domain.ids import name_of, new_id
from stint.domain.run_signals import ResponseRef, RunSignals, TurnRef
from stint.store import keys

CANCELLED = RunSignals(cancelled=True)


@pytest.mark.parametrize("count", [1, 99, 100, 250])
async def test_the_signals_of_all_runs_of_a_process_are_read(cloud: Cloud, tenant: str, count: int) -> None:
    runs = [ResponseRef(name_of("resp", new_id())) for _ in range(count)]
    await cloud.store.stops.add(tenant, "session:a", 1)
    await cloud.store.stops.read(tenant)  # the first read of a process has one record more
    signalled = sorted({0, min(98, count - 1), min(99, count - 1), min(199, count - 1), count - 1})
    for place in signalled:
        await cloud.store.run_signals.cancel_response(tenant, runs[place].response_id)
    cloud.forget()

    stops, signals = await cloud.store.run_signals.read(tenant, runs)

    assert stops == {"session:a": 1}
    assert signals == {runs[place]: CANCELLED for place in signalled}
    assert cloud.calls == {"BatchGetItem": -(-(count + 1) // 100)}


async def test_two_turns_of_a_session_have_their_own_signals(cloud: Cloud, tenant: str) -> None:
    """A turn that has lost its lease may still run in the process that runs the next one."""
    ids = new_id(), new_id()
    earlier, running = TurnRef(*ids, "a"), TurnRef(*ids, "b")
    cloud.write([keys.session_state(tenant, *ids)._asdict() | {"lease_turn": "b", "created_at": "2026-01-01"}])
    assert await cloud.store.run_signals.cancel_turn(tenant, running)

    for runs in [earlier, running], [running, earlier]:
        _, signals = await cloud.store.run_signals.read(tenant, runs)
        assert signals == {earlier: RunSignals(), running: CANCELLED}
