"""The client of October 2024 in a process of its own, because it needs an older httpx."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from infra.local.engine import ROOT

PYTHON = ROOT / ".venv-october" / "bin" / "python"
PYTHON_0_0_40 = ROOT / ".venv-october-0.0.40" / "bin" / "python"
CONFIG = {"model": "scripted/demo", "instructions": "Be brief.", "enable_session_persistence": True}


@dataclass
class Refused(Exception):
    """The server refused a call with a status."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def message(self) -> str:
        return str(self.body["error"]["message"])


class OctoberClient:
    """Calls methods of the client by their names."""

    def __init__(self, url: str, python: Path = PYTHON) -> None:
        driver = Path(__file__).with_name("driver.py")
        self.process = subprocess.Popen(
            [str(python), str(driver), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"NO_PROXY": "*", "PATH": ""},
        )

    def call(self, method: str, *, strict: bool = False, **arguments: Any) -> Any:
        """Return what a method of the client returns, as JSON. Raises Refused for an error with a status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"method": method, "strict": strict, "arguments": arguments}), file=self.process.stdin)
        self.process.stdin.flush()
        outcome = json.loads(self.process.stdout.readline())
        if "status" in outcome:
            raise Refused(**outcome)
        assert "returned" in outcome, outcome
        return outcome["returned"]

    def list_methods(self) -> list[str]:
        """Return the names of all methods of the client."""
        return [str(name) for name in self.call("")]

    def create_agent(self, **config: Any) -> str:
        """Create an agent, and return its id."""
        created: dict[str, str] = self.call("agents.create", strict=True, agent_config={**CONFIG, **config})
        return created["agent_id"]

    def open_session(self, **config: Any) -> tuple[str, str]:
        """Create an agent with a session, and return their ids."""
        agent_id = self.create_agent(**config)
        created = self.call("agents.session.create", strict=True, agent_id=agent_id, session_name="s")
        return agent_id, created["session_id"]

    def say(self, session: tuple[str, str], text: str, **more: Any) -> list[dict[str, Any]]:
        """Create a turn with a user message, and return the payloads of its events."""
        return self.send(session, {"role": "user", "content": text}, **more)

    def send(self, session: tuple[str, str], *messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        """Create a turn, and return the payloads of its events."""
        agent_id, session_id = session
        chunks = self.call(
            "agents.turn.create",
            strict=True,
            agent_id=agent_id,
            session_id=session_id,
            messages=list(messages),
            stream=True,
            **more,
        )
        return [chunk["event"]["payload"] for chunk in chunks]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self.process.stdin is not None
        with self.process:
            self.process.stdin.close()


def forms(payloads: list[dict[str, Any]]) -> list[str]:
    """Return the types of events, and of their steps; successive equal ones once."""
    named = [" ".join(filter(None, (each["event_type"], each.get("step_type")))) for each in payloads]
    return [name for place, name in enumerate(named) if place == 0 or named[place - 1] != name]
