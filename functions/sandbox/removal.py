"""Removal of what code has written."""

import os
import secrets
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path


def clear(folder: Path) -> None:
    """Remove what is in a folder."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            remove(path)


def remove(path: Path) -> None:
    """Remove a file or folder, however deep, also one that its owner made unreadable. Links are not followed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
            empty(path)
            path.rmdir()
        else:
            path.unlink()


def empty(path: Path) -> None:
    """Remove everything in a folder. Folders are moved up into it one by one, so that no path becomes too long."""
    prefix, numbers = f".removed-{secrets.token_hex(8)}-", count()
    root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def flatten(folder: int) -> list[str]:
        """Remove the files in a folder, move its folders up, and return their new names."""
        moved = []
        for name in os.listdir(folder):
            with suppress(OSError):
                if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                    os.unlink(name, dir_fd=folder)
                    continue
                os.chmod(name, 0o700, dir_fd=folder)
                moved.append(f"{prefix}{next(numbers)}")
                os.rename(name, moved[-1], src_dir_fd=folder, dst_dir_fd=root)
        return moved

    try:
        left = flatten(root)
        while left:
            name = left.pop()
            with suppress(OSError):
                folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
                try:
                    left += flatten(folder)
                finally:
                    os.close(folder)
                os.rmdir(name, dir_fd=root)
    finally:
        os.close(root)
