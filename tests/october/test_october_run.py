"""The API of October 2024 through `make run`: its function, its routes in the template, and the example of its page."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from infra.local.engine import ROOT
from tests.october.client import PYTHON
from tests.system.run_process import Run, clean_shell

EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def stint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = Run(tmp_path_factory.mktemp("october"), 0, shell={"STINT_SCRIPTED_WORD_SECONDS": "0"})
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


def test_the_example_of_the_page_runs_with_the_client(stint: Run, tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("the client of October 2024 is not installed: make test-october")
    [example] = EXAMPLE.findall((ROOT / "docs" / "october-2024.md").read_text())
    script = tmp_path / "example.py"
    script.write_text(example.replace("http://127.0.0.1:8321", f"http://127.0.0.1:{stint.port}"))
    shell = {name: value for name, value in clean_shell().items() if name != "PYTHONPATH"}

    done = subprocess.run([str(PYTHON), str(script)], env=shell, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("You said: Hello\n")


def test_every_kind_of_route_reaches_its_function(stint: Run) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{stint.port}", trust_env=False, follow_redirects=True) as http:
        answers = {
            path: http.get(path)
            for path in (
                "/health",
                "/routes/list",
                "/models/list",
                "/post_training/jobs",
                "/agents/nothing",
                "/memory/list",
            )
        }
        evaluation = http.post("/evaluate/summarization/", json={"metrics": []})

    assert {path: answer.status_code for path, answer in answers.items()} == {
        "/health": 200,
        "/routes/list": 200,
        "/models/list": 200,
        "/post_training/jobs": 501,
        "/agents/nothing": 404,
        "/memory/list": 200,
    }
    assert evaluation.status_code == 501
    assert "evaluate" in evaluation.json()["error"]["message"]
