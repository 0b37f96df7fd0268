"""The syntax of regular expressions, as far as `stint.regex.patterns` matches them."""

import re
from dataclasses import dataclass

LONGEST_PATTERN = 500
DEEPEST_GROUP = 30
MOST_REPEATS = 1000

CHAR = re.compile(
    r"""\\[dDwWsS] | \\[nrtfva] | \\x[0-9a-fA-F]{2} | \\u[0-9a-fA-F]{4} | \\[^0-9A-Za-z]
    | \[ \^? \]? (?: \\. | [^\]\\] )* \]
    | [^\\()\[{|*+?^$]""",
    re.VERBOSE | re.DOTALL,
)
ASSERTION = re.compile(r"\\[bBAZ]|\^|\$")
COUNT = re.compile(r"([*+?]|\{(\d+)(,(\d*))?\}|\{,(\d+)\})\??")


@dataclass(frozen=True, slots=True)
class Char:
    """One character; `text` is a pattern of `re` for it."""

    text: str


@dataclass(frozen=True, slots=True)
class Assertion:
    r"""A place: ^, $, \A, \Z, \b or \B."""

    kind: str


@dataclass(frozen=True, slots=True)
class Series:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, `least` to `most` times; without `most`, any number of times."""

    part: "Node"
    least: int
    most: int | None


Node = Char | Assertion | Series | Choice | Repeat


def parse(pattern: str) -> Node:
    """Parse a pattern.

    Raises:
        ValueError: it is too long, or uses what cannot be matched in a time that grows with the text.
        re.error: it is no pattern.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"it has {len(pattern)} characters, {LONGEST_PATTERN} are the most")
    re.compile(pattern)
    reader = Reader(pattern)
    node = reader.read_choice(0)
    if reader.place < len(pattern):
        raise reader.refusal()
    return node


@dataclass(slots=True)
class Reader:
    """A place in a pattern."""

    pattern: str
    place: int = 0

    def read_choice(self, depth: int) -> Node:
        if depth > DEEPEST_GROUP:
            raise ValueError(f"its groups are nested deeper than {DEEPEST_GROUP} levels")
        options = [self.read_series(depth)]
        while self.take("|"):
            options.append(self.read_series(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def read_series(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.place < len(self.pattern) and self.pattern[self.place] not in "|)":
            parts.append(self.read_repeats(self.read_one(depth)))
        return Series(tuple(parts))

    def read_one(self, depth: int) -> Node:
        if self.pattern.startswith("(?", self.place) and not self.pattern.startswith("(?:", self.place):
            raise self.refusal()
        if self.take("(?:") or self.take("("):
            node = self.read_choice(depth + 1)
            self.take(")")
            return node
        if found := ASSERTION.match(self.pattern, self.place):
            self.place = found.end()
            return Assertion(found[0])
        if found := CHAR.match(self.pattern, self.place):
            self.place = found.end()
            return Char(found[0])
        raise self.refusal()

    def read_repeats(self, node: Node) -> Node:
        found = COUNT.match(self.pattern, self.place)
        if found is None:
            return node
        self.place = found.end()
        if self.pattern.startswith("+", self.place):
            raise self.refusal()
        least, most = read_count(found)
        if max(least, most or 0) > MOST_REPEATS:
            raise ValueError(f"{found[0]} repeats more than {MOST_REPEATS} times")
        return Repeat(node, least, most)

    def take(self, text: str) -> bool:
        """Step over a text, if it is next."""
        if not self.pattern.startswith(text, self.place):
            return False
        self.place += len(text)
        return True

    def refusal(self) -> ValueError:
        found = self.pattern[self.place : self.place + 10]
        return ValueError(
            f"{found!r} at character {self.place} is not supported (look-around, references to groups, named and "
            "atomic groups and inline flags are not; literal braces want a backslash)"
        )


def read_count(found: re.Match[str]) -> tuple[int, int | None]:
    """Give the least and the most times that a repetition admits."""
    kind, first, comma, second, up_to = found.groups()
    if up_to is not None:
        return 0, int(up_to)
    if kind in ("*", "+", "?"):
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[kind]
    least = int(first)
    if comma is None:
        return least, least
    return least, int(second) if second else None
