"""Each snippet of docs/clients.md, unmodified, against `make run AUTH=on`. The clients have their own environments."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.snippets import ENVIRONMENTS, Snippet, read_snippets
from tests.system.run_process import Run, clean_shell, free_port
from tests.system.test_auth_clients import PATHS, AuthorizedRun

SNIPPETS = read_snippets()
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks GitHub for prices
    "LANGSMITH_TRACING": "false",
    "PYTHONWARNINGS": "ignore",
}


@pytest.fixture(scope="session")
def stint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizedRun]:
    shell = {"STINT_SCRIPTED_WORD_SECONDS": "0", **PATHS}
    run = Run(tmp_path_factory.mktemp("clients"), free_port(), "--auth", "on", shell=shell)
    run.read_until("Ctrl-C stops")
    yield AuthorizedRun(run)
    run.stop()


def test_every_client_has_one_snippet_and_an_environment() -> None:
    assert [snippet.client for snippet in SNIPPETS] == list(ENVIRONMENTS)
    assert {snippet.language for snippet in SNIPPETS} == {"python", "js"}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.client)
def test_a_snippet_prints_what_the_page_says(snippet: Snippet, stint: AuthorizedRun, tmp_path: Path) -> None:
    if not snippet.environment.exists():
        pytest.skip(f"{snippet.environment.name} needs Python 3.12: make CLIENTS_PYTHON=... test-clients")
    shell = {name: value for name, value in clean_shell().items() if name != "PYTHONPATH"}
    server = {"STINT_URL": stint.run.url, "STINT_API_KEY": stint.key}
    environment = shell | QUIET | server | {"HOME": str(tmp_path)}

    done = subprocess.run(
        snippet.command(tmp_path), env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert lines_of(done.stdout) == lines_of(snippet.output), done.stderr[-3000:]


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
