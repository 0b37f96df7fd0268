"""The folder `.stint`: the engine's state, the functions' logs, and the lock of its user.

The engine has the lock, too, until it has saved its state and ended. So a cloud that is started after the last one was
killed does not read a state that is still being saved.
"""

import asyncio
import fcntl
import json
import os
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from infra.local.engine import RunningEngine
from infra.local.errors import LocalCloudError

SAVE_SECONDS = 15.0
"""Maximum seconds for which a start waits for the engine of a cloud that was killed."""
PAUSE_SECONDS = 0.05


class State:
    """A state folder, locked by one process at a time. Entering raises LocalCloudError if another process has it.

    `other` is the command or the variable that selects another folder, for this error.
    """

    def __init__(self, folder: Path, other: str = "STATE=other") -> None:
        self.folder = folder
        self._other = other
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
            pid, url = holder.get("pid"), holder.get("url")
            # The engine has inherited the lock, so it is held although the process that wrote this has ended.
            if pid is not None and not is_running(pid):
                raise LocalCloudError(
                    f"{self.folder} is in use: the engine of process {pid}, which was killed, still saves its state."
                    " Start again in a few seconds"
                ) from error
            raise LocalCloudError(
                f"{self.folder} is in use by process {pid or 'unknown'} ({url or 'starting'})."
                f" Stop that process first, or use another folder: {self._other}"
            ) from error
        self._write({"pid": os.getpid()})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write({})
        self._held.close()

    @property
    def lock(self) -> int:
        """Return the descriptor of the locked file, for the engine."""
        return self._held.fileno()

    async def wait_for_engine(self) -> None:
        """Wait until the engine of a cloud that was killed has ended, for SAVE_SECONDS at most."""
        for _ in range(round(SAVE_SECONDS / PAUSE_SECONDS)):
            # Another cloud runs: waiting does not help, and entering says so.
            if is_running(self._read().get("pid")) or not self._is_locked():
                return
            await asyncio.sleep(PAUSE_SECONDS)

    def saved_at(self) -> datetime | None:
        """Return when the engine saved its state, or None if it has not."""
        saved = self.engine / "state" / "dynamodb.json"
        return datetime.fromtimestamp(saved.stat().st_mtime, UTC) if saved.exists() else None

    def clear(self) -> bool:
        """Delete all stored data, and return whether there was some."""
        was_stored = self.engine.exists()
        for folder in (self.engine, self.logs):
            shutil.rmtree(folder, ignore_errors=True)
        return was_stored

    def publish(self, url: str, engine: RunningEngine) -> None:
        """Write the address of the cloud that uses this folder, and the variables for commands that use its data."""
        environment = engine.variables()
        self._write({"pid": os.getpid(), "url": url, "engine": asdict(engine), "environment": environment})

    def published_engine(self) -> RunningEngine | None:
        """Return the engine of the cloud that uses this folder, or None if there is none or it is not ready."""
        found = self._read()
        if not found.get("engine") or not is_running(found.get("pid")) or not self._is_locked():
            return None
        return RunningEngine(**found["engine"])

    def _is_locked(self) -> bool:
        """Return whether a process uses this folder."""
        if not self._lock.exists():
            return False
        with self._lock.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

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


def is_running(pid: int | None) -> bool:
    """Return whether a process has not ended; False without an id."""
    try:
        os.kill(pid or 0, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid is not None
