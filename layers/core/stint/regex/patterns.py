"""Regular expressions whose matching time grows with the text alone, so that none can stall a process.

The alternatives are followed side by side instead of one after another (Thompson's construction), and sets of states
are kept as they are met (R. Cox, "Regular Expression Matching Can Be Simple And Fast", 2007). The syntax is that of
`re` without what needs a way back: look-around, references to groups, atomic groups and inline flags.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from stint.regex.syntax import Assertion, Char, Choice, Node, Repeat, Series, parse

MOST_STATES = 2000
MOST_REMEMBERED = 500_000
"""Numbers of states kept in memory, some 30 MB at the most."""

Situation = tuple[frozenset[int], str, str, bool]
"""The states, what was before, the next character, and whether that is the last."""

Move = tuple[frozenset[int], int | None]
"""The states that follow, and the pattern that was found."""


class TooComplex(ValueError):
    """A pattern has too many states."""


@dataclass(slots=True)
class State:
    """A place in the patterns. Without `atom`, `assertion` or `entry` it leads on to all of `follow` at once."""

    follow: list[int] = field(default_factory=list)
    atom: re.Pattern[str] | None = None
    assertion: str = ""
    entry: int | None = None


class Patterns:
    """Several patterns, searched for in one pass."""

    def __init__(self, patterns: Sequence[str], *, ignore_case: bool = False) -> None:
        """Compile the patterns.

        Raises:
            ValueError: a pattern is broken, uses what is left out here, or has too many states; the error's
                second argument is its place in the list.
        """
        self._flags = re.IGNORECASE if ignore_case else re.NOFLAG
        self._states: list[State] = []
        starts = []
        for entry, pattern in enumerate(patterns):
            try:
                starts.append(self._enter(parse(pattern), self._add(State(entry=entry))))
            except (ValueError, re.error) as error:
                raise ValueError(str(error), entry) from None
        self._starts = frozenset(starts)
        self._known: dict[Situation, Move] = {}
        self._sets: dict[frozenset[int], frozenset[int]] = {}
        self._size = 0

    def search(self, text: str, until: float = float("inf")) -> int | None:
        """Find the first place where a pattern matches; give the pattern's place in the list.

        Raises:
            TimeoutError: the monotonic clock reached `until`.
        """
        states, before, last = self._starts, "start", len(text) - 1
        for place, char in enumerate(text):
            situation = (states, before, char, place == last)
            if (move := self._known.get(situation)) is None:
                if time.monotonic() >= until:
                    raise TimeoutError
                move = self._learn(situation)
            states, entry = move
            if entry is not None:
                return entry
            before = "word" if is_word(char) else "other"
        return self._move(states, before, "", True)[1]

    def _learn(self, situation: Situation) -> Move:
        """Find what follows a situation, and remember it in a memory of bounded size."""
        states, entry = self._move(*situation)
        if self._size + len(states) > MOST_REMEMBERED:
            self._known, self._sets, self._size = {}, {}, 0
        self._size += len(states) + 10
        states = self._sets.setdefault(states, states)
        self._known[situation] = (states, entry)
        return states, entry

    def _move(self, states: frozenset[int], before: str, char: str, final: bool) -> Move:
        """Read one character, or the end: give the states that follow, and a pattern that ends in front of it."""
        reached, entries = self._reach(states, before, char, final)
        if entries:
            return states, min(entries)
        moved = {follow for state in reached if char and matches(state, char) for follow in state.follow}
        return self._starts | moved, None

    def _reach(self, states: frozenset[int], before: str, char: str, final: bool) -> tuple[list[State], list[int]]:
        """Follow what needs no character, up to the states that need one and the patterns that are complete."""
        reached, entries, seen, waiting = [], [], set(states), list(states)
        while waiting:
            state = self._states[waiting.pop()]
            if state.entry is not None:
                entries.append(state.entry)
            elif state.atom is not None:
                reached.append(state)
            elif not state.assertion or holds(state.assertion, before, char, final):
                waiting += [follow for follow in state.follow if follow not in seen]
                seen.update(state.follow)
        return reached, entries

    def _add(self, state: State) -> int:
        if len(self._states) >= MOST_STATES:
            raise TooComplex("the patterns are too large: shorten them, or their counted repetitions")
        self._states.append(state)
        return len(self._states) - 1

    def _enter(self, node: Node, follow: int) -> int:
        """Add the states of a node, which lead on to `follow`; give the one to begin with."""
        match node:
            case Char(text=text):
                return self._add(State([follow], atom=re.compile(text, self._flags)))
            case Assertion(kind=kind):
                return self._add(State([follow], assertion=kind))
            case Series(parts=parts):
                for part in reversed(parts):
                    follow = self._enter(part, follow)
                return follow
            case Choice(options=options):
                return self._add(State([self._enter(option, follow) for option in options]))
            case Repeat():
                return self._enter_repeat(node, follow)

    def _enter_repeat(self, node: Repeat, follow: int) -> int:
        if node.most is None:
            loop = self._add(State())
            self._states[loop].follow = [self._enter(node.part, loop), follow]
            follow = loop
        else:
            end = follow
            for _ in range(node.most - node.least):
                follow = self._add(State([self._enter(node.part, follow), end]))
        for _ in range(node.least):
            entered = self._enter(node.part, follow)
            if entered == follow:  # the part is empty
                break
            follow = entered
        return follow


def matches(state: State, char: str) -> bool:
    return state.atom is not None and state.atom.match(char) is not None


def is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def holds(assertion: str, before: str, char: str, final: bool) -> bool:
    """Tell whether an assertion holds between what was before and the next character; `final`: none follows that."""
    match assertion:
        case "^" | r"\A":
            return before == "start"
        case r"\Z":
            return not char
        case "$":
            return not char or (final and char == "\n")
        case _:
            edge = (before == "word") is not (bool(char) and is_word(char))
            return edge is (assertion == r"\b")
