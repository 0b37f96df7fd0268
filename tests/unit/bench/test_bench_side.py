"""A tree's system that is run for a comparison."""

import sys
from pathlib import Path

import pytest
from infra.bench.base import Tree
from infra.bench.side import running_side

PROGRAM = """
import signal
import time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell makes its background processes ignore
print("serves http://127.0.0.1:1", flush=True)
time.sleep(60)
"""


async def test_an_error_in_a_measurement_is_raised_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "infra" / "local").mkdir(parents=True)
    (tmp_path / "infra" / "local" / "__main__.py").write_text(PROGRAM)

    with pytest.raises(BrokenPipeError):
        async with running_side(Tree("other", tmp_path, Path(sys.executable))):
            raise BrokenPipeError
