"""Commands of a page, run as printed in a copy of this repository, whose files are links.

Blocks run in their order. Those of a shell share one bash, so that later ones see its variables, and a command that
fails ends it. `make run` starts in another terminal, and stops when the page starts it again. A block of Python is a
file that runs alone. If a block of text follows, the output must have this text, in which `...` stands for anything.

Only addresses differ from what is printed: the port of this machine, and those of `replaced`.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from infra.local.engine import ROOT
from tests.system.run_process import clean_shell

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$|^(#+ [^\n]*)$", re.MULTILINE | re.DOTALL)
FAILURE = re.compile(r'"error": ?\{|Traceback \(most recent call last\)')
STARTS = re.compile(r"^(?:[A-Z_]+=\S+ )*make run\b")
CLOSED = "http://127.0.0.1:9"
READY, LONGEST = "Ctrl-C stops", 240


@dataclass
class Block:
    """A block of code, and the output that the page shows."""

    language: str
    text: str
    heading: str
    output: str | None = None

    @property
    def shows_failure(self) -> bool:
        """Whether a request of this block fails on purpose."""
        return FAILURE.search(self.output or "") is not None

    @property
    def starts_server(self) -> bool:
        return self.language == "sh" and STARTS.match(self.text) is not None


def read_blocks(page: Path) -> list[Block]:
    """Return the blocks of a shell and of Python in a page."""
    blocks: list[Block] = []
    heading = ""
    for language, text, title in BLOCK.findall(page.read_text()):
        if title:
            heading = title.lstrip("# ")
        elif language == "text" and blocks:
            blocks[-1].output = text
        elif language in ("sh", "python"):
            blocks.append(Block(language, text, heading))
    return blocks


def matches(output: str, shown: str) -> bool:
    """Return whether an output has the shown text, whose `...` stands for anything and whose lines may be folded."""
    parts = [re.sub(r"\s+", " ", part).strip() for part in shown.split("...")]
    place, folded = 0, re.sub(r"\s+", " ", output)
    for part in parts:
        found = folded.replace(" ", "").find(part.replace(" ", ""), place)
        if found < 0:
            return False
        place = found + len(part.replace(" ", ""))
    return True


@dataclass
class Desk:
    """A copy of this repository, a terminal, and `make run` in another one. `replaced` are texts of the pages."""

    folder: Path
    port: int
    replaced: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    def __enter__(self) -> "Desk":
        self.folder.mkdir()
        for entry in ROOT.iterdir():
            if entry.name not in (".stint", ".git", ".aws-sam"):
                (self.folder / entry.name).symlink_to(entry)
        self.terminal = Terminal(["bash"], self.folder, self.environment)
        self.server: Terminal | None = None
        self.is_broken = False
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_server()
        self.terminal.stop(signal.SIGKILL)

    @property
    def environment(self) -> dict[str, str]:
        own = {"PORT": str(self.port), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        own |= {"HTTPS_PROXY": CLOSED, "NO_PROXY": "127.0.0.1,localhost"}  # no page calls a server of others
        return {**clean_shell(), **own, **self.variables}

    def run(self, block: Block) -> str:
        """Run a block and return its output. Fails if a command or a request fails, or prints something not shown."""
        assert not self.is_broken, "an earlier block of the page failed"
        self.is_broken = True
        text = self.replace(block.text)
        if block.starts_server:
            output = "".join(self.start_server(line) for line in text.splitlines())
        elif block.language == "python":
            (self.folder / "snippet.py").write_text(text)
            output = self.terminal.run("python snippet.py\n")
        else:
            output = self.terminal.run(text)
        assert block.shows_failure or not FAILURE.search(output), f"{block.text}\nprinted\n{output}"
        assert block.output is None or matches(output, self.replace(block.output)), f"{block.text}\nprinted\n{output}"
        self.is_broken = False
        return output

    def replace(self, text: str) -> str:
        for printed, actual in {"8321": str(self.port), **self.replaced}.items():
            text = text.replace(printed, actual)
        return text

    def start_server(self, command: str) -> str:
        """Stop the server, and start it with this command. Return what it printed."""
        self.stop_server()
        self.server = Terminal(["bash", "-c", command], self.folder, self.environment)
        return self.server.read_until(READY)

    def stop_server(self) -> None:
        if self.server is not None:
            self.server.stop(signal.SIGINT)
            self.server = None


class Terminal:
    """A process that reads commands, and whose output is read as it comes."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: SimpleQueue[str | None] = SimpleQueue()
        self.reader = Thread(target=self.read_output, daemon=True)
        self.reader.start()

    def read_output(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.put(line)
        self.lines.put(None)

    def run(self, text: str) -> str:
        """Run commands in a bash and return their output. Fails if one of them fails."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"set -eo pipefail\n{text}\necho; echo '-- done'\n")
        self.process.stdin.flush()
        return self.read_until("-- done").removesuffix("\n-- done\n")

    def read_until(self, end: str) -> str:
        """Return the output up to a line that contains a text. Fails if the process ends first, or says nothing."""
        return "".join(self.lines_until(end))

    def lines_until(self, end: str) -> Iterator[str]:
        seen = []
        while (line := self.next_line()) is not None:
            seen.append(line)
            yield line
            if end in line:
                return
        raise AssertionError(f"ended before {end!r}:\n{''.join(seen)}")

    def next_line(self) -> str | None:
        """Return the next line; None if the process has ended, whose background processes may keep its output open."""
        for _ in range(LONGEST):
            with contextlib.suppress(Empty):
                return self.lines.get(timeout=1)
            if self.process.poll() is not None:
                return None
        raise AssertionError(f"no output for {LONGEST} s")

    def stop(self, number: int) -> None:
        """Send a signal to the process and its children, as Ctrl-C does, and wait for the end."""
        with contextlib.suppress(ProcessLookupError):  # all have ended
            os.killpg(self.process.pid, number)
        self.process.wait(timeout=LONGEST)
        self.reader.join(timeout=LONGEST)
        assert self.process.stdin is not None
        self.process.stdin.close()
