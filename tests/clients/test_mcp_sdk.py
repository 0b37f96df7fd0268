"""Agents as tools with the newest SDK of MCP, and with the one before its stateless revision."""

import sys
from pathlib import Path

import httpx
from infra.local.engine import ROOT
from tests.clients.environments import run_client
from tests.clients.snippets import PROTOCOLS
from tests.system.test_auth_clients import AuthorizedRun

USED = """call Hello ['session_id', 'turn_id', 'usage'] True
progress (1.0, 'The turn has started.') True
session Again True
failed True True
arguments -32602
tool -32602
unknown session -32602
"""
NEWEST = f"""newer 2026-07-28 stint Knows the time.
{USED}waits False True
asked The agent asks for the result of the tool get_weather with {{}}.
answered False get_weather answered: sunny
asked The agent wants to call the tool photogen with {{"query": "a fox"}}.
answered False photogen answered: The image was generated, and the user sees it.
older 2025-11-25 stint True
{USED}cancelled True
"""
OLDER = """initialize 2025-11-25 stint None
call Hello The turn has started.
session Again True
failed True
tool -32602
"""


def test_the_newest_sdk_of_mcp_calls_agents(stint: AuthorizedRun, tmp_path: Path) -> None:
    environment = ROOT / f".venv-{PROTOCOLS}"
    command = [str(environment / "bin" / "python"), str(Path(__file__).with_name("mcp_sdk_client.py"))]

    done = run_client(environment, command, stint, tmp_path)

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == NEWEST


def test_the_sdk_of_mcp_before_it_calls_an_agent(stint: AuthorizedRun, tmp_path: Path) -> None:
    config = {"model": "scripted/demo", "instructions": "Be brief."}
    headers = {"authorization": f"Bearer {stint.key}"}
    created = httpx.post(
        f"{stint.run.url}/v1/agents", json={"agent_config": config}, headers=headers, trust_env=False, timeout=60
    )
    script = str(Path(__file__).with_name("mcp_older_client.py"))

    done = run_client(Path(sys.prefix), [sys.executable, script, created.json()["agent_id"]], stint, tmp_path)

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == OLDER
