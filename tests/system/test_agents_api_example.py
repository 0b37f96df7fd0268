"""The example of OpenAI's Agents API, and the commands of its page, run as printed."""

from collections.abc import Iterator

import pytest
from infra.local.engine import ROOT
from tests.servers.ports import free_port
from tests.system.printed_commands import Desk, read_blocks
from tests.system.test_how_to_commands import move_mcp_server

PAGE = ROOT / "docs" / "agents-api.md"
BLOCKS = read_blocks(PAGE)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with Desk(tmp_path_factory.mktemp("agents-api") / "stint", free_port()) as desk:
        desk.replaced = move_mcp_server(desk)
        desk.start_server("make run")
        yield desk


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_each_block_prints_what_it_shows(desk: Desk, number: int) -> None:
    desk.run(BLOCKS[number])
