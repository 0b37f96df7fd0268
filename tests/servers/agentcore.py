"""Fake code interpreter of Bedrock AgentCore: sessions with a folder, in which code really runs.

It answers `InvokeCodeInterpreter` as `application/vnd.amazon.eventstream`.
"""

import base64
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers.converse_stream import EVENT_STREAM, error, event
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

INTERPRETER = "aws.codeinterpreter.v1"
START, INVOKE, STOP = (
    f"/code-interpreters/{INTERPRETER}/{path}" for path in ("sessions/start", "tools/invoke", "sessions/stop")
)
SESSION = "x-amzn-code-interpreter-session-id"


class AgentCoreServer(ScriptedHTTPServer):
    """The server. `sessions` has the folders of those that run; `started` counts all."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.sessions: dict[str, Path] = {}
        self.started = 0
        self.overrides: dict[str, Callable[[], Reply]] = {}

    def answer(self, received: Received) -> Reply:
        path, body = urlsplit(received.path), received.json() if received.body else {}
        if path.path == START:
            return self.start(body)
        if path.path == STOP:
            [session_id] = parse_qs(path.query)["sessionId"]
            shutil.rmtree(self.sessions.pop(session_id))
            if override := self.overrides.get("stop"):
                return override()
            return as_json({"codeInterpreterIdentifier": INTERPRETER, "sessionId": session_id, "lastUpdatedAt": 1})
        folder = self.sessions.get(received.headers.get(SESSION, ""))
        if path.path != INVOKE or folder is None:
            return error(404, "ResourceNotFoundException", "There is no such session.")
        if override := self.overrides.get(body["name"]):
            return override()
        tools: dict[str, Callable[[Path, dict[str, Any]], dict[str, Any]]] = {
            "writeFiles": write,
            "executeCode": execute,
            "listFiles": list_folder,
            "readFiles": read,
        }
        return result(tools[body["name"]](folder, body["arguments"]))

    def start(self, body: dict[str, Any]) -> Reply:
        if override := self.overrides.get("start"):
            return override()
        assert 0 < body["sessionTimeoutSeconds"] <= 28_800
        self.started += 1
        session_id = f"01SESSION{self.started}"
        self.sessions[session_id] = Path(tempfile.mkdtemp())
        (self.sessions[session_id] / "log").mkdir()  # the service has folders of its own
        return as_json({"codeInterpreterIdentifier": INTERPRETER, "sessionId": session_id, "createdAt": 1})


def write(folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    for each in arguments["content"]:
        (folder / each["path"]).write_bytes(base64.b64decode(each["blob"]))
    return {"content": [{"type": "text", "text": "Successfully wrote all files"}], "isError": False}


def execute(folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    assert arguments["language"] == "python"
    done = subprocess.run(
        [sys.executable, "-c", arguments["code"]], cwd=folder, capture_output=True, text=True, check=False
    )
    details = {"stdout": done.stdout, "stderr": done.stderr, "exitCode": done.returncode, "executionTime": 0.1}
    failed = done.returncode != 0
    text = [{"type": "text", "text": done.stderr if failed else done.stdout}]
    return {"content": text, "structuredContent": details, "isError": failed}


def list_folder(folder: Path, _arguments: dict[str, Any]) -> dict[str, Any]:
    links = [
        {"type": "resource_link", "uri": f"file:///{path.name}", "name": path.name, "description": "Directory"}
        if path.is_dir()
        else {
            "type": "resource_link",
            "uri": f"file:///{path.name}",
            "name": path.name,
            "description": "File",
            "size": path.stat().st_size,
        }
        for path in sorted(folder.iterdir())
    ]
    return {"content": links, "isError": False}


def read(folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    resources = []
    for name in arguments["paths"]:
        body = (folder / name).read_bytes()
        try:
            content = {"type": "text", "text": body.decode()}
        except UnicodeDecodeError:
            content = {"type": "blob", "blob": base64.b64encode(body).decode()}
        resources.append({"type": "resource", "resource": {"uri": f"file:///{name}", **content}})
    return {"content": resources, "isError": False}


def result(*results: dict[str, Any]) -> Reply:
    """Return a stream with these events."""
    return Reply(tuple(event("result", each) for each in results), headers=EVENT_STREAM)


def as_json(body: dict[str, Any]) -> Reply:
    return Reply((json.dumps(body).encode(),), headers={"Content-Type": "application/json"})
