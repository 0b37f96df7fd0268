"""All scenarios."""

from tests.faults.scenario import Scenario
from tests.faults.turn_scenarios import TURNS, ResumedTurn, TurnWithTools

SCENARIOS: list[type[Scenario]] = [*TURNS]
WARMING: list[type[Scenario]] = [TurnWithTools, ResumedTurn]
"""Scenarios that run once before all others, so that their code is loaded."""
