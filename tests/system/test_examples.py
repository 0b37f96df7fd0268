"""The examples of the documentation, run as printed but for the port."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.system.run_process import Run

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the examples call curl")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    run = Run(tmp_path_factory.mktemp("run") / "state", 0)
    run.read_until("Ctrl-C stops")
    yield f"{run.url}/v1"
    run.stop()


def examples(document: str, after: str) -> str:
    """The shell blocks behind a text, but for those that start a server of their own or leave for the web."""
    text = (ROOT / document).read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text[text.index(after) :], flags=re.DOTALL)
    elsewhere = ("docs/examples", "web_search")
    return "\n".join(block for block in blocks if "curl" in block and not any(word in block for word in elsewhere))


def run_shell(script: str, base: str) -> str:
    script = script.replace("http://127.0.0.1:8321/v1", base)
    prelude = f"BASE={base}\nJSON='content-type: application/json'\n"
    done = subprocess.run(["bash", "-ec", prelude + script], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_examples_of_tools(base: str) -> None:
    script = examples("docs/tools.md", "## Lambda functions")

    said = run_shell(script, base)

    assert said.count('\\"boiling_point\\":-100') >= 2
    assert '\\"identifier\\":\\"scripted/demo\\"' in said
    assert '"event_type":"turn_complete"' in said


def test_the_examples_of_shields(base: str) -> None:
    said = run_shell(examples("docs/shields.md", "## Deny list"), base)

    assert said.count('"user_message":"I do not talk about that."') >= 2
    assert '"code":"shield_failed"' in said
    assert said.count("The launch code is 0000") == 1


def test_the_examples_of_concurrency(base: str) -> None:
    said = run_shell(examples("docs/concurrency.md", "## Cancel a run"), base)

    assert '"status":"cancelled"' in said
    assert '"interval_seconds":5' in said
    assert '"text":"Third"' in said


def run_python(document: str, base: str, cwd: Path) -> list[str]:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)
    script = "\n".join(blocks).replace("http://127.0.0.1:8321", base.removesuffix("/v1"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_python_of_knowledge(base: str, tmp_path: Path) -> None:
    (tmp_path / "handbook.pdf").write_bytes(b"%PDF-1.4" + bytes(5_000_000))

    said = run_python("docs/knowledge.md", base, tmp_path)

    assert said[:2] == ["We open at 9 on Saturdays.", "completed None"]
    assert said[2].endswith("hours.md We open at 9 on Saturdays.")


def test_the_python_of_the_code_interpreter(base: str, tmp_path: Path) -> None:
    said = run_python("docs/code-interpreter.md", base, tmp_path)

    assert said[2:4] == ["month,sales", "May,20"]
    assert [line.split()[0] for line in said[-2:]] == ["copy.csv", "sales.csv"]


def test_the_python_of_images(base: str, tmp_path: Path) -> None:
    run_python("docs/images.md", base, tmp_path)

    assert (tmp_path / "fox.png").read_bytes().startswith(b"\x89PNG")
