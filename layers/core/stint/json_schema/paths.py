"""Paths in a JSON value."""

from typing import Any

Path = tuple[Any, str | int] | None
"""The parent's path and the name or index in the parent; None is the whole value."""

LONGEST_PATH = 200


def write_path(path: Path) -> str:
    """Write a path as `$.friends[1].name`, shortened if it is long."""
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part[:LONGEST_PATH]}")
    return shorten("$" + "".join(reversed(parts)))


def shorten(text: str) -> str:
    return text if len(text) <= LONGEST_PATH else f"{text[:120]} ... {text[-60:]}"
