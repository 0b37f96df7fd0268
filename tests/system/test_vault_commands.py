"""The commands of docs/vaults.md, run as printed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.servers.ports import free_port
from tests.system.printed_commands import Desk, read_blocks
from tests.system.test_how_to_commands import move_mcp_server

BLOCKS = read_blocks(ROOT / "docs" / "vaults.md")

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = Path(tmp_path_factory.mktemp("vaults")) / "stint"
    with Desk(folder, free_port()) as desk:
        desk.replaced = move_mcp_server(desk)
        yield desk


def test_a_session_calls_a_server_with_a_stored_token_as_the_page_shows(desk: Desk) -> None:
    assert [block.language for block in BLOCKS if block.output is not None] == ["sh", "python"]
    for block in BLOCKS:
        desk.run(block)
