"""The commands of docs/how-to.md, run as printed. tests/deploy runs those that deploy a stack."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.ports import free_port
from tests.system.printed_commands import Block, Desk, read_blocks

OWN_FUNCTION, RESTORE = "Call your own Lambda function", "Restore lost data"
"""The sections whose commands need a stack."""

PRINTED_URL, PRINTED_KEY = "https://abc123.execute-api.eu-west-1.amazonaws.com/prod", "stk_..."
MODEL_SERVER, MCP_SERVER, MCP_ADDRESS = "http://127.0.0.1:11434", "docs/examples/mcp_server.py", "127.0.0.1:8000"
FEWER_FILES = {"docs/*.md": "docs/s*.md"}
"""A part of the folder, because a search needs no more, and each file takes time."""

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")


PAGE, TUTORIAL, PRODUCTION = (ROOT / "docs" / name for name in ("how-to.md", "tutorial.md", "production.md"))
BLOCKS = read_blocks(PAGE)


def local_blocks() -> list[Block]:
    return [each for each in BLOCKS if each.heading not in (OWN_FUNCTION, RESTORE)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with ChatCompletionsServer() as models, Desk(tmp_path_factory.mktemp("how-to") / "stint", free_port()) as desk:
        desk.replaced = {MODEL_SERVER: models.url, **FEWER_FILES, **move_mcp_server(desk)}
        desk.start_server("make run")
        yield desk


def move_mcp_server(desk: Desk) -> dict[str, str]:
    """Copy the example of an MCP server, with a free port, and return what replaces its name and address."""
    port = free_port()
    example = (ROOT / MCP_SERVER).read_text()
    (desk.folder / "mcp_server.py").write_text(example.replace('FastMCP("demo"', f'FastMCP("demo", port={port}'))
    return {MCP_SERVER: "mcp_server.py", MCP_ADDRESS: f"127.0.0.1:{port}"}


@pytest.mark.parametrize("number", range(len(local_blocks())))
def test_each_block_prints_what_it_shows(desk: Desk, number: int) -> None:
    block = local_blocks()[number]
    if "grep -h $TURN .stint/logs" in block.text:
        wait_for_log(desk, "The turn failed")
    desk.run(block)


def wait_for_log(desk: Desk, text: str) -> None:
    """Wait until a function's log has a text: it is written after the response."""
    for _ in range(300):
        if any(text in log.read_text() for log in (desk.folder / ".stint" / "logs").iterdir()):
            return
        time.sleep(0.2)
    raise AssertionError(f"no log has {text!r}")


def test_a_function_of_the_stack_is_registered_and_invoked_with_a_key(tmp_path: Path) -> None:
    (block,) = (each for each in BLOCKS if PRINTED_URL in each.text)
    made = next(each for each in read_blocks(TUTORIAL) if "/template.yaml <<" in each.text)

    with Desk(tmp_path / "stint", port := free_port()) as desk:
        desk.run(made)
        printed = desk.start_server("make run AUTH=on TOOLS=../shop-tools/template.yaml")
        desk.replaced = {PRINTED_URL: f"http://127.0.0.1:{port}", PRINTED_KEY: re.findall(r"stk_\w+", printed)[0]}
        desk.run(BLOCKS[0])
        desk.run(block)


def test_the_commands_of_a_restore_are_those_that_are_checked_elsewhere() -> None:
    """As tests/unit/test_production_docs.py does."""
    (block,) = (each for each in BLOCKS if each.heading == RESTORE)

    assert block.text in PRODUCTION.read_text()
