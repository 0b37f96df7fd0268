"""The commands of docs/webhooks.md, run as printed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.servers.ports import free_port
from tests.system.printed_commands import Desk, read_blocks

BLOCKS = read_blocks(ROOT / "docs" / "webhooks.md")
RECEIVER, ADDRESS = "docs/examples/webhook_receiver.py", "127.0.0.1:8000"

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Yield a desk whose receiver listens on a free port."""
    port, folder = free_port(), Path(tmp_path_factory.mktemp("webhooks")) / "stint"
    with Desk(folder, free_port()) as desk:
        (desk.folder / "receiver.py").write_text((ROOT / RECEIVER).read_text().replace("8000", str(port)))
        desk.replaced = {RECEIVER: "receiver.py", ADDRESS: f"127.0.0.1:{port}"}
        yield desk


def test_the_receiver_prints_what_the_page_shows(desk: Desk) -> None:
    assert [block.language for block in BLOCKS] == ["sh", "sh"]
    for block in BLOCKS:
        desk.run(block)
