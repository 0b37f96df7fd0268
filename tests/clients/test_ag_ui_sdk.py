"""AG-UI as its Python package reads it."""

import json
from pathlib import Path
from typing import Any

from infra.local.engine import ROOT
from tests.clients.environments import run_client
from tests.clients.snippets import PROTOCOLS
from tests.system.test_auth_clients import AuthorizedRun

ENVIRONMENT = ROOT / f".venv-{PROTOCOLS}"
SCRIPT = Path(__file__).with_name("ag_ui_sdk_client.py")


def test_the_python_package_reads_every_event(stint: AuthorizedRun, tmp_path: Path) -> None:
    with stint.llama(stint.key) as llama:
        config: Any = {"model": "scripted/demo", "instructions": "Be brief."}
        agent_id = llama.agents.create(agent_config=config).agent_id

    command = [str(ENVIRONMENT / "bin" / "python"), str(SCRIPT), agent_id]
    done = run_client(ENVIRONMENT, command, stint, tmp_path)

    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {
        "types": [
            "MESSAGES_SNAPSHOT",
            "RUN_FINISHED",
            "RUN_STARTED",
            "STATE_SNAPSHOT",
            "STEP_FINISHED",
            "STEP_STARTED",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "TEXT_MESSAGE_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_START",
        ],
        "version": "1.0",
        "pending": True,
        "roles": ["user", "assistant", "tool"],
        "text": "get_weather answered: sunny",
        "outcome": "success",
    }
