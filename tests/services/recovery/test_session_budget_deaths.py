"""Processes that die at each storage call of a session with a budget: each call that is stored counts once."""

import asyncio

import pytest
from tests.clock import CLOCK
from tests.script_model import Script, script
from tests.services.deaths import counting, die_at
from tests.services.session_budget_fixture import TOKENS, LimitedSession, answered, calling
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.domain.errors import QuotaExceeded
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.steps import InferenceStep

LEASE = 30.0
WRITES = ("UpdateItem", "PutItem", "DeleteItem")
MANY = 100_000


def model() -> Script:
    """Return a model whose turns call it twice."""
    return script(*[calling("add"), answered()] * 3)


async def stored_turns(fixture: TurnFixture) -> list[StoredTurn]:
    return (await fixture.store.turns.history(*fixture.ids)).turns


async def stored_calls(fixture: TurnFixture) -> int:
    """Return the model calls of the session that are stored."""
    steps = [step for turn in await stored_turns(fixture) for step in turn.steps]
    return sum(isinstance(step, InferenceStep) for step in steps)


async def begin(cloud: Cloud, tenant: str, *client_tools: str, tokens: int = MANY) -> LimitedSession:
    return await LimitedSession(cloud, tenant, model(), lease=LEASE).begin(*client_tools, max_tokens=tokens)


async def points_of(cloud: Cloud, tenant: str) -> list[tuple[str, int]]:
    fixture = await begin(cloud, tenant)
    with counting(cloud) as calls:
        await fixture.turn()
    assert calls.count("UpdateItem") >= 2
    assert calls.count("PutItem") >= 4
    return [(name, number) for name in WRITES for number in range(calls.count(name))]


async def test_a_turn_that_dies_at_any_write_counts_each_stored_call_once(own_cloud: Cloud, tenant: str) -> None:
    totals = set()
    for operation, number in await points_of(own_cloud, tenant):
        fixture = await begin(own_cloud, tenant)
        await die_at(own_cloud, operation, number, fixture.turn)
        CLOCK.move(LEASE + 3)
        before = await stored_calls(fixture)

        heir = fixture.heir(model())
        assert (await heir.turn()).status is TurnStatus.completed

        assert await heir.spent() == TOKENS * await stored_calls(heir) == TOKENS * (before + 2), (operation, number)
        totals.add(before)
    assert totals == {0, 1, 2}


async def test_a_successor_that_dies_at_any_write_too_loses_no_stored_call(own_cloud: Cloud, tenant: str) -> None:
    for operation, number in await points_of(own_cloud, tenant):
        fixture = await begin(own_cloud, tenant)
        await die_at(own_cloud, "PutItem", 3, fixture.turn)  # its first call and its tool are stored
        CLOCK.move(LEASE + 3)
        await die_at(own_cloud, operation, number, fixture.heir(model()).turn)
        CLOCK.move(LEASE + 3)

        last = fixture.heir(model())
        await last.turn()

        assert await last.spent() == TOKENS * await stored_calls(last), (operation, number)
        assert await stored_calls(last) >= 3


async def test_a_resume_that_dies_at_any_write_counts_each_stored_call_once(own_cloud: Cloud, tenant: str) -> None:
    async def pause() -> tuple[LimitedSession, str]:
        fixture = await LimitedSession(own_cloud, tenant, script(calling("ask")), lease=LEASE).begin(
            "ask", max_tokens=MANY
        )
        return fixture, (await fixture.turn()).turn_id

    fixture, turn_id = await pause()
    with counting(own_cloud) as calls:
        await fixture.heir(model()).resumed(turn_id, ("c0", "yes"))
    for operation, number in [(name, number) for name in WRITES for number in range(calls.count(name))]:
        fixture, turn_id = await pause()
        heir = fixture.heir(model())
        await die_at(own_cloud, operation, number, lambda own=heir, turn=turn_id: own.resumed(turn, ("c0", "yes")))  # type: ignore[misc]
        CLOCK.move(LEASE + 3)

        last = fixture.heir(model())
        await last.turn()

        assert await last.spent() == TOKENS * await stored_calls(last), (operation, number)


async def test_a_turn_that_another_process_ended_counts_for_the_next_one(own_cloud: Cloud, tenant: str) -> None:
    fixture = await begin(own_cloud, tenant)
    await die_at(own_cloud, "PutItem", 3, fixture.turn)
    [turn] = await fixture.stored()
    other = fixture.heir(model())

    cancellation = other.services.turn_requests.cancellation
    cancelling = asyncio.create_task(cancellation.cancel(other.agent_id, other.session_id, turn.turn_id))
    CLOCK.move(LEASE + 3)
    assert (await cancelling).status in (TurnStatus.cancelled, TurnStatus.failed)
    await other.turn()

    assert await other.spent() == TOKENS * await stored_calls(other) == TOKENS * 3


async def test_what_a_dead_process_has_spent_refuses_the_next_turn(own_cloud: Cloud, tenant: str) -> None:
    fixture = await begin(own_cloud, tenant, tokens=TOKENS)
    await die_at(own_cloud, "PutItem", 2, fixture.turn)
    CLOCK.move(LEASE + 3)

    for _ in range(2):
        with pytest.raises(QuotaExceeded):
            await fixture.heir(model()).start()

    assert await fixture.spent() == TOKENS


async def test_a_failed_release_is_counted_by_the_next_turn(own_cloud: Cloud, tenant: str) -> None:
    fixture = await begin(own_cloud, tenant)
    run = await fixture.start()
    with own_cloud.proxy.failing("UpdateItem"):
        await fixture.play(run)
    assert await fixture.spent() == 0

    await fixture.heir(model()).turn()

    assert await fixture.spent() == 4 * TOKENS
