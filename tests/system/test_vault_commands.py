"""The commands of docs/vaults.md, run as printed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.servers.ports import free_port
from tests.system.printed_commands import Desk, read_blocks

COMMANDS = [block for block in read_blocks(ROOT / "docs" / "vaults.md") if block.language == "sh"]

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = Path(tmp_path_factory.mktemp("vaults")) / "stint"
    with Desk(folder, free_port()) as desk:
        yield desk


def test_a_credential_is_stored_as_the_page_shows(desk: Desk) -> None:
    assert COMMANDS[-1].output is not None
    for block in COMMANDS:
        desk.run(block)
