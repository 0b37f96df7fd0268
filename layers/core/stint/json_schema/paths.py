"""Places in a JSON value."""

from typing import Any

Path = tuple[Any, str | int] | None
"""The path to the parent and the name or index in it; None is the whole value."""

LONGEST_PATH = 200


def write_path(path: Path) -> str:
    """Write a path as `$.friends[1].name`, shortened where it is long."""
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part[:LONGEST_PATH]}")
    return shorten("$" + "".join(reversed(parts)))


def shorten(text: str) -> str:
    return text if len(text) <= LONGEST_PATH else f"{text[:120]} ... {text[-60:]}"
