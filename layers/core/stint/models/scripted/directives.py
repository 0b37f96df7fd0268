"""Directives to the scripted model, one per line of a user message.

Tests and demos need behaviour that a model shows rarely: refusals, failures, slow words, an answer that is cut. A
request has no field for them, and a setting of the process would reach the calls of others. So they are in the message,
where every client can write them, and they are removed from what the model repeats. `Scripted` describes each of them.

A keyword that occurs again replaces the value before, except that the texts of `think`, `say` and `refuse`, and calls,
add up.
"""

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
    """The directives of a message."""

    rest: str = ""
    """The message without its directives."""
    thinks: str | None = None
    """The reasoning; None for the model's own."""
    says: str | None = None
    """The text of the answer; None for the model's own."""
    refuses: str | None = None
    """The text of a refusal; None for no refusal."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """The names of tools, each with the text of its arguments."""
    failure: FailureMode | None = None
    """The failure before the first word."""
    fail_after: int | None = None
    """The number of words before a failure."""
    slow: float = 0.0
    """Seconds before the first word."""
    cut: int | None = None
    """The number of words after which the answer ends as if its tokens were used up."""
    filter_after: int | None = None
    """The number of words after which the answer ends as if a content filter had ended it."""
    repeat: int = 1
    """The number of answers with these calls, before one with their results."""


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
