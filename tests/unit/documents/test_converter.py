import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.documents.pdf_files import make_pdf

from stint.documents.conversion import Job
from stint.documents.converter import Converter
from stint.documents.limits import Limits
from stint.documents.mime_types import Kind
from stint.documents.reader_process import ProcessEnded, ReaderProcess
from stint.documents.served import Unreadable

ROOT = Path(__file__).parents[3]
COSTLY = b"<br>" * 2_400_000
"""HTML that takes several seconds and has no text."""


async def convert(body: bytes, kind: Kind = Kind.html, limits: Limits | None = None) -> str:
    async with Converter(limits or Limits()) as converter:
        return await converter.convert(kind, body, "text/html", None)


@asynccontextmanager
async def started(limits: Limits) -> AsyncIterator[ReaderProcess]:
    process = await ReaderProcess.start(limits)
    yield process
    await process.stop()


@pytest.fixture
def started_one() -> asyncio.Event:
    """Set when a process was started."""
    return asyncio.Event()


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch, started_one: asyncio.Event) -> list[ReaderProcess]:
    """The processes that are started."""
    made: list[ReaderProcess] = []
    start = ReaderProcess.start

    async def note(limits: Limits) -> ReaderProcess:
        made.append(await start(limits))
        started_one.set()
        return made[-1]

    monkeypatch.setattr(ReaderProcess, "start", note)
    return made


def has_ended(process: ReaderProcess) -> bool:
    return process._process.returncode is not None


async def test_pdfs_and_large_pages_are_read_by_one_process_that_ends_with_the_request(
    processes: list[ReaderProcess],
) -> None:
    async with Converter(Limits()) as converter:
        texts = [
            await converter.convert(Kind.pdf, make_pdf("one"), "application/pdf", None),
            await converter.convert(Kind.html, b"<p>two" + b" " * 100_000, "text/html", None),
            await converter.convert(Kind.pdf, make_pdf("three"), "application/pdf", None),
        ]
        assert not has_ended(processes[0])

    assert texts == ["one", "two", "three"]
    assert len(processes) == 1
    assert has_ended(processes[0])


async def test_small_pages_and_plain_text_need_no_process(processes: list[ReaderProcess]) -> None:
    assert await convert(b"<p>small") == "small"
    assert await convert(b"x" * 400_000, Kind.text) == "x" * 400_000

    assert processes == []


async def test_many_small_pages_are_together_a_large_one(processes: list[ReaderProcess]) -> None:
    async with Converter(Limits(small_bytes=30)) as converter:
        texts = [await converter.convert(Kind.html, f"<p>page {n}".encode(), "text/html", None) for n in range(6)]

    assert texts == [f"page {n}" for n in range(6)]
    assert len(processes) == 1


async def test_what_is_unreadable_leaves_the_process_to_the_next_document(processes: list[ReaderProcess]) -> None:
    async with Converter(Limits()) as converter:
        with pytest.raises(Unreadable, match="the PDF is invalid"):
            await converter.convert(Kind.pdf, b"%PDF-1.4", "application/pdf", None)
        assert await converter.convert(Kind.pdf, make_pdf("fine"), "application/pdf", None) == "fine"

    assert len(processes) == 1


async def test_cpu_time_is_limited_for_all_documents_of_a_request(processes: list[ReaderProcess]) -> None:
    async with Converter(Limits(cpu_seconds=1)) as converter:
        for kind, body in ((Kind.html, COSTLY), (Kind.pdf, make_pdf("fine"))):
            with pytest.raises(Unreadable, match=r"more than 1 s of CPU time.*: send a part, or its text") as caught:
                await converter.convert(kind, body, "text/html", None)
            assert caught.value.code == "document_too_large"

    assert len(processes) == 1


async def test_memory_is_limited_and_the_process_survives(processes: list[ReaderProcess]) -> None:
    wide = "<p title='🙂".encode() + b"x" * 2_000_000 + b"'>wide"
    async with Converter(Limits(memory_bytes=8_000_000)) as converter:
        with pytest.raises(Unreadable, match="more than 8,000,000 bytes of memory: send a part") as caught:
            await converter.convert(Kind.html, wide, "text/html", None)
        assert await converter.convert(Kind.html, b"<p>next" + b" " * 100_000, "text/html", None) == "next"

    assert caught.value.code == "document_too_large"
    assert await convert(wide) == "wide"


async def test_the_wait_for_a_document_is_limited(processes: list[ReaderProcess]) -> None:
    with pytest.raises(Unreadable, match=r"more than 0\.2 s: send a part"):
        await convert(COSTLY, limits=Limits(seconds=0.2))

    assert has_ended(processes[0])


async def test_a_caller_that_is_gone_leaves_no_process(
    processes: list[ReaderProcess], started_one: asyncio.Event
) -> None:
    reading = asyncio.create_task(convert(COSTLY))
    await started_one.wait()
    reading.cancel()

    with pytest.raises(asyncio.CancelledError):
        await reading

    assert has_ended(processes[0])


async def test_a_process_that_somebody_else_ends_is_told(
    processes: list[ReaderProcess], started_one: asyncio.Event
) -> None:
    reading = asyncio.create_task(convert(COSTLY))
    await started_one.wait()
    os.kill(processes[0]._process.pid, signal.SIGKILL)

    with pytest.raises(Unreadable, match=r"ended with status -9: send a part, or its text"):
        await reading


@pytest.mark.parametrize("answer", ["b''", "b'{}\\n'", "b'no json\\n'", "b'{\"length\": 999999999}\\n'"])
async def test_an_answer_that_is_none_ends_the_process(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    program = f"import sys; sys.stdout.buffer.write({answer}); sys.stdout.flush()"
    monkeypatch.setattr("stint.documents.reader_process.PROGRAM", program)

    async with started(Limits()) as process:
        with pytest.raises(ProcessEnded):
            await process.convert(Job("html", "text/html", None, 1, 100, 400), b"x")


def test_the_process_finds_the_package_where_only_sys_path_says_where_it_is(tmp_path: Path) -> None:
    paths = [str(ROOT / "layers" / "core"), *(path for path in sys.path if "site-packages" in path)]
    (tmp_path / "html.py").write_text("raise ImportError('a file of the caller')")
    program = (
        f"import sys; sys.path += {paths!r}; sys.path.remove('')\n"
        "import asyncio; from stint.documents.converter import Converter; from stint.documents.limits import Limits\n"
        "from stint.documents.mime_types import Kind\n"
        "async def main():\n"
        "    async with Converter(Limits()) as converter:\n"
        "        return await converter.convert(Kind.pdf, sys.stdin.buffer.read(), 'application/pdf', None)\n"
        "print(asyncio.run(main()))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={}, input=make_pdf("found"), capture_output=True, check=False
    )

    assert (done.stdout, done.stderr) == (b"found\n", b"")


def test_the_process_imports_little() -> None:
    code = "import sys, stint.documents.process; print(*sys.modules)"
    environment = {"PYTHONPATH": str(ROOT / "layers" / "core")}

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)

    loaded = set(done.stdout.split())
    assert not loaded & {"asyncio", "pydantic", "pypdf", "httpx", "boto3", "ssl", "socket"}
