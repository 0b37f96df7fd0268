"""The commands of docs/traces.md, run as printed, except those that deploy a stack."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.servers.ports import free_port
from tests.system.printed_commands import Desk, read_blocks

BLOCKS = [block for block in read_blocks(ROOT / "docs" / "traces.md") if "make deploy" not in block.text]
RECEIVER, PORT = "docs/examples/trace_receiver.py", "4318"

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Yield a desk whose receiver listens on a free port."""
    port, folder = str(free_port()), Path(tmp_path_factory.mktemp("traces")) / "stint"
    with Desk(folder, free_port()) as desk:
        (desk.folder / "receiver.py").write_text((ROOT / RECEIVER).read_text().replace(PORT, port))
        desk.replaced = {RECEIVER: "receiver.py", PORT: port}
        desk.start_server("make run")
        yield desk


def test_traces_are_read_and_sent_as_the_page_shows(desk: Desk) -> None:
    assert len([block for block in BLOCKS if block.output is not None]) == 2
    for block in BLOCKS:
        desk.run(block)
