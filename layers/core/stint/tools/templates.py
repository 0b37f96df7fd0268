"""Templates: JSON values in which `{name}` is replaced by an argument of the call."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from typing import Any

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


class Absent(Enum):
    """The value of a placeholder whose argument was not sent."""

    ABSENT = "absent"
    """No argument: unlike null, which a model may send as one."""


def text_of(value: Any) -> str:
    """Return an argument as text: a text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def names_in(template: Any) -> Iterator[str]:
    """Return the names that occur as placeholders."""
    if isinstance(template, str):
        yield from PLACEHOLDER.findall(template)
    elif isinstance(template, dict | list):
        for part in template.values() if isinstance(template, dict) else template:
            yield from names_in(part)


def fill(template: Any, arguments: dict[str, Any], names: Collection[str]) -> Any:
    """Fill a template. `names` are the tool's parameters; other braces are unchanged.

    A text that is one placeholder becomes the argument, whatever its type; within a longer text, it becomes its text.
    If an argument was not sent, a field or entry that is its placeholder is omitted (a whole template becomes ABSENT),
    and within a longer text it becomes empty.
    """
    if isinstance(template, str):
        whole = PLACEHOLDER.fullmatch(template)
        if whole and whole[1] in names:
            return arguments.get(whole[1], Absent.ABSENT)
        return fill_text(template, arguments, names)
    if isinstance(template, dict):
        filled = {key: fill(part, arguments, names) for key, part in template.items()}
        return {key: part for key, part in filled.items() if part is not Absent.ABSENT}
    if isinstance(template, list):
        return [part for part in (fill(part, arguments, names) for part in template) if part is not Absent.ABSENT]
    return template


def fill_text(
    template: str,
    arguments: Mapping[str, Any],
    names: Collection[str],
    write: Callable[[Any], str] = text_of,
    absent: str = "",
) -> str:
    """Fill a text with arguments as `write` returns them."""

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in names:
            return found[0]
        return write(arguments[found[1]]) if found[1] in arguments else absent

    return PLACEHOLDER.sub(value_of, template)
