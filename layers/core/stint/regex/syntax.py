"""The syntax of regular expressions that `stint.regex.patterns` supports.

It is the syntax of Python's `re` without features that need backtracking. Groups are named as in `re` or ECMAScript.

A reader by recursive descent: choices of series of repeated parts. What it does not know is refused with its place,
never read in another way than `re` would: a deny list that means something else than its author thinks would fail in
silence. Groups do not capture, and `?` after a repetition has no effect, since only whether a text matches is asked.
"""

import re

from stint.dataclasses import dataclass
from stint.regex.charset import Charset

LONGEST_PATTERN = 2000
"""Maximum characters of a pattern."""
DEEPEST_GROUP = 30
"""Maximum levels of groups. Each is a level of recursion here and in the construction of the states."""
MOST_REPEATS = 1000
"""Largest count of a repetition. Its part has states for each."""

GROUP = re.compile(r"\((?:\?:|\?P?<[^\W\d]\w{0,99}>|(?!\?))")
ASSERTION = re.compile(r"\\[bBAZ]|\^|\$")
COUNT = re.compile(r"(?:[*+?]|\{([0-9]*)(?:(,)([0-9]*))?\})")
ESCAPE = re.compile(r"\\(?:([dDwWsS])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4}))")
CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}
NOT_A_LINE = Charset(((10, 10),), negated=True)


@dataclass(frozen=True, slots=True)
class Char:
    """One character of a set."""

    chars: Charset


@dataclass(frozen=True, slots=True)
class Assertion:
    r"""An anchor: ^, $, \A, \Z, \b or \B."""

    kind: str


@dataclass(frozen=True, slots=True)
class Series:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part that is repeated `least` to `most` times; without `most`, any number of times."""

    part: "Node"
    least: int
    most: int | None


Node = Char | Assertion | Series | Choice | Repeat


def parse(pattern: str) -> Node:
    """Parse a pattern.

    Raises:
        ValueError: it is not a pattern, is too long, or uses a feature that cannot be matched in linear time.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"it has {len(pattern)} characters; at most {LONGEST_PATTERN} are allowed")
    reader = PatternReader(pattern)
    node = reader.read_choice(0)
    if reader.place < len(pattern):
        raise reader.fault("this ')' has no matching '('")
    return node


@dataclass(slots=True)
class PatternReader:
    """A reader at a position in a pattern."""

    pattern: str
    place: int = 0

    def read_choice(self, depth: int) -> Node:
        if depth > DEEPEST_GROUP:
            raise ValueError(f"its groups are nested deeper than {DEEPEST_GROUP} levels")
        options = [self.read_series(depth)]
        while self.accept("|"):
            options.append(self.read_series(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def read_series(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.place < len(self.pattern) and self.pattern[self.place] not in "|)":
            parts.append(self.read_repeats(self.read_one(depth)))
        return Series(tuple(parts))

    def read_one(self, depth: int) -> Node:
        if self.read_count() is not None:
            raise self.fault("there is nothing to repeat")
        if self.next() == "(":
            return self.read_group(depth)
        if found := ASSERTION.match(self.pattern, self.place):
            self.place = found.end()
            return Assertion(found[0])
        if self.accept("["):
            return Char(self.read_set())
        if self.accept("."):
            return Char(NOT_A_LINE)
        return Char(self.read_char())

    def read_group(self, depth: int) -> Node:
        begin, found = self.place, GROUP.match(self.pattern, self.place)
        if found is None:
            raise self.refusal()
        self.place = found.end()
        node = self.read_choice(depth + 1)
        if not self.accept(")"):
            self.place = begin
            raise self.fault("the group has no closing ')'")
        return node

    def read_repeats(self, node: Node) -> Node:
        count = self.read_count()
        if count is None:
            return node
        if isinstance(node, Assertion):
            raise self.fault("there is nothing to repeat")
        begin, (end, least, most) = self.place, count
        if max(least, most or 0) > MOST_REPEATS:
            raise ValueError(f"{self.pattern[begin:end][:20]} repeats more than {MOST_REPEATS} times")
        if most is not None and most < least:
            raise self.fault("the minimum number of repetitions is above the maximum")
        self.place = end
        if self.next() == "+":
            raise self.refusal()
        # A lazy repetition finds the same texts.
        self.accept("?")
        if self.read_count() is not None:
            raise self.fault("a repetition is repeated")
        return Repeat(node, least, most)

    def read_count(self) -> tuple[int, int, int | None] | None:
        """Return the end of the repetition at this position, and its least and most counts."""
        found = COUNT.match(self.pattern, self.place)
        if found is None or found[0] == "{}":
            return None
        if found[0][0] != "{":
            return found.end(), int(found[0] == "+"), 1 if found[0] == "?" else None
        least, most = found[1], found[3] if found[2] else found[1]
        return found.end(), int(least or 0), int(most) if most else None

    def read_set(self) -> Charset:
        """Read a set of characters after its `[`."""
        begin, negated = self.place - 1, self.accept("^")
        ranges: list[tuple[int, int]] = []
        kinds = ""
        first = True
        while first or self.next() != "]":
            first = False
            if self.place >= len(self.pattern):
                self.place = begin
                raise self.fault("the set has no closing ']'")
            low = self.read_char(inside=True)
            if self.next() == "-" and self.pattern[self.place + 1 : self.place + 2] not in ("", "]"):
                self.place += 1
                ranges.append(self.range_of(low, self.read_char(inside=True)))
            else:
                # A `-` that is first or last in a set is a character.
                ranges += low.ranges
                kinds += low.kinds
        self.place += 1
        return Charset.of(ranges, kinds, negated=negated)

    def range_of(self, low: Charset, high: Charset) -> tuple[int, int]:
        if low.kinds or high.kinds or low.ranges[0] > high.ranges[0]:
            raise self.fault("this range is empty")
        return low.ranges[0][0], high.ranges[0][1]

    def read_char(self, *, inside: bool = False) -> Charset:
        r"""Read a character or an escape. `inside` a set, \b is a backspace."""
        if self.next() != "\\":
            self.place += 1
            return single(self.pattern[self.place - 1])
        if found := ESCAPE.match(self.pattern, self.place):
            self.place = found.end()
            code = found[2] or found[3] or found[4]
            return single(chr(int(code, 16))) if code else Charset(kinds=found[1])
        char = self.pattern[self.place + 1 : self.place + 2]
        if not char:
            raise self.fault("there is nothing after the backslash")
        if inside and char == "b":
            char = "\b"
        elif char == "0" and not self.pattern[self.place + 2 : self.place + 3].isdecimal():
            char = "\0"
        elif char.isascii() and char.isalnum() and char not in CONTROLS:
            raise self.refusal()
        self.place += 2
        return single(CONTROLS.get(char, char))

    def next(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def accept(self, text: str) -> bool:
        """Skip a text if it is next, and return whether it was."""
        if not self.pattern.startswith(text, self.place):
            return False
        self.place += len(text)
        return True

    def fault(self, problem: str) -> ValueError:
        return ValueError(f"{problem}, at character {self.place}: {self.pattern[self.place : self.place + 10]!r}")

    def refusal(self) -> ValueError:
        return self.fault(
            "look-around, back-references, atomic groups, possessive repetitions, inline flags and "
            "unknown escapes are not supported"
        )


def single(char: str) -> Charset:
    return Charset(((ord(char), ord(char)),))
