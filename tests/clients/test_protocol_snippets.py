"""Each snippet of docs/protocols.md, unmodified, against `make run AUTH=on`, with the agent that the page saves."""

import subprocess
from pathlib import Path

import pytest
from tests.clients.environments import run_client
from tests.clients.snippets import OF_PROTOCOLS, Snippet, read_protocol_snippets, read_setup
from tests.clients.test_snippets import lines_of
from tests.system.run_process import clean_shell
from tests.system.test_auth_clients import AuthorizedRun

SNIPPETS = read_protocol_snippets()


@pytest.fixture(scope="module")
def agent_id(stint: AuthorizedRun) -> str:
    environment = clean_shell() | {"STINT_URL": stint.run.url, "STINT_API_KEY": stint.key}
    command = ["bash", "-euc", f"{read_setup()}\nprintenv STINT_AGENT"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_protocol_has_a_snippet_and_an_environment() -> None:
    assert [snippet.client for snippet in SNIPPETS] == list(OF_PROTOCOLS)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.client)
def test_a_protocol_snippet_prints_what_the_page_says(
    snippet: Snippet, stint: AuthorizedRun, agent_id: str, tmp_path: Path
) -> None:
    command = snippet.command(tmp_path)
    done = run_client(snippet.environment, command, stint, tmp_path, STINT_AGENT=agent_id)

    assert done.returncode == 0, done.stderr[-3000:]
    assert lines_of(done.stdout) == lines_of(snippet.output), done.stderr[-3000:]
