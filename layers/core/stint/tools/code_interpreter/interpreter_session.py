"""A session of AgentCore's code interpreter: the calls of its tools, which block the thread that makes them.

A run has three steps, which are tools of the session: the given files are written, the code is executed, and the files
that it wrote are read. The service does not say what the code wrote, so the folder is compared with what it had before:

    known before the run, not given    the service's own: ignored
    given, with the same content       unchanged: not returned
    given, and gone                    removed
    anything else                      written by the code, in the order of the names, up to the limits

Each answer is a stream of events of which any field may be missing.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from stint.dataclasses import dataclass, field
from stint.domain.limits import MAX_CODE_BYTES, MAX_CODE_FILES
from stint.tools.code_interpreter.files import is_file_name
from stint.tools.code_interpreter.runs import LONGEST_OUTPUT, RunFile, RunResult

LONGEST_FOLDER = 1_000
"""Maximum entries of the folder that are looked at."""


@dataclass(slots=True)
class Output:
    """The result of a call: the beginning of its output, and the items of its content."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    truncated: bool = False
    items: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, result: Mapping[str, Any]) -> None:
        """Add an event of the stream."""
        details, content = result.get("structuredContent") or {}, result.get("content") or []
        texts = "\n".join(str(item.get("text") or "") for item in content if item.get("type") == "text")
        # The structured content repeats the texts, so only one of them counts.
        stated = "stdout" in details or "stderr" in details
        failed = bool(result.get("isError"))
        self.stdout = self.cut(self.stdout + (details.get("stdout") or "" if stated else "" if failed else texts))
        self.stderr = self.cut(self.stderr + (details.get("stderr") or "" if stated else texts if failed else ""))
        self.exit_code = int(details.get("exitCode") or failed or self.exit_code)
        self.items += content[: LONGEST_FOLDER - len(self.items)]

    def cut(self, text: str) -> str:
        encoded = text.encode(errors="replace")
        self.truncated = self.truncated or len(encoded) > LONGEST_OUTPUT
        return encoded[:LONGEST_OUTPUT].decode(errors="ignore")


@dataclass(slots=True)
class InterpreterSession:
    """A session, whose folder has the names `known` besides `given` files before the code runs.

    Its methods raise the errors of botocore, and TimeoutError once `over` is set.
    """

    client: Any
    interpreter_id: str
    session_id: str
    given: Mapping[str, bytes]
    known: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def prepare(self) -> RunResult | None:
        """Write the given files. Return a refusal if they cannot be written."""
        if self.given:
            content = [{"path": name, "blob": body} for name, body in self.given.items()]
            written = self.invoke("writeFiles", {"content": content})
            if written.exit_code:
                return RunResult(refused=f"The files could not be copied to the code: {written.stderr[:500]}")
        self.known = {name for name, _ in self.list_files()} - self.given.keys()
        return None

    def execute(self, code: str) -> RunResult:
        """Run code, and return its output."""
        output = self.invoke("executeCode", {"code": code, "language": "python", "clearContext": True})
        return RunResult(
            stdout=output.stdout, stderr=output.stderr, exit_code=output.exit_code, truncated=output.truncated
        )

    def invoke(self, name: str, arguments: Mapping[str, Any]) -> Output:
        """Call a tool of the session, and return what its stream brings."""
        answer = self.client.invoke_code_interpreter(
            codeInterpreterIdentifier=self.interpreter_id,
            sessionId=self.session_id,
            name=name,
            arguments=arguments,
        )
        output = Output()
        with closing(answer["stream"]) as stream:
            for event in stream:
                output.add(event.get("result") or {})
                if self.over.is_set():
                    raise TimeoutError
        return output

    def list_files(self) -> list[tuple[str, bool]]:
        """Return the names in the folder, and whether each is a folder itself."""
        links = self.invoke("listFiles", {"directoryPath": ""}).items
        named = [(str(link.get("name") or link.get("uri") or "").rpartition("/")[2], link) for link in links]
        return [(name, link.get("description") == "Directory") for name, link in named if name]

    def collect_files(self, result: RunResult) -> RunResult:
        """Add the files that the code wrote or changed to a result, and return it."""
        listed = dict(self.list_files())
        room = MAX_CODE_BYTES
        for name, is_folder in sorted(listed.items()):
            if name.startswith(".") or name in self.known:
                continue
            content = None if is_folder or not is_file_name(name) else self.read_file(name)
            if content is not None and content == self.given.get(name):
                continue
            if content is None or len(content) > room or len(result.files) == MAX_CODE_FILES:
                result.omit(name)
                continue
            room -= len(content)
            result.files.append(RunFile.of(name, content))
        result.removed = sorted(self.given.keys() - listed.keys())
        return result

    def read_file(self, name: str) -> bytes | None:
        """Return the content of a file; None if it cannot be read."""
        read = self.invoke("readFiles", {"paths": [name]})
        return None if read.exit_code else content_of(read.items)


def content_of(items: Sequence[Mapping[str, Any]]) -> bytes | None:
    """Return the content in the resource of a result."""
    for item in items:
        resource = item.get("resource")
        if isinstance(resource, Mapping):
            blob, text = resource.get("blob"), resource.get("text")
            return bytes(blob) if blob is not None else str(text or "").encode(errors="replace")
    return None
