"""The pauses of readers that poll the table."""

import asyncio

import pytest
from tests.clock import CLOCK

from stint.services.runs.polling_pauses import poll


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the lengths of all pauses, which pass at once."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        CLOCK.move(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return slept


async def test_a_poll_looks_every_quarter_of_a_second_until_its_end(slept: list[float]) -> None:
    with CLOCK.stop():
        looks = [None async for _ in poll(3.0)]

    assert slept == [0.25] * len(looks)
    assert 2.7 <= sum(slept) <= 3.0
