"""What references in a schema lead to. Nothing is fetched: it is in the schema itself."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urljoin


@dataclass(slots=True, eq=False)
class Resource:
    """The part of a schema that references are relative to: the whole, or what has an `$id` of its own."""

    root: dict[str, Any]
    uri: str
    anchors: dict[str, dict[str, Any]] = field(default_factory=dict)
    dynamic: dict[str, dict[str, Any]] = field(default_factory=dict)


def join(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def look_up(fragment: str, resource: Resource) -> Any:
    """Return what a JSON pointer (RFC 6901) or an anchor leads to; None when it is nothing."""
    fragment = unquote(fragment)
    if fragment and not fragment.startswith("/"):
        return resource.anchors.get(fragment)
    found: Any = resource.root
    for part in fragment.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and len(name) < 7 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
