"""The price of an open stream in docs/costs.md follows from its pauses and its memory."""

from pathlib import Path

import pytest

from stint.domain.prices import InfrastructurePrices
from stint.openai_agents.session_stream import BUSY_SECONDS, LONG_PAUSE, SHORT_PAUSE

PAGE = (Path(__file__).parents[3] / "docs" / "costs.md").read_text()
READ_OF_A_RECORD, MEMORY_MB = 0.5, 176


@pytest.mark.parametrize("seconds", [30, 300, 900])
def test_the_price_of_a_silent_stream_is_that_of_the_page(seconds: int) -> None:
    reads = BUSY_SECONDS / SHORT_PAUSE + (seconds - BUSY_SECONDS) / LONG_PAUSE
    units = reads * READ_OF_A_RECORD

    dollars = InfrastructurePrices().cost_of(0, units, seconds * 1000, MEMORY_MB)

    assert f"| {seconds} s | {units:.0f} | ${dollars * 1000:.3f} |" in PAGE
