"""Each snippet of docs/clients.md, unmodified, against `make run AUTH=on`. The clients have their own environments."""

from pathlib import Path

import pytest
from tests.clients.environments import run_client
from tests.clients.snippets import ENVIRONMENTS, Snippet, read_snippets
from tests.system.test_auth_clients import AuthorizedRun

SNIPPETS = read_snippets()


def test_every_client_has_one_snippet_and_an_environment() -> None:
    assert [snippet.client for snippet in SNIPPETS] == list(ENVIRONMENTS)
    assert {snippet.language for snippet in SNIPPETS} == {"python", "js"}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.client)
def test_a_snippet_prints_what_the_page_says(snippet: Snippet, stint: AuthorizedRun, tmp_path: Path) -> None:
    done = run_client(snippet.environment, snippet.command(tmp_path), stint, tmp_path)

    assert done.returncode == 0, done.stderr[-3000:]
    assert lines_of(done.stdout) == lines_of(snippet.output), done.stderr[-3000:]


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
