import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import pytest

from stint.domain.errors import InvalidRequest, ShieldFailed, TooLarge
from stint.domain.inference import ModelMessage, UserInput
from stint.domain.steps import SafetyViolation
from stint.loop.screening import BoundShield, screen
from stint.shields.port import Shield, Touchpoint

Judgement = Callable[[], Awaitable[SafetyViolation | None]]
BLOCK = SafetyViolation(violation_level="error", user_message="No.", metadata={"violation_type": "S1"})
OTHER = SafetyViolation(violation_level="error", user_message="Never.")
WARNING = SafetyViolation(
    violation_level="warn", user_message="Careful.", metadata={"violation_type": "unlikely words"}
)


class Stub:
    """A shield that judges as it is told."""

    asks_model = False

    def __init__(self, judge: Judgement) -> None:
        self.judge = judge
        self.asked: list[tuple[list[ModelMessage], Touchpoint]] = []

    def validate(self, shield: Shield) -> None: ...

    async def check(
        self, shield: Shield, messages: Sequence[ModelMessage], touchpoint: Touchpoint
    ) -> SafetyViolation | None:
        self.asked.append((list(messages), touchpoint))
        return await self.judge()


def says(violation: SafetyViolation | None, after: Awaitable[object] | None = None) -> Judgement:
    async def judge() -> SafetyViolation | None:
        if after is not None:
            await after
        return violation

    return judge


def fails(message: str) -> Judgement:
    async def judge() -> SafetyViolation | None:
        raise ShieldFailed(message)

    return judge


def bind(*judgements: Judgement) -> list[BoundShield]:
    return [
        BoundShield(Shield(f"shield{place}", "stub", "stub"), Stub(judge)) for place, judge in enumerate(judgements)
    ]


async def violation_of(*judgements: Judgement) -> SafetyViolation | None:
    return (await screen(bind(*judgements), [UserInput("hi")], "user-input")).violation


async def test_a_screening_is_one_step_with_its_touchpoint_and_times() -> None:
    screening = await screen(bind(says(None), says(BLOCK)), [UserInput("hi")], "assistant-output")

    step = screening.to_step("turn")

    assert screening.touchpoint == "assistant-output"
    assert (step.turn_id, step.step_id, step.violation) == ("turn", screening.step_id, BLOCK)
    assert step.completed_at is not None
    assert step.started_at <= step.completed_at


async def test_shields_are_asked_at_once() -> None:
    barrier = asyncio.Barrier(3)

    async with asyncio.timeout(30):
        assert await violation_of(*(says(None, barrier.wait()) for _ in range(3))) is None


async def test_the_first_violation_in_the_order_of_the_list_wins_whichever_comes_first() -> None:
    second_has_spoken = asyncio.Event()

    async def speak() -> SafetyViolation | None:
        second_has_spoken.set()
        return OTHER

    assert await violation_of(says(BLOCK, second_has_spoken.wait()), speak) == BLOCK
    assert await violation_of(says(None), says(OTHER), says(BLOCK)) == OTHER


async def test_what_can_change_nothing_is_not_waited_for() -> None:
    begun, dropped = asyncio.Event(), asyncio.Event()

    async def linger() -> SafetyViolation | None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            dropped.set()
        return None

    async with asyncio.timeout(30):
        assert await violation_of(says(BLOCK), linger) == BLOCK

    assert dropped.is_set()


async def test_a_shield_that_fails_is_no_pass_though_others_pass() -> None:
    with pytest.raises(ShieldFailed, match="first"):
        await violation_of(says(None), fails("first"), says(WARNING), fails("second"))


async def test_a_text_that_is_too_long_for_a_shield_is_the_callers_to_shorten() -> None:
    async def refuse() -> SafetyViolation | None:
        raise TooLarge("too long")

    with pytest.raises(TooLarge, match="too long"):
        await violation_of(says(None), refuse)


async def test_a_violation_wins_over_a_shield_that_fails() -> None:
    assert await violation_of(fails("down"), says(BLOCK)) == BLOCK
    assert await violation_of(says(BLOCK), fails("down")) == BLOCK


async def test_warnings_are_only_logged_and_without_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert await violation_of(says(WARNING), says(None)) is None

    assert [record.__dict__["shield_id"] for record in caplog.records] == ["shield0"]
    assert "unlikely" not in str(caplog.records[0].__dict__)


async def test_a_caller_who_leaves_takes_the_checks_along() -> None:
    begun, dropped = asyncio.Event(), asyncio.Event()

    async def linger() -> SafetyViolation | None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            dropped.set()
        return None

    screening = asyncio.create_task(violation_of(linger))
    await begun.wait()
    screening.cancel()

    with pytest.raises(asyncio.CancelledError):
        await screening

    assert dropped.is_set()


async def test_no_shield_is_no_violation() -> None:
    assert await violation_of() is None


@pytest.mark.parametrize("fault", [TimeoutError("slow"), ZeroDivisionError("said: boo"), InvalidRequest("no model")])
async def test_a_shield_that_raises_anything_has_failed(fault: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def judge() -> SafetyViolation | None:
        raise fault

    with pytest.raises(ShieldFailed):
        await violation_of(judge)

    assert "boo" not in caplog.text
