"""The commands of README.md, run as printed."""

import shutil
from collections.abc import Iterator

import pytest
from infra.local.engine import ROOT
from tests.servers.ports import free_port
from tests.system.printed_commands import Block, Desk, read_blocks

README = ROOT / "README.md"
BLOCKS = read_blocks(README)
ON_AWS = "Deploy"
"""The section whose commands tests/deploy runs."""

OTHER_TARGET = "make test "
"""The command that runs this file."""

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with Desk(tmp_path_factory.mktemp("readme") / "stint", free_port()) as desk:
        yield desk


def local_blocks() -> list[Block]:
    return [each for each in BLOCKS if each.heading != ON_AWS and not each.text.startswith(OTHER_TARGET)]


@pytest.mark.parametrize("number", range(len(local_blocks())))
def test_each_block_prints_what_it_shows(desk: Desk, number: int) -> None:
    desk.run(local_blocks()[number])
