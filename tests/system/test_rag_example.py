"""The example of vector dbs in docs, run as printed against `make run`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.system.run_process import Run


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path / "state", 0)
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


def test_the_example_of_vector_dbs_finds_its_documents(run: Run) -> None:
    command = [sys.executable, str(ROOT / "docs" / "examples" / "rag.py"), run.url]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    query, searched, retrieved = done.stdout.split("-- ")[1:]
    assert "Metadata: {'source': 'facts', 'document_id': 'maverick'}" in query
    assert "tool_execution\n  Content: Guanacos" in searched
    assert "memory_retrieval\n  Content: Alpacas" in retrieved
