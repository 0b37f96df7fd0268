"""The commands of docs/tutorial.md, run as printed. Those on AWS are in tests/deploy."""

import shutil
from collections.abc import Iterator

import pytest
from infra.local.engine import ROOT
from tests.servers.ports import free_port
from tests.system.printed_commands import Block, Desk, read_blocks

ON_AWS = "8. On AWS"

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")


def local_blocks() -> list[Block]:
    return [each for each in read_blocks(ROOT / "docs" / "tutorial.md") if each.heading != ON_AWS]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with Desk(tmp_path_factory.mktemp("tutorial") / "stint", free_port()) as desk:
        yield desk


@pytest.mark.parametrize("number", range(len(local_blocks())))
def test_each_block_prints_what_it_shows(desk: Desk, number: int) -> None:
    desk.run(local_blocks()[number])
