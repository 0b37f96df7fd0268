"""Turns of sessions, API keys and tenants that an admin stops."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, Script, called, said, script, until
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, ended
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.errors import Stopped
from stint.domain.inference import TextChunk, ToolSignature
from stint.domain.llama_stack.registrations import ToolGroupRegisterRequest
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.principals import Principal
from stint.domain.steps import ToolExecutionStep
from stint.spending.stop_monitor import WATCH_SECONDS
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

PROVIDER = "lambda-function"


@dataclass
class FakeToolProvider:
    """A provider with the tools `buy`, which returns at once, and `sell`, which never does."""

    calls: list[str] = field(default_factory=list)

    async def check(self, _: Toolgroup, /) -> None:
        pass

    def known_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        return [ToolSignature(name, "", {"type": "object"}) for name in ("buy", "sell")]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, _: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.calls.append(invocation.tool_name)
        if invocation.tool_name == "sell":
            await asyncio.Event().wait()
        return ToolOutcome("done")


@pytest.fixture(autouse=True)
def _as_the_key_k1(tenant: str) -> Iterator[None]:
    set_principal(Principal(tenant, "s", frozenset({"use"}), "k1"))
    yield
    set_principal(None)


def blocked() -> list[Part]:
    """Return an answer that never ends."""
    return [TextChunk("I am"), asyncio.Event()]


async def stop(fixture: TurnFixture, name: str) -> None:
    await fixture.store.stops.add(fixture.tenant, name.format(session=fixture.session_id), 1_700_000_000)


def requests(fixture: TurnFixture) -> int:
    """Return how often the model was called."""
    assert isinstance(fixture.model, Script)
    return len(fixture.model.requests)


async def stop_while_running(fixture: TurnFixture, name: str, calls: int = 1) -> Turn:
    """Stop something during a turn's model call with this number, and return the turn after one read of the stops."""
    running = asyncio.create_task(fixture.play(await fixture.start()))
    await until(lambda: requests(fixture) == calls)
    await stop(fixture, name)
    CLOCK.move(WATCH_SECONDS)
    return ended(await asyncio.wait_for(running, 30))


@pytest.mark.parametrize("name", ["session:{session}", "key:k1", "tenant"])
async def test_a_running_turn_ends_at_the_next_read_of_the_stops(make_turn_fixture: MakeTurnFixture, name: str) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"), blocked(), said())).open()

    turn = await stop_while_running(turn_fixture, name, calls=2)

    assert (turn.status, turn.error and turn.error.code) == (TurnStatus.failed, "stopped")
    assert [step.step_type for step in turn.steps] == ["inference", "tool_execution"]
    assert (await turn_fixture.get(turn.turn_id)).receipt == turn.receipt is not None
    assert await turn_fixture.lease_turn() is None


async def test_the_error_says_what_was_stopped_and_what_to_do(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(blocked())).open()

    turn = await stop_while_running(turn_fixture, "key:k1")

    assert turn.error is not None
    assert turn.error.message.startswith("The API key k1 was stopped by an admin.")
    assert turn.error.message.endswith("Ask an admin of the tenant to lift the stop.")


@pytest.mark.parametrize("name", ["session:{session}", "key:k1", "tenant"])
async def test_a_new_turn_is_refused_and_nothing_of_it_is_stored(make_turn_fixture: MakeTurnFixture, name: str) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    await stop(turn_fixture, name)

    with pytest.raises(Stopped):
        await turn_fixture.start()

    assert await turn_fixture.stored() == []
    assert await turn_fixture.lease_turn() is None
    assert requests(turn_fixture) == 0


@pytest.mark.parametrize("name", ["session:other", "key:k2"])
async def test_other_sessions_and_keys_go_on(make_turn_fixture: MakeTurnFixture, name: str) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    await stop(turn_fixture, name)

    assert (await turn_fixture.turn()).status == TurnStatus.completed


async def test_a_lifted_stop_allows_the_next_turn(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    await stop(turn_fixture, "tenant")
    with pytest.raises(Stopped):
        await turn_fixture.start()

    await turn_fixture.store.stops.remove(turn_fixture.tenant, "tenant")

    assert (await turn_fixture.turn()).status == TurnStatus.completed


async def test_a_resumed_turn_of_a_stopped_session_is_refused_and_can_be_resumed_later(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), said())).open("add")
    paused = await turn_fixture.turn()
    await stop(turn_fixture, "session:{session}")

    with pytest.raises(Stopped):
        await turn_fixture.resume(paused.turn_id, ("c0", "3"))

    await turn_fixture.store.stops.remove(turn_fixture.tenant, f"session:{turn_fixture.session_id}")
    assert (await turn_fixture.resumed(paused.turn_id, ("c0", "3"))).status == TurnStatus.completed


async def test_tools_that_run_are_cancelled_and_results_that_are_there_are_kept(cloud: Cloud, tenant: str) -> None:
    shop, model = FakeToolProvider(), script(called("buy", "sell"), said())
    turn_fixture = TurnFixture(cloud.store, tenant, model, providers={PROVIDER: shop})
    await turn_fixture.services.toolgroups.register(
        ToolGroupRegisterRequest(toolgroup_id="shop", provider_id=PROVIDER, args={})
    )
    await turn_fixture.open(toolgroups=["shop"])
    running = asyncio.create_task(turn_fixture.play(await turn_fixture.start()))
    await until(lambda: shop.calls == ["buy", "sell"])

    await stop(turn_fixture, "tenant")
    CLOCK.move(WATCH_SECONDS)
    turn = ended(await asyncio.wait_for(running, 30))

    done = [step for step in turn.steps if isinstance(step, ToolExecutionStep)]
    assert [step.tool_calls[0].tool_name for step in done] == ["buy"]
    assert len(model.requests) == 1


async def test_the_runs_of_a_process_share_one_call_a_second(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stint.services.runs.partial_writer.PATIENCE_SECONDS", 3_600)  # no parts of steps are stored
    turn_fixture = await make_turn_fixture(script(*(blocked() for _ in range(3)))).open()
    running = []
    for place in range(3):
        turn_fixture.session_id = await turn_fixture.sessions.create(turn_fixture.agent_id, f"talk {place}")
        running.append(asyncio.create_task(turn_fixture.play(await turn_fixture.start())))
    await until(lambda: requests(turn_fixture) == 3)
    for stop in turn_fixture.turns.meters.stops.runs:
        await stop.confirm()
    cloud.forget()

    for seconds in range(1, 4):
        CLOCK.move(WATCH_SECONDS)
        await until(lambda expected=seconds: cloud.calls["BatchGetItem"] == expected)  # type: ignore[misc]

    assert cloud.calls == {"BatchGetItem": 3}
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_nothing_is_read_while_nothing_runs(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    await turn_fixture.turn()
    cloud.forget()

    CLOCK.move(10 * WATCH_SECONDS)
    await asyncio.sleep(0.05)

    assert cloud.calls == {}
    assert turn_fixture.turns.meters.stops.watching is None


async def test_a_failing_read_does_not_end_the_watch(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(blocked())).open()
    running = asyncio.create_task(turn_fixture.play(await turn_fixture.start()))
    await until(lambda: requests(turn_fixture))
    await stop(turn_fixture, "tenant")
    refused: list[str] = []

    def fail_once(operation: str, _: str) -> None:
        if operation == "BatchGetItem" and not refused:
            refused.append(operation)
            raise ConnectionError

    with own_cloud.proxy.watching(fail_once):
        while not running.done():
            CLOCK.move(WATCH_SECONDS)
            await asyncio.sleep(0.02)

    turn = ended(await running)
    assert turn.error is not None
    assert turn.error.code == "stopped"
