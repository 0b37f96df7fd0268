"""The whole system, from the client library to the stored records, as a newcomer meets it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.servers.chat_completions import ChatCompletionsServer
from tests.system.run_process import Run

EXAMPLE = ROOT / "docs" / "examples" / "conversation.py"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path / "state", 0)
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


def test_the_example_prints_what_its_page_shows(run: Run) -> None:
    page = (EXAMPLE.parent / "README.md").read_text()
    (expected,) = re.findall(r"```text\n(-- streamed.*?)```", page, flags=re.DOTALL)

    assert hold_conversation(run.url) == expected


def test_the_same_conversation_with_a_chat_completions_server(tmp_path: Path) -> None:
    with ChatCompletionsServer() as model:
        shell = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-test"}
        run = Run(tmp_path / "state", 0, shell=shell)
        run.read_until("Ctrl-C stops")

        printed = hold_conversation(run.url)

        run.stop()
    assert printed.count("answer: get_boiling_point said: -100") == 2
    assert "turns: True" in printed
    assert printed.endswith("deleted: True\n")
    assert [message["role"] for message in model.bodies[-1]["messages"]][-3:] == ["user", "assistant", "tool"]


def hold_conversation(base_url: str) -> str:
    command = [sys.executable, "-W", "error::ResourceWarning", str(EXAMPLE), base_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
