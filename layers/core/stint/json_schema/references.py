"""References inside a schema. Nothing is fetched."""

from typing import Any
from urllib.parse import unquote, urljoin

from stint.dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Resource:
    """The schema, or a part of it with its own `$id`, which references are relative to."""

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
    """Return the value that a JSON pointer (RFC 6901) or an anchor refers to; None if there is none."""
    fragment = unquote(fragment)
    if fragment and not fragment.startswith("/"):
        return resource.anchors.get(fragment)
    found: Any = resource.root
    for part in fragment.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        # `int` of a long text of digits takes quadratic time.
        elif isinstance(found, list) and name.isdecimal() and len(name) < 7 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
