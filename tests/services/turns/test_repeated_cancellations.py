"""Cancellations of sessions that are repeated, because an answer was lost or a process died: they end one turn."""

import pytest
from tests.clock import CLOCK
from tests.script_model import called, script
from tests.services.session_process import CANCEL, SessionProcess, function, hurry, message
from tests.store.conftest import Cloud

from stint.caller import RequestAttempt
from stint.domain.ids import new_id
from stint.domain.llama_stack.turns import TurnStatus
from stint.services.turns import session_cancellation

WAITING, CANCELLED = TurnStatus.awaiting_input, TurnStatus.cancelled


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    # The ends of turns are times of the real clock, and earlier tests have moved the other one.
    monkeypatch.setattr(session_cancellation, "RETRY_SECONDS", session_cancellation.RETRY_SECONDS + CLOCK.ahead)


async def open_with_messages(cloud: Cloud, tenant: str, *, first_runs: bool = True) -> SessionProcess:
    """Create a session with a turn that waits for its client, and a message in line."""
    process = await SessionProcess(cloud, tenant, script(*[called("ask")] * 3)).open(function("ask"))
    await process.post(message("one"))
    if first_runs:
        await process.work()
    await process.post(message("two"))
    return process


async def statuses(process: SessionProcess) -> list[TurnStatus]:
    return [turn.status for turn in await process.stored()]


async def test_a_cancellation_that_is_repeated_with_its_key_does_not_end_the_next_turn(
    cloud: Cloud, tenant: str
) -> None:
    process, key = await open_with_messages(cloud, tenant), new_id()
    await process.post(CANCEL, attempt=RequestAttempt(object_id=key))
    await process.work()
    assert await statuses(process) == [CANCELLED, WAITING]

    await process.post(CANCEL, attempt=RequestAttempt(object_id=key, repeated=True))

    assert await statuses(process) == [CANCELLED, WAITING]


async def test_a_cancellation_that_is_retried_without_a_key_does_not_end_the_next_turn(
    cloud: Cloud, tenant: str
) -> None:
    process = await open_with_messages(cloud, tenant)
    await process.post(CANCEL, attempt=RequestAttempt("fingerprint"))
    await process.work()

    await process.post(CANCEL, attempt=RequestAttempt("fingerprint", retry_count=1))

    assert await statuses(process) == [CANCELLED, WAITING]


async def test_a_cancelled_message_is_the_only_one_that_a_repetition_removes(cloud: Cloud, tenant: str) -> None:
    process, key = await open_with_messages(cloud, tenant, first_runs=False), new_id()
    await process.post(CANCEL, attempt=RequestAttempt(object_id=key))

    await process.post(CANCEL, attempt=RequestAttempt(object_id=key, repeated=True))
    await process.post(CANCEL, attempt=RequestAttempt("fingerprint", retry_count=1))
    await process.work()

    assert await process.inputs() == ["two"]


async def test_a_turn_that_began_after_a_cancellation_is_not_what_its_repetition_ends(
    cloud: Cloud, tenant: str
) -> None:
    process, key = await SessionProcess(cloud, tenant, script(called("ask"))).open(function("ask")), new_id()
    await process.post(message("one"))
    await process.work()

    await process.post(CANCEL, attempt=RequestAttempt(object_id=key, repeated=True))

    assert await statuses(process) == [WAITING]


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_cancellation_whose_first_attempt_had_no_effect_is_made_up_for(
    cloud: Cloud, tenant: str, *, keyed: bool
) -> None:
    process = await open_with_messages(cloud, tenant)
    await process.post(CANCEL)
    await process.work()
    CLOCK.move(60)
    attempt = RequestAttempt(object_id=new_id(), repeated=True) if keyed else RequestAttempt("fingerprint", 1)

    await process.post(CANCEL, attempt=attempt)

    assert await statuses(process) == [CANCELLED, CANCELLED]
