"""The version of the source files in a folder, so that an edited tool runs its new code."""

import os
from collections import deque
from pathlib import Path

MOST = 2_000
"""Entries that are looked at. Those of the outer folders come first: a function's own files, before its packages."""
_SKIPPED = ("__pycache__", "node_modules", "venv")


def source_version(folder: Path) -> int:
    """Return a number that changes with the names, times and sizes of the files below a folder.

    Hidden files, and folders of packages and bytecode, are left out. Links to folders are not followed.
    """
    found: list[tuple[str, int, int]] = []
    folders, left = deque([str(folder)]), MOST
    while folders and left > 0:
        try:
            with os.scandir(folders.popleft()) as entries:
                for entry, _ in zip(entries, range(left), strict=False):
                    left -= 1
                    if entry.name.startswith(".") or entry.name in _SKIPPED:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file():
                        status = entry.stat()
                        found.append((entry.path, status.st_mtime_ns, status.st_size))
        except OSError:
            continue  # a file or folder that is being replaced
    return hash(tuple(sorted(found)))
