"""All scenarios."""

from tests.faults.a2a_scenarios import A2A
from tests.faults.admin_scenarios import ADMINISTRATION
from tests.faults.ag_ui_scenarios import AG_UI
from tests.faults.agents_api_scenarios import AGENTS_API
from tests.faults.automation_scenarios import AUTOMATIONS
from tests.faults.background_scenarios import BACKGROUND, BackgroundResponse
from tests.faults.cancellation_scenarios import CANCELLATIONS
from tests.faults.creation_scenarios import CREATIONS
from tests.faults.deletion_scenarios import DELETIONS
from tests.faults.heartbeat_scenarios import HEARTBEATS
from tests.faults.ingestion_scenarios import INGESTIONS, FileIngestion
from tests.faults.insertion_scenarios import INSERTIONS
from tests.faults.knowledge_creations import KNOWLEDGE
from tests.faults.mcp_scenarios import MCP
from tests.faults.october_scenarios import OCTOBER
from tests.faults.response_scenarios import FOREGROUND, ResponseInConversation
from tests.faults.scenario import Scenario
from tests.faults.turn_scenarios import TURNS, ResumedTurn, TurnWithTools
from tests.faults.waiting_response_scenarios import WAITING_RESPONSES
from tests.faults.waiting_scenarios import WAITING

SCENARIOS: list[type[Scenario]] = [
    *TURNS,
    *FOREGROUND,
    *BACKGROUND,
    *CANCELLATIONS,
    *WAITING,
    *WAITING_RESPONSES,
    *HEARTBEATS,
    *CREATIONS,
    *KNOWLEDGE,
    *DELETIONS,
    *ADMINISTRATION,
    *INGESTIONS,
    *INSERTIONS,
    *OCTOBER,
    *AGENTS_API,
    *AUTOMATIONS,
    *MCP,
    *AG_UI,
    *A2A,
]
WARMING: list[type[Scenario]] = [TurnWithTools, ResumedTurn, ResponseInConversation, BackgroundResponse, FileIngestion]
"""Scenarios that run once before all others, so that their code is loaded."""
