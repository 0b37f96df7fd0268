"""Files and vector stores with the clients of newer Llama Stacks, which check the types of answers."""

from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.clients.environments import run_client
from tests.clients.snippets import LLAMA_STACK
from tests.system.test_auth_clients import AuthorizedRun

ENVIRONMENT = ROOT / f".venv-{LLAMA_STACK}"
SCRIPT = Path(__file__).with_name("knowledge_client.py")


@pytest.mark.parametrize(
    ("module", "client"), [("ogx_client", "OgxClient"), ("llama_stack_client", "LlamaStackClient")]
)
def test_empty_lists_searches_and_chunks_have_the_types_of_the_client(
    module: str, client: str, stint: AuthorizedRun, tmp_path: Path
) -> None:
    command = [str(ENVIRONMENT / "bin" / "python"), str(SCRIPT), module, client]

    done = run_client(ENVIRONMENT, command, stint, tmp_path)

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["[] []", "[]", "['llamas'] Llamas live in Peru.", "d1 384"]
