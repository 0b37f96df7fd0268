"""Turns of sessions run for whoever posted their input; the process that holds the stream only carries them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.clock import CLOCK
from tests.script_model import called, said, script
from tests.services.session_process import SHOP, SessionProcess, function, hurry, message, read, refused, result, types
from tests.store.conftest import Cloud

from stint.caller import find_end_user, find_principal, set_end_user, set_principal
from stint.domain.principals import Budgets, Principal
from stint.domain.stops import stop_name
from stint.openai_agents.schemas.sessions import SessionUpdateParams
from stint.services.runs.senders import acting_for
from stint.spending.stop_monitor import ANSWER_SECONDS


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    hurry(monkeypatch)
    yield
    set_principal(None)
    set_end_user(None)


@contextmanager
def caller(tenant: str, key_id: str, user: str | None = None, models: tuple[str, ...] = (), **budgets: int):  # type: ignore[no-untyped-def]
    """Run the body for a key, and for an end user."""
    principal = Principal(tenant, key_id, frozenset({"use"}), key_id, models, Budgets(**budgets))
    with acting_for(principal.to_context(), user):
        yield


def refuse_queries(operation: str, _body: str) -> None:
    if operation == "Query":
        raise ConnectionAbortedError


class Watched:
    """A scripted model that notes for whom it is called."""

    def __init__(self, *answers) -> None:  # type: ignore[no-untyped-def]
        self.script = script(*answers)
        self.seen: list[tuple[str, str | None]] = []
        stream = self.script.stream

        def note(request):  # type: ignore[no-untyped-def]
            principal = find_principal()
            self.seen.append((principal.key_id if principal else "", find_end_user()))
            return stream(request)

        self.script.stream = note  # type: ignore[method-assign]


async def test_a_turn_runs_for_its_poster_in_a_stream_of_another_key(cloud: Cloud, tenant: str) -> None:
    model = Watched(said())
    poster = await SessionProcess(cloud, tenant, script()).open()
    holder = poster.other_process(model.script)

    with caller(tenant, "holder", "bob"):
        stream = await holder.open_stream()
        with caller(tenant, "poster", "ann"):
            await poster.post(message("Hello"))
        events = await read(stream, "agent.session.idle")
        assert (find_principal() or 0).key_id == "holder"  # type: ignore[union-attr]
        assert find_end_user() == "bob"

    assert model.seen == [("poster", "ann")]
    assert types(events)[-2:] == ["turn.completed", "idle"]


async def test_the_poster_may_use_fewer_models_than_the_holder(cloud: Cloud, tenant: str) -> None:
    with caller(tenant, "owner"):
        process = await SessionProcess(cloud, tenant, script(said(), called("ask"), said())).open(function("ask"))

    with caller(tenant, "poster", models=("scripted/*",)):
        error = await refused(process, message("Hello"))
    assert error is not None
    assert error.code == "model_not_allowed"
    assert process.queue.waiting == []

    with caller(tenant, "owner"):
        await process.post(message("Hello"))
        await process.work()
        await process.post(message("Ask me"))
        await process.work()
    [_, turn] = await process.stored()
    with caller(tenant, "poster", models=("scripted/*",)):
        error = await refused(process, result(turn.turn_id, "c0"))

    assert error is not None
    assert error.code == "model_not_allowed"
    assert (await process.show()).status == "requires_action"


async def test_the_model_of_the_session_counts_and_not_that_of_its_agent(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script()).open()
    changes = SessionUpdateParams.model_validate({"agent": {"model": "scripted/demo"}})
    await process.services.agent_sessions.update(process.session_id, changes)

    with caller(tenant, "poster", models=("scripted/*",)):
        assert await refused(process, message("Hello")) is None
    with caller(tenant, "other", models=("test/*",)):
        error = await refused(process, message("Hello"))

    assert error is not None
    assert error.code == "model_not_allowed"
    await process.work()
    assert [turn.status for turn in await process.stored()] == ["completed"]


async def test_a_budget_of_the_minute_delays_the_results_of_a_turn(cloud: Cloud, tenant: str) -> None:
    model = Watched(called("ask"), said())
    process = await SessionProcess(cloud, tenant, model.script).open(function("ask"))
    with caller(tenant, "poster", requests_per_minute=1):
        await process.post(message("Ask me"))
        await process.work()
        [turn] = await process.stored()
        await process.post(result(turn.turn_id, "c0"))
    await process.work()
    waits = await process.show()

    CLOCK.move(61)
    await process.work()

    assert waits.status == "in_progress"
    assert [turn.status for turn in await process.stored()] == ["completed"]
    assert process.queue.waiting == []


async def test_the_last_delivery_of_a_task_leaves_another_one(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script(called("ask"), said())).open(function("ask"))
    await process.post(message("Ask me"))
    await process.work()
    [turn] = await process.stored()
    await process.post(result(turn.turn_id, "c0"))

    with cloud.proxy.watching(refuse_queries):
        await process.work(last=True)
    await process.work()

    assert [turn.status for turn in await process.stored()] == ["completed"]


async def test_a_message_of_a_key_that_is_stopped_meanwhile_is_refused_in_the_stream(cloud: Cloud, tenant: str) -> None:
    model = Watched(said())
    process = await SessionProcess(cloud, tenant, model.script).open()
    with caller(tenant, "holder"):
        stream = await process.open_stream()
        with caller(tenant, "poster"):
            await process.post(message("Hello"))
        await process.fixture.store.stops.add(tenant, stop_name("key", "poster"), 1)
        CLOCK.move(2 * ANSWER_SECONDS)
        failed = await read(stream, "agent.session.idle")
        with caller(tenant, "other"):
            await process.post(message("Hello again"))
        events = await read(await process.open_stream(), "agent.session.idle")

    assert types(failed) == ["turn.created", "turn.failed", "idle"]
    assert failed[1].event.turn.error.code is not None  # type: ignore[union-attr]
    assert types(events)[-1] == "idle"
    assert model.seen == [("other", None)]


async def test_results_of_a_key_that_is_stopped_meanwhile_do_not_block_the_session(cloud: Cloud, tenant: str) -> None:
    model = Watched(called("ask"), said())
    process = await SessionProcess(cloud, tenant, model.script).open(function("ask"))
    with caller(tenant, "holder"):
        await process.post(message("Ask me"))
        await process.work()
        [turn] = await process.stored()
        with caller(tenant, "poster"):
            await process.post(result(turn.turn_id, "c0", "from the stopped key"))
        await process.fixture.store.stops.add(tenant, stop_name("key", "poster"), 1)
        CLOCK.move(2 * ANSWER_SECONDS)
        stream = await process.open_stream()
        events = await read(stream, "agent.session.idle", seconds=10)

    [turn] = await process.stored()
    assert types(events)[-2:] == ["turn.failed", "idle"]
    assert turn.error is not None
    assert turn.error.code == "stopped"
    assert (await process.show()).status == "idle"
    assert model.seen == [("holder", None)]


async def test_budgets_are_charged_to_the_poster(cloud: Cloud, tenant: str) -> None:
    model = Watched(said(), said(), said())
    process = await SessionProcess(cloud, tenant, model.script).open()
    with caller(tenant, "holder", requests_per_minute=1):
        for text in ("one", "two"):
            stream = await process.open_stream()
            with caller(tenant, "poster"):
                await process.post(message(text))
            await read(stream, "agent.session.idle")
    assert [each[0] for each in model.seen] == ["poster", "poster"]


async def test_a_provider_key_of_the_holder_reaches_no_tool(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script(called("buy"), said())).open(SHOP)
    seen = []
    invoke = process.fixture.fake_mcp.invoke

    async def note(toolgroup, invocation):  # type: ignore[no-untyped-def]
        seen.append(dict(invocation.provider_data))
        return await invoke(toolgroup, invocation)

    process.fixture.fake_mcp.invoke = note  # type: ignore[method-assign]
    stream = await process.open_stream()
    await process.post(message("Buy"))

    await read(stream, "agent.session.idle")

    assert seen == [{}]
