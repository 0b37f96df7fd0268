"""Runs of clients in their own environments."""

import subprocess
from pathlib import Path

import pytest
from tests.system.run_process import clean_shell
from tests.system.test_auth_clients import AuthorizedRun

QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks GitHub for prices
    "LANGSMITH_TRACING": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "PYTHONWARNINGS": "ignore",
}


def run_client(
    environment: Path, command: list[str], stint: AuthorizedRun, folder: Path, given: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a client against the server, with a text as its standard input.

    The test is skipped if the client's environment does not exist.
    """
    if not environment.exists():
        pytest.skip(f"{environment.name} needs Python 3.12: make CLIENTS_PYTHON=... test-clients")
    shell = {name: value for name, value in clean_shell().items() if name != "PYTHONPATH"}
    server = {"STINT_URL": stint.run.url, "STINT_API_KEY": stint.key, "HOME": str(folder)}
    own = shell | QUIET | server | variables
    return subprocess.run(command, env=own, cwd=folder, input=given, capture_output=True, text=True, timeout=120)
