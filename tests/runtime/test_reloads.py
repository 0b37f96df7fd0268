"""A function that reloads runs the code of its files; others run that of their start."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from infra.local import source_version as versions
from infra.local.source_version import source_version
from tests.runtime.harness import Gate, Service, Start, running

SOURCE = """
import socket
def handler(event, context):
    if "port" in event:
        with socket.create_connection(("127.0.0.1", event["port"])) as gate:
            gate.sendall(b"in\\n")
            gate.recv(1)
    return VERSION
"""
Code = Callable[[str], Path]


def edit(folder: Path, source: str) -> None:
    """Change a file, whose time differs even if the clock of the file system is coarse."""
    file = folder / "app.py"
    before = file.stat().st_mtime_ns
    file.write_text(source)
    os.utime(file, ns=(before + 2_000_000_000, before + 2_000_000_000))


async def answer(function: Service, event: Any = None) -> bytes:
    invocation = await function.start(event or {}, stream=False)
    return await invocation.read() if invocation.error is None else invocation.error.payload


async def test_the_next_invocation_runs_an_edited_file_in_one_new_process(service: Start, code: Code) -> None:
    folder = code(f"{SOURCE}VERSION = 1\n")
    function = await service("app.handler", code=folder, wrapper=None, reloads=True)

    first, old = await answer(function), function.functions.processes("f")
    same = await answer(function), function.functions.processes("f")
    edit(folder, f"{SOURCE}VERSION = 22\n")
    second, new = await answer(function), function.functions.processes("f")

    assert (first, second, same) == (b"1", b"22", (b"1", old))
    assert len(new) == 1
    assert new != old
    assert not any(running(pid) for pid in old)


async def test_a_running_invocation_ends_in_the_old_process(service: Start, code: Code, gate: Gate) -> None:
    folder = code(f"{SOURCE}VERSION = 1\n")
    function = await service("app.handler", code=folder, wrapper=None, reloads=True)
    waiting = asyncio.create_task(answer(function, {"port": gate.port}))
    await gate.reached("in")
    edit(folder, f"{SOURCE}VERSION = 22\n")
    quick = await answer(function)
    await gate.open("in")

    assert (quick, await waiting) == (b"22", b"1")


async def test_an_edit_that_breaks_the_code_is_an_error_until_it_is_fixed(service: Start, code: Code) -> None:
    folder = code(f"{SOURCE}VERSION = 1\n")
    function = await service("app.handler", code=folder, wrapper=None, reloads=True)
    await answer(function)

    edit(folder, "def handler(:\n")
    broken = await function.start({}, stream=False)
    await broken.read()
    edit(folder, f"{SOURCE}VERSION = 333\n")

    assert broken.error
    assert broken.error.type == "Runtime.UserCodeSyntaxError"
    assert await answer(function) == b"333"


async def test_without_reloads_a_process_is_kept(service: Start, code: Code) -> None:
    folder = code(f"{SOURCE}VERSION = 1\n")
    function = await service("app.handler", code=folder, wrapper=None)
    await answer(function)

    edit(folder, f"{SOURCE}VERSION = 22\n")

    assert await answer(function) == b"1"


def test_the_version_depends_on_the_files_of_the_source_alone(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("1")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "gone").symlink_to(tmp_path / "missing")
    first = source_version(tmp_path)
    for name in (".git", "node_modules", "__pycache__", ".venv", "venv"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("1")
    ignored = source_version(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "data.json").write_text("{}")
    added = source_version(tmp_path)
    (tmp_path / "inner" / "data.json").unlink()

    assert first == ignored == source_version(tmp_path)
    assert added != first
    assert source_version(tmp_path / "missing") == source_version(tmp_path / "nowhere")


def test_a_large_folder_is_looked_at_in_part_from_its_outer_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "MOST", 10)
    (tmp_path / "packages" / "deep").mkdir(parents=True)
    for number in range(20):
        (tmp_path / "packages" / "deep" / f"{number}.py").write_text("")
    (tmp_path / "app.py").write_text("1")
    first = source_version(tmp_path)
    (tmp_path / "app.py").write_text("22")

    assert source_version(tmp_path) != first
