"""Directives to the scripted model, one per line of a user message."""

import re
from typing import Literal

from stint.dataclasses import dataclass, field
from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError, ModelOverloaded, RateLimited

LINE = re.compile(r"^[ \t]*(think|say|refuse|call|fail|slow|long|cut|filter|repeat):(.*)$", re.MULTILINE)
COUNT = re.compile(r"(?:after )?(\d{1,12}(?:\.\d{1,9})?)(?: words?| seconds?| times?)?")
MOST_WORDS = 20_000
"""Maximum words of a `long:` answer."""
MOST_CALLS = 500
"""Maximum calls of one answer. Further ones are ignored."""

FailureMode = Literal["before", "throttled", "overloaded", "context"]


@dataclass(slots=True)
class Directives:
    """The directives of a message. `rest` is the message without them."""

    rest: str = ""
    thinks: str | None = None
    says: str | None = None
    refuses: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    failure: FailureMode | None = None
    fail_after: int | None = None
    slow: float = 0.0
    cut: int | None = None
    filter_after: int | None = None
    repeat: int = 1


def parse_directives(text: str) -> Directives:
    """Read the directives of a message.

    Raises:
        InvalidRequest: a directive's value cannot be read.
    """
    directives = Directives(rest=LINE.sub("", text).strip())
    for keyword, value in LINE.findall(text):
        _apply(directives, keyword, value.strip(" \t"))
    return directives


def _apply(directives: Directives, keyword: str, value: str) -> None:
    match keyword, value:
        case "think", _:
            thought, bar, answer = value.partition("|")
            directives.thinks = append_line(directives.thinks, thought.strip())
            if bar:
                directives.says = append_line(directives.says, answer.strip())
        case "say", _:
            directives.says = append_line(directives.says, value)
        case "refuse", _:
            directives.refuses = append_line(directives.refuses, value)
        case "call", _ if len(directives.calls) < MOST_CALLS:
            name, _, arguments = value.partition(" ")
            directives.calls.append((name, arguments.strip()))
        case "call", _:
            pass
        case "fail", "before" | "throttled" | "overloaded" | "context":
            directives.failure = value
        case "fail", _:
            directives.fail_after = int(_number(keyword, value))
        case "slow", _:
            directives.slow = _number(keyword, value)
        case "long", _:
            directives.says = " ".join(f"word{n}" for n in range(1, min(int(_number(keyword, value)), MOST_WORDS) + 1))
        case "cut", _:
            directives.cut = int(_number(keyword, value))
        case "filter", _:
            directives.filter_after = int(_number(keyword, value))
        case _:
            directives.repeat = int(_number(keyword, value))


def raise_failure(directives: Directives) -> None:
    """Raise the failure that a message requests before the first word."""
    match directives.failure:
        case "before":
            raise ModelError("The scripted model failed before its first word, as the message asked")
        case "throttled":
            raise RateLimited("The scripted model is throttled, as the message asked", retry_after=1.0)
        case "overloaded":
            raise ModelOverloaded("The scripted model is overloaded, as the message asked", retry_after=1.0)
        case "context":
            message = "The messages exceed the scripted model's context, as the message asked"
            raise ContextLengthExceeded(message, param="messages")


def append_line(text: str | None, line: str) -> str:
    """Add a line to a text, if there is one."""
    return line if text is None else f"{text}\n{line}"


def _number(keyword: str, value: str) -> float:
    match = COUNT.fullmatch(value)
    if match is None:
        raise InvalidRequest(
            f"The scripted model does not understand {keyword + ': ' + value!r}: "
            "write for example `fail: before`, `fail: after 3 words`, `slow: 5`, `long: 1000 words`, `cut: 10 words`",
            param="messages",
        )
    return float(match[1])
