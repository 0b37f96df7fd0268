"""The folder `.stint`: the engine's state, the functions' logs, and the lock of its user."""

import fcntl
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from infra.local.engine import RunningEngine
from infra.local.errors import LocalCloudError


class State:
    """A state folder, locked by one process at a time. Entering raises LocalCloudError if another process has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = folder / "engine"
        self.logs = folder / "logs"
        self._lock = folder / "lock"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held = self._lock.open("a+")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = self._read()
            self._held.close()
            raise LocalCloudError(
                f"{self.folder} is in use by process {holder.get('pid', 'unknown')}"
                f" ({holder.get('url') or 'starting'}). Stop that process first"
            ) from error
        self._write({"pid": os.getpid()})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write({})
        self._held.close()

    def clear(self) -> None:
        """Delete all stored data."""
        for folder in (self.engine, self.logs):
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, url: str, engine: RunningEngine) -> None:
        """Write the address of the cloud that uses this folder, and the variables for commands that use its data."""
        environment = engine.variables()
        self._write({"pid": os.getpid(), "url": url, "engine": asdict(engine), "environment": environment})

    def published_engine(self) -> RunningEngine | None:
        """Return the engine of the cloud that uses this folder, or None if there is none or it is not ready."""
        if not self._lock.exists():
            return None
        with self._lock.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                engine = self._read().get("engine")
                return RunningEngine(**engine) if engine else None
        return None

    def _read(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._lock.read_text())
        except (OSError, ValueError):
            return {}
        return content

    def _write(self, content: dict[str, object]) -> None:
        self._held.seek(0)
        self._held.truncate()
        json.dump(content, self._held)
        self._held.flush()
