"""The memory of a process after an invocation."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.harness import proxy_event

from stint_runtime.client import Invocation
from stint_runtime.memory import Collector, Memory
from stint_runtime.scope import take_body

MEGABYTE = 1024 * 1024
PAGES = MEGABYTE // 4096


class Cycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def garbage() -> Iterator[Any]:
    """Yield a weak reference to an object that only a collection frees, without automatic ones."""
    gc.disable()
    yield weakref.ref(Cycle())
    gc.enable()


@pytest.fixture
def statm(tmp_path: Path) -> Path:
    path = tmp_path / "statm"
    use(path, 50)
    return path


def use(statm: Path, megabytes: int) -> None:
    statm.write_text(f"0 {megabytes * PAGES} 0 0 0 0 0")


def test_garbage_is_collected_once_the_process_has_grown(garbage: Any, statm: Path) -> None:
    collector = Collector(100 * MEGABYTE, str(statm))

    use(statm, 55)
    collector.collect()
    assert garbage() is not None

    use(statm, 56)
    collector.collect()
    assert garbage() is None


def test_memory_that_stays_leads_to_one_collection(statm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector(100 * MEGABYTE, str(statm))
    collections: list[None] = []
    monkeypatch.setattr(gc, "collect", lambda: collections.append(None))

    use(statm, 60)
    for _ in range(3):
        collector.collect()

    assert len(collections) == 1


def test_nothing_is_collected_where_the_memory_is_unknown(garbage: Any, tmp_path: Path) -> None:
    Collector(100 * MEGABYTE, str(tmp_path / "none")).collect()
    Collector(None).collect()

    assert garbage() is not None
    assert not Memory(1, str(tmp_path / "none")).is_over()


def test_neither_the_event_nor_the_invocation_keeps_the_body() -> None:
    invocation, event = Invocation("id", b"payload", {}, received_ms=0), proxy_event(body="text")

    assert (invocation.take_payload(), invocation.payload) == (b"payload", b"")
    assert (take_body(event), "body" in event) == (b"text", False)
