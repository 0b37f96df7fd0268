"""Streams show what other processes do between the last read of a stream and the moment when it takes input."""

from collections.abc import Awaitable, Callable

import pytest
from tests.script_model import called, said, script
from tests.services.session_process import (
    CANCEL,
    SessionProcess,
    function,
    hurry,
    ids,
    message,
    read,
    result,
    types,
)
from tests.store.conftest import Cloud

from stint.services.runs.run_handle import RunObserver
from stint.services.turns.detached_turn import DetachedTurn
from stint.services.turns.session_input import SessionInput


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def before_the_next_take(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Awaitable[None]]) -> None:
    """Let other processes act right before a stream takes input."""
    take = SessionInput.take

    async def take_late(
        self: SessionInput, deadline: float, observer: RunObserver | None = None
    ) -> DetachedTurn | None:
        monkeypatch.setattr(SessionInput, "take", take)
        await act()
        return await take(self, deadline, observer)

    monkeypatch.setattr(SessionInput, "take", take_late)


async def test_a_stream_that_resumes_a_turn_shows_what_another_process_did_since_the_pause(
    cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = script(called("ask", text="First"), called("ask", text="Second"), said("Third"))
    process = await SessionProcess(cloud, tenant, answers).open(function("ask"))
    other = process.other_process(answers)
    await process.post(message("one"))
    await process.work()
    [turn] = await process.stored()
    stream = await process.open_stream()

    async def resume_and_pause() -> None:
        await process.post(result(turn.turn_id, "c0"))
        await other.work()
        await process.post(result(turn.turn_id, "c0"))

    before_the_next_take(monkeypatch, resume_and_pause)
    seen = await read(stream, "agent.session.idle")
    whole = await read(await other.open_stream(f"{turn.turn_id}:0:0"), "agent.session.idle")

    assert types(seen)[2:] == types(whole)[1:]
    assert ids(seen)[-len(whole) + 1 :] == ids(whole)[1:]


async def test_a_stream_that_takes_a_message_shows_how_the_turn_before_it_ended(
    cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = script(called("ask"), said())
    process = await SessionProcess(cloud, tenant, answers).open(function("ask"))
    other = process.other_process(answers)
    await process.post(message("one"))
    await process.work()
    await process.post(message("two"))
    stream = await process.open_stream()

    before_the_next_take(monkeypatch, lambda: other.post(CANCEL))
    seen = await read(stream, "agent.session.turn.completed")

    cancelled = types(seen).index("turn.cancelled")
    assert types(seen)[cancelled + 1 : cancelled + 4] == ["idle", "in_progress", "turn.created"]


async def test_a_stream_that_resumes_a_turn_of_another_process_shows_its_start(
    cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = script(said(), called("ask"), said("Second"))
    process = await SessionProcess(cloud, tenant, answers).open(function("ask"))
    other = process.other_process(answers)
    await process.post(message("one"))
    await process.work()
    stream = await process.open_stream()

    async def start_and_pause() -> None:
        await process.post(message("two"))
        await other.work()
        await process.post(result((await process.stored())[-1].turn_id, "c0"))

    before_the_next_take(monkeypatch, start_and_pause)
    seen = await read(stream, "agent.session.idle")

    assert types(seen)[:2] == ["in_progress", "turn.created"]
    assert "requires_action" in types(seen)
