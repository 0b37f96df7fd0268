"""Turns and background responses whose process dies at each write: no tool runs twice, and the model knows what ran."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from tests.clock import CLOCK
from tests.script_model import called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.deaths import counting, die_at
from tests.services.polling import poll_until
from tests.services.turn_fixture import TurnFixture
from tests.services.turns.test_turn_tools import KIND, FakeTools, Making
from tests.services.worker_fixture import MCP_TOOL
from tests.store.conftest import Cloud

from stint.domain.inference import ModelMessage, ToolResult
from stint.loop.transcript import NO_RESULT, SENT
from stint.tools.port import Invocation, ToolOutcome

Act = Callable[[Invocation], Awaitable[ToolOutcome]]
LEASE = 30.0


def sub_first(fixture: list[TurnFixture]) -> Act:
    """Return tools of which `add` ends after the result of `sub` is stored."""

    async def is_stored() -> bool:
        history = await fixture[-1].store.turns.history(*fixture[-1].ids)
        return len(history.turns[-1].records) > 1

    async def act(invocation: Invocation) -> ToolOutcome:
        if invocation.tool_name == "add":
            await poll_until(is_stored)
        return ToolOutcome(f"{invocation.tool_name} is done")

    return act


def results_in(messages: Sequence[ModelMessage]) -> dict[str, str]:
    return {each.tool_name: str(each.content) for each in messages if isinstance(each, ToolResult)}


async def open_fixture(making: Making) -> TurnFixture:
    return await making.turn_fixture(script(called("add", "sub", "ask"), said()), "ask")


async def test_a_turn_that_dies_at_any_write_runs_no_tool_twice_and_tells_what_ran(
    own_cloud: Cloud, tenant: str
) -> None:
    fixtures: list[TurnFixture] = []
    making = Making(own_cloud, tenant, FakeTools(sub_first(fixtures)))
    fixtures.append(await open_fixture(making))
    with counting(own_cloud) as calls:
        await fixtures[-1].turn()
    points = [(name, n) for name in ("PutItem", "UpdateItem") for n in range(calls.count(name))]
    assert len(points) >= 8

    told: set[str] = set()
    for operation, number in points:
        fixture = await open_fixture(making)
        fixtures.append(fixture)
        making.workshop.invocations.clear()
        await die_at(own_cloud, operation, number, fixture.turn)
        CLOCK.move(LEASE)
        ran = [each.tool_name for each in making.workshop.invocations]

        model = script(said())
        other = TurnFixture(own_cloud.store, tenant, model, providers={KIND: making.workshop})
        other.agent_id, other.session_id = fixture.agent_id, fixture.session_id
        await other.turn("and now?")

        results = results_in(model.requests[0].messages)
        assert len(ran) == len(set(ran)) == len(making.workshop.invocations)
        assert all(results.get(name) in (f"{name} is done", SENT) for name in ran), (operation, number, results)
        assert results.get("ask", NO_RESULT) == NO_RESULT
        told |= set(results.values())
    assert told == {"add is done", "sub is done", SENT, NO_RESULT}


async def test_a_background_response_that_dies_at_any_write_runs_no_tool_twice_and_ends(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    tools = ("look", "buy")
    whole = make_worker_fixture(script(called(*tools), said("Done")))
    cloud = whole.cloud
    response_id = await whole.create(tools=[MCP_TOOL], stream=True)
    with counting(cloud) as calls:
        await whole.run(response_id)
    points = [(name, n) for name in ("PutItem", "UpdateItem") for n in range(calls.count(name))]
    assert len(points) >= 5

    for operation, number in points:
        first = make_worker_fixture(script(called(*tools), said("Done")))
        response_id = await first.create(tools=[MCP_TOOL], stream=True)
        await die_at(cloud, operation, number, partial(first.run, response_id))
        CLOCK.move(LEASE)
        answered = any(record.step is not None for record in (await first.stored(response_id)).records)
        successor = first.other_process(script(*([] if answered else [called(*tools)]), said("Done"), said()))

        await successor.run(response_id)

        ran = [*first.fake_mcp.calls, *successor.fake_mcp.calls]
        assert ran.count("buy") <= 1, (operation, number, ran)
        assert await successor.status(response_id) == "completed"
        await successor.follow(response_id)  # checks the grammar of the stream
