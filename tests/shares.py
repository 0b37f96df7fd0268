"""With `--dist each`, each worker imports and runs its own share of the test files.

With the other distributions, each worker imports all tests, which takes ten seconds of CPU time for thousands of tests.
"""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import EachScheduling  # type: ignore[import-untyped]  # it has no types


class FileShares:
    """Shares of about equal size, made in the order in which files are found, which is the same in all workers."""

    def __init__(self, count: int) -> None:
        self.sizes = [0] * count
        self.number = cache(self._add)

    def _add(self, path: Path) -> int:
        """Add a file to the smallest share, and return the number of the share."""
        number = self.sizes.index(min(self.sizes))
        self.sizes[number] += path.stat().st_size
        return number


SHARES = pytest.StashKey[FileShares]()


class ShareScheduling(EachScheduling):  # type: ignore[misc]  # it has no types
    """Let each worker run what it collected."""

    def schedule(self) -> None:
        session: Any = self.config.pluginmanager.get_plugin("session")
        session.testscollected = sum(len(collected) for collected in self.node2collection.values())
        super().schedule()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> EachScheduling | None:
    return ShareScheduling(config, log) if config.getoption("dist") == "each" else None


def pytest_configure_node(node: Any) -> None:
    """Number the shares. `--max-worker-restart 0` is needed, since a worker that replaces another would have none."""
    if node.config.getoption("dist") == "each":
        node.workerinput["share"] = int(node.gateway.id.removeprefix("gw"))


@pytest.hookimpl(trylast=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the files of other workers, except those that are ignored for another reason before."""
    return (collection_path.match("test_*.py") and not _is_mine(collection_path, config)) or None


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Drop the tests of files that are named on the command line, which are never ignored, and another worker's."""
    items[:] = [item for item in items if _is_mine(item.path, config)]


def _is_mine(file: Path, config: pytest.Config) -> bool:
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if "share" not in worker:
        return True
    shares = config.stash.setdefault(SHARES, FileShares(worker["workercount"]))
    return bool(shares.number(file) == worker["share"])
