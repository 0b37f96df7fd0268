"""The prompt template of the llm query generator: a part of Jinja that takes time linear in its input.

It has `{{ EXPRESSION }}`, one level of `{% for NAME in messages %}...{% endfor %}` and `{# comments #}`. An expression
is `messages`, `messages[N]`, the loop's variable or `loop.index`, with the filters `join`, `first`, `last`, `length`
and `trim`. A minus beside a tag removes the white space there. A message is its text, which is also its `content`; its
`role` is `user`. Both may be written as `["content"]`, too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stint.domain.errors import InvalidRequest

TEMPLATE_TAG = re.compile(r"(\{\{[^{}]*+\}\}|\{%(?:[^{}%]|%(?!\}))*+%\}|\{#(?:[^{}#]|#(?!\}))*+#\})")
"""A tag. It contains no braces, so that a text with many beginnings and no end takes linear time."""
FOR = re.compile(r"for\s+([A-Za-z_]\w*)\s+in\s+messages")
FIELD = r"(?:\.(content|role)\b|\[\s*(['\"])(content|role)\4\s*\])"
NAME = re.compile(rf"([A-Za-z_]\w*(?:\.index)?)(?:\[\s*(-?\d{{1,6}})\s*\])?{FIELD}?")
FILTER = re.compile(r"\s*\|\s*(?:(first|last|length|trim)\b|join\b(?:\(\s*(?:'([^']*)'|\"([^\"]*)\")?\s*\))?)")
MAX_PROMPT_LENGTH = 200_000
MAX_WORK = 2_000_000
"""Maximum characters that all expressions have and read, each as often as it is evaluated."""

Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loop:
    """The body of a loop over the messages."""

    variable: str
    parts: Sequence[str]


def fill_prompt_template(template: str, messages: Sequence[str]) -> str:
    """Return the prompt for messages.

    Raises:
        InvalidRequest: the template uses something else of Jinja, or it or the prompt is too long.
    """
    size, work, texts = 0, 0, []
    joined = len(messages) + sum(len(message) for message in messages)
    for part, scope in pieces(parse(template), messages):
        work += len(part) + (joined if "join" in part else 0)
        if work > MAX_WORK:
            raise unusable(f"reads more than {MAX_WORK:,} characters for these messages")
        text = fill(part, scope)
        size += len(text)
        if size > MAX_PROMPT_LENGTH:
            raise unusable(f"makes a prompt of more than {MAX_PROMPT_LENGTH:,} characters")
        texts.append(text)
    return "".join(texts)


def pieces(nodes: Sequence[str | Loop], messages: Sequence[str]) -> Iterator[tuple[str, Scope]]:
    """Yield the texts and expressions of a prompt, each with its variables."""
    for node in nodes:
        if isinstance(node, str):
            yield node, {"messages": messages}
            continue
        for index, message in enumerate(messages, 1):
            scope = {"messages": messages, node.variable: message, "loop.index": str(index)}
            yield from ((part, scope) for part in node.parts)


def parse(template: str) -> list[str | Loop]:
    """Return the texts, expressions and loops of a template."""
    nodes: list[str | Loop] = []
    loop: tuple[str, list[str]] | None = None
    for part in trimmed(TEMPLATE_TAG.split(template)):
        if not part.startswith("{%"):
            (nodes if loop is None else loop[1]).append(part)
            continue
        statement = part[2:-2].strip("-").strip()
        begin = FOR.fullmatch(statement)
        if begin and loop is None and begin[1] not in ("messages", "loop"):
            loop = (begin[1], [])
        elif statement == "endfor" and loop is not None:
            nodes.append(Loop(*loop))
            loop = None
        else:
            raise unusable(f"has the statement {statement[:80]!r}, which is not supported there")
    if loop is not None:
        raise unusable("has a for without an endfor")
    return nodes


def trimmed(parts: Sequence[str]) -> Iterator[str]:
    """Yield parts without comments and without the white space beside a minus."""
    for place, part in enumerate(parts):
        is_tag = TEMPLATE_TAG.fullmatch(part) is not None
        if is_tag and part.startswith("{#"):
            continue
        if not is_tag:
            if any(mark in part for mark in ("{{", "{%", "{#", "%}")):
                raise unusable("has a tag without an end")
            if place and parts[place - 1][-3:-2] == "-":
                part = part.lstrip()
            if place + 1 < len(parts) and parts[place + 1][2:3] == "-":
                part = part.rstrip()
        yield part


def fill(part: str, scope: Scope) -> str:
    """Return a text as it is, and the value of an expression."""
    if not part.startswith("{{"):
        return part
    value = evaluate(part[2:-2].strip("-").strip(), scope)
    return value if isinstance(value, str) else str(list(value))


def field_of_message(name: str, value: str | Sequence[str], expression: str) -> str:
    """Return a field of a message. Raises InvalidRequest for the list of messages."""
    if not isinstance(value, str):
        raise unknown(expression)
    return "user" if name == "role" else value


def evaluate(expression: str, scope: Scope) -> str | Sequence[str]:
    """Return the value of an expression: a text or the list of messages."""
    found = NAME.match(expression)
    if found is None or found[1] not in scope or (found[2] and found[1] != "messages"):
        raise unknown(expression)
    value: str | Sequence[str] = scope[found[1]]
    if found[2]:
        place = int(found[2])
        value = value[place] if -len(value) <= place < len(value) else ""
    if name := found[3] or found[5]:
        value = field_of_message(name, value, expression)
    end = found.end()
    while each := FILTER.match(expression, end):
        value, end = apply_filter(each, value, expression), each.end()
    if expression[end:].strip():
        raise unknown(expression)
    return value


def apply_filter(found: re.Match[str], value: str | Sequence[str], expression: str) -> str | Sequence[str]:
    """Return the value after a filter."""
    name, is_text = found[1] or "join", isinstance(value, str)
    if name != "length" and is_text is not (name == "trim"):
        raise unknown(expression)
    match name:
        case "first" | "last":
            return value[0 if name == "first" else -1] if value else ""
        case "length":
            return str(len(value))
        case "trim":
            return str(value).strip()
    return (found[2] or found[3] or "").join(value)


def unknown(expression: str) -> InvalidRequest:
    return unusable(f"has the unknown expression {expression[:80]!r}")


def unusable(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"The template of the query generator {problem}. It may contain texts, {{{{ messages[N] }}}}, "
        "{{ messages | join(', ') }} and {% for m in messages %}{{ m }}{% endfor %}.",
        code="invalid_query_template",
        param="query_config.query_generator_config.template",
    )
