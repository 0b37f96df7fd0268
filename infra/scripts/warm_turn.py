"""Program that prints, as JSON, how many middleware a streaming app has, and how many files a warm turn passes.

It runs with the interpreter and the search path of the tree that it measures. A turn of the scripted model, with a
stream, runs twice in one process, on the local AWS engine. The files are those below the folder in its argument in
which a function is called during the second turn. Threads that libraries had before the first turn are not seen.
"""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx

SETTINGS = {
    "STINT_AUTH": "none",
    "STINT_SCRIPTED_MODELS": "true",
    "STINT_SCRIPTED_WORD_SECONDS": "0",
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    "POWERTOOLS_SERVICE_NAME": "measure",
    "POWERTOOLS_METRICS_DISABLED": "true",
}
SECONDS = 60


class CallTracer:
    """The code of the functions that all threads call. `seen` is emptied before what is to be measured."""

    def __init__(self) -> None:
        self.seen: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self.seen.add(frame.f_code)

    def files(self, folder: Path) -> set[str]:
        """Return the files below a folder whose functions were called, without what runs at an import."""
        called = {code.co_filename for code in frozenset(self.seen) if code.co_name != "<module>"}
        return {name for name in called if Path(name).resolve().is_relative_to(folder)}


def main(folder: str) -> None:
    from infra.local.engine import Engine  # noqa: PLC0415 - the engine of the tree that is measured

    with Engine() as engine:
        os.environ.update(engine.running.variables() | SETTINGS)
        tracer = CallTracer()
        threading.setprofile(tracer)
        sys.setprofile(tracer)
        try:
            result = asyncio.run(measure(tracer, Path(folder).resolve()))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    print(json.dumps(result))


async def measure(tracer: CallTracer, folder: Path) -> dict[str, int]:
    """Return the number of middleware, and of files of a warm turn."""
    from functions.agents.app import app as agents  # noqa: PLC0415 - they read the settings
    from functions.turns.app import app as turns  # noqa: PLC0415

    config = {"agent_config": {"model": "scripted/demo", "instructions": ""}}
    agent = f"/v1/agents/{(await post(agents, '/v1/agents', config))['agent_id']}"
    session = await post(agents, f"{agent}/session", {"session_name": "warm"})
    path = f"{agent}/session/{session['session_id']}/turn"
    for _ in range(2):
        tracer.seen.clear()
        await post(turns, path, {"messages": [{"role": "user", "content": "Hello"}], "stream": True})
    return {"middleware": len(turns.user_middleware), "files": len(tracer.files(folder))}


async def post(app: Any, path: str, body: dict[str, Any]) -> Any:
    """Send a request to an app. Return what it answers: of a stream, the text. Raises RuntimeError if it is refused."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://measure") as client:
        answer = await client.post(path, json=body, timeout=SECONDS)
    failed = answer.is_error or "turn_failed" in answer.text
    if failed:
        raise RuntimeError(f"POST {path}: {answer.status_code} {answer.text[:500]}")
    return answer.text if body.get("stream") else answer.json()


if __name__ == "__main__":
    main(sys.argv[1])
