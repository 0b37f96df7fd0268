"""The commands of docs/tutorial.md, run as printed. tests/deploy runs those that deploy a stack."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.servers.ports import free_port
from tests.system.printed_commands import Block, Desk, read_blocks

ON_AWS = "8. On AWS"
PRINTED_URL, PRINTED_KEY = "https://abc123.execute-api.eu-west-1.amazonaws.com/prod", "stk_..."

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")


BLOCKS = read_blocks(ROOT / "docs" / "tutorial.md")


def local_blocks() -> list[Block]:
    return [each for each in BLOCKS if each.heading != ON_AWS]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with Desk(tmp_path_factory.mktemp("tutorial") / "stint", free_port()) as desk:
        yield desk


@pytest.mark.parametrize("number", range(len(local_blocks())))
def test_each_block_prints_what_it_shows(desk: Desk, number: int) -> None:
    desk.run(local_blocks()[number])


def test_the_request_to_a_stack_needs_only_its_address_and_a_key(tmp_path: Path) -> None:
    (block,) = (each for each in BLOCKS if PRINTED_URL in each.text)

    with Desk(tmp_path / "stint", port := free_port()) as desk:
        (key, *_) = re.findall(r"stk_\w+", desk.start_server("make run AUTH=on"))
        desk.replaced = {PRINTED_URL: f"http://127.0.0.1:{port}", PRINTED_KEY: key}
        desk.terminal.run(next(each.text for each in BLOCKS if each.text.startswith("BASE=")).partition("AGENT=")[0])
        answer = desk.run(block)

    assert "You said: Say hello." in answer
