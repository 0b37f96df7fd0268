r"""Regular expressions whose matching time is linear in the text, so that no pattern can stall a process.

Alternatives are followed in parallel instead of one after another (Thompson's construction). Sets of states are cached
when they are first reached (R. Cox, "Regular Expression Matching Can Be Simple And Fast", 2007).

A pattern becomes states, at most MOST_STATES for all patterns together. After each character, the search is in a set of
them, which also contains the first states: so a match can begin anywhere, and the text is read once. What follows a set
and a letter depends on nothing else, so it is computed once (`_learn`) and then looked up (`moves`).

  part of a set   is                                                  why it belongs to the key of the cache
  states          where the patterns are                              -
  before          `start`, `word` or `other`: the last character      `^` and `\b` depend on it
  entry           the pattern that has matched, or None               it ends the search

The last character and the end of the text are not cached, because `$` also holds before a newline that ends the text.

The number of different sets can grow with the text, up to one for each character. Two limits hold for this: the cache
is emptied when it has too many, and a budget counts steps, about a microsecond each.

Threads share an instance. They may compute the same set twice, or empty the cache while another one searches. Both cost
only time: of a set, only its `moves` change.

docs/decisions.md, entry 43, has the reasons.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from stint.dataclasses import dataclass, field
from stint.regex.budget import Budget
from stint.regex.charset import Charset, is_word, variants_of
from stint.regex.syntax import Assertion, Char, Choice, Node, Repeat, Series, parse

MOST_STATES = 2000
"""Maximum states of all patterns together. A counted repetition has its part once for each count."""
MOST_REMEMBERED = 50_000
"""State numbers to cache, at most about 5 MB."""
CHARS_PER_STEP = 10
"""Characters that are looked up in the time of one step."""
PIECE = 10_000
"""Characters to map to letters at a time, so that the budget is checked often."""


MOST_KNOWN = 30_000
"""Code points to cache, about 3 MB. A text in one language has fewer."""


class Alphabet(dict[int, str]):
    """A map from code points to letters, for `str.translate`. The letter with number n is `chr(n)`."""

    def __init__(self, charsets: Iterable[Charset], *, ignore_case: bool) -> None:
        super().__init__()
        self.ignore_case = ignore_case
        self.looked_up = 0
        """The number of code points that were looked up; each costs `price` steps."""
        self.price = 6 if ignore_case else 2
        self.samples: dict[int, str] = {}
        """One character for each number."""
        self._numbers: dict[tuple[object, ...], int] = {}
        ranges = {each for charset in charsets for each in charset.ranges}
        self._edges = sorted({edge for low, high in ranges for edge in (low, high + 1)})

    def __missing__(self, code: int) -> str:
        self.looked_up += 1
        char = chr(code)
        places = {bisect_right(self._edges, ord(each)) for each in self.variants_of(char)}
        # Two characters with the same signature lead to the same states from every set, so one letter stands for both.
        signature = (frozenset(places), is_word(char), char.isdecimal(), char.isspace())
        number = self._numbers.setdefault(signature, len(self._numbers))
        self.samples.setdefault(number, char)
        if len(self) < MOST_KNOWN:
            self[code] = chr(number)
        return chr(number)

    def variants_of(self, char: str) -> Iterable[str]:
        return variants_of(char) if self.ignore_case else (char,)


class TooComplex(ValueError):
    """A pattern has too many states."""


@dataclass(slots=True)
class State:
    """A state of the automaton. `chars` is the number of a set of characters, `entry` that of a complete pattern.

    A state without either, and without an assertion, leads to all of `follow` at once.
    """

    follow: list[int] = field(default_factory=list)
    chars: int | None = None
    assertion: str = ""
    entry: int | None = None


@dataclass(slots=True, eq=False)
class StateSet:
    """The states that a text leads to, the kind of its last character, and the pattern that was found, if any."""

    states: frozenset[int]
    before: str
    entry: int | None = None
    moves: dict[str, "StateSet"] = field(default_factory=dict)


class Patterns:
    """Several patterns that are searched for in one pass. Safe for threads."""

    def __init__(self, patterns: Sequence[str], *, ignore_case: bool = False) -> None:
        """Compile the patterns.

        Raises:
            ValueError: a pattern is invalid, uses an unsupported feature, or has too many states. The error's
                second argument is its index in the list.
        """
        self._states: list[State] = []
        self._charsets: dict[Charset, int] = {}
        starts = []
        for entry, pattern in enumerate(patterns):
            try:
                starts.append(self._enter(parse(pattern), self._add(State(entry=entry))))
            except ValueError as error:
                raise ValueError(str(error), entry) from None
        self._starts = frozenset(starts)
        self._alphabet = Alphabet(self._charsets, ignore_case=ignore_case)
        self._known: dict[tuple[frozenset[int], str, int | None], StateSet] = {}
        self._forget()

    @property
    def size(self) -> int:
        """Return the number of states of all patterns."""
        return len(self._states)

    def matches(self, text: str, budget: Budget) -> bool:
        """Return whether a pattern matches anywhere in a text; see `search`."""
        return self.search(text, budget) is not None

    def search(self, text: str, budget: Budget) -> int | None:
        """Find the first match in a text, and return the index of its pattern.

        Raises:
            StepLimitExceeded: the text leads to too many sets of states.
        """
        found = self._start
        for letter in self._letters(text[:-1], budget):
            following = found.moves.get(letter)
            if following is None:
                following = self._learn(found, letter, budget)
            if following.entry is not None:
                return following.entry
            found = following
        # Apart from the others, because of `$`.
        if text:
            found = self._move(found, text[-1], budget, final=True)
            if found.entry is not None:
                return found.entry
        return self._move(found, "", budget, final=True).entry

    def _letters(self, text: str, budget: Budget) -> Iterator[str]:
        """Yield the letters of a text, piece by piece."""
        budget.spend(1)
        for begin in range(0, len(text), PIECE):
            known = self._alphabet.looked_up
            letters = text[begin : begin + PIECE].translate(self._alphabet)
            budget.spend(len(letters) // CHARS_PER_STEP + self._alphabet.price * (self._alphabet.looked_up - known))
            yield from letters

    def _learn(self, known: StateSet, letter: str, budget: Budget) -> StateSet:
        """Compute what follows a set of states, and put it into a cache of bounded size."""
        found = self._move(known, self._alphabet.samples[ord(letter)], budget, final=False)
        key = (found.states, found.before, found.entry)
        if key not in self._known:
            self._remembered += len(found.states)
        if self._remembered > MOST_REMEMBERED:
            self._forget()
        # A move takes memory, too, about that of ten numbers.
        self._remembered += 10
        found = self._known.setdefault(key, found)
        known.moves[letter] = found
        return found

    def _forget(self) -> None:
        for known in self._known.values():
            known.moves.clear()  # they refer to each other, and only the garbage collector would free them
        self._known = {}
        self._remembered = 0
        self._start = StateSet(self._starts, "start")

    def _move(self, known: StateSet, char: str, budget: Budget, *, final: bool) -> StateSet:
        """Read one character, or the end. Return the states that follow, or a pattern that ends before it."""
        reached, entries = self._reach(known, char, budget, final=final)
        if entries:
            return StateSet(frozenset(), "other", min(entries))
        wanted = {state.chars for state in reached} if char else set()
        variants = tuple(self._alphabet.variants_of(char))
        holding = {
            number for chars, number in self._charsets.items() if number in wanted and chars.holds(char, variants)
        }
        moved = {follow for state in reached if state.chars in holding for follow in state.follow}
        # The first states are in every set, so that a match can begin after this character.
        return StateSet(self._starts | moved, "word" if is_word(char) else "other")

    def _reach(self, known: StateSet, char: str, budget: Budget, *, final: bool) -> tuple[list[State], list[int]]:
        """Follow the moves that need no character, to the states that need one and to complete patterns."""
        reached, entries, seen, waiting = [], [], set(known.states), list(known.states)
        while waiting:
            state = self._states[waiting.pop()]
            if state.entry is not None:
                entries.append(state.entry)
            elif state.chars is not None:
                reached.append(state)
            elif not state.assertion or holds(state.assertion, known.before, char, final):
                waiting += [follow for follow in state.follow if follow not in seen]
                seen.update(state.follow)
        # The work of a set is in proportion to its states. Only sets that are not in the cache come here.
        budget.spend(10 + len(seen))
        return reached, entries

    def _add(self, state: State) -> int:
        if len(self._states) >= MOST_STATES:
            raise TooComplex("the patterns are too large: shorten them, or their counted repetitions")
        self._states.append(state)
        return len(self._states) - 1

    def _enter(self, node: Node, follow: int) -> int:
        """Add the states of a node, which lead to `follow`. Return the first one."""
        match node:
            case Char(chars=chars):
                return self._add(State([follow], chars=self._charsets.setdefault(chars, len(self._charsets))))
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
            # An empty part repeated is still empty, and would only add states.
            if entered == follow:  # the part is empty
                break
            follow = entered
        return follow


def holds(assertion: str, before: str, char: str, final: bool) -> bool:
    """Return whether an assertion holds between two characters. `final`: no character follows the second one."""
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
