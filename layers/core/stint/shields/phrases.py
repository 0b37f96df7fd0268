"""Search for many phrases in one pass (A. Aho, M. Corasick, "Efficient String Matching", 1975).

A list has up to a thousand phrases, and each text is searched for all of them, so the time must not depend on their
number. The automaton is a tree of all phrases. A state is the longest suffix of the text so far that begins a phrase:

    _next        (state, number of a character) -> the state one longer, in one dictionary
    _fallback    state -> the state of its longest proper suffix that begins a phrase
    _entries     state -> the first phrase in the list that ends there, or -1

It is stored in arrays and one dictionary of integers, not in objects: 50,000 characters would be 50,000 objects. The
search, which is slower with these, keeps the transitions that it has taken in small objects (`KnownState`), so a text
in ordinary language needs one lookup per character. Their number is bounded: when there are too many, all are
forgotten.

Whole words need no look at the neighbours. Word boundaries are characters of their own (EDGE) in phrases and texts:
"art" becomes EDGE a r t EDGE, which does not occur in EDGE s t a r t EDGE. Characters in no phrase are only two
numbers, one for those in words and one for others, so the boundaries can be found with one range of numbers.
"""

import re
from array import array
from collections import deque
from collections.abc import Iterable, Sequence

from stint.dataclasses import dataclass, field
from stint.regex.budget import Budget
from stint.shields.folding import CharacterTable
from stint.shields.texts import is_in_word

MOST_CHARACTERS = 50_000
"""Maximum characters of all phrases; each takes about 100 bytes."""
EDGE = "\0"
"""The number of a word boundary."""
OTHER_WORD = 1
"""The number of word characters that are in no phrase."""
CHARS_PER_STEP = 6
MOST_REMEMBERED = 20_000
"""Transitions to cache, at most about 4 MB."""


@dataclass(slots=True, eq=False)
class KnownState:
    """A state of the automaton, the phrase that ends there or -1, and the cached transitions from it."""

    state: int
    entry: int
    moves: dict[str, "KnownState"] = field(default_factory=dict)


def between_edges(word: re.Match[str]) -> str:
    return f"{EDGE}{word[0]}{EDGE}"


class Phrases:
    """An automaton of folded phrases. Characters are mapped to numbers; those that are in no phrase have only two.

    With `whole_words`, word boundaries are characters of their own, and a phrase that begins or ends with a word begins
    or ends with one. Safe for threads.
    """

    def __init__(self, phrases: Sequence[str], *, whole_words: bool) -> None:
        """Make the automaton. Empty phrases never match.

        Raises:
            ValueError: the phrases have more than 50,000 characters.
        """
        total = sum(map(len, phrases))
        if total > MOST_CHARACTERS:
            raise ValueError(f"the phrases have {total} characters; at most {MOST_CHARACTERS} are allowed")
        chars = set().union(*phrases)
        words = sorted(char for char in chars if is_in_word(char))
        self._last_word = OTHER_WORD + len(words)
        numbers = {char: chr(number) for number, char in enumerate(words, OTHER_WORD + 1)}
        other = self._last_word + 1
        numbers |= {char: chr(number) for number, char in enumerate(sorted(chars - set(words)), other + 1)}
        self._numbers = CharacterTable(lambda char: numbers.get(char) or chr(OTHER_WORD if is_in_word(char) else other))
        self._words = re.compile(f"[{chr(OTHER_WORD)}-{re.escape(chr(self._last_word))}]+") if whole_words else None
        marked = [self._mark(phrase) for phrase in phrases]
        self._stride = sum(map(len, marked)) + 1
        self._next: dict[int, int] = {}
        self._fallback = array("i", [0])
        self._entries = array("i", [-1])
        for entry, phrase in enumerate(marked):
            if phrase:
                self._add(entry, phrase)
        self._link()
        self._known: dict[int, KnownState] = {}
        self._forget()

    def find(self, pieces: Iterable[str], budget: Budget) -> int | None:
        """Find the first end of a phrase in a folded text, and return the phrase's index.

        Raises:
            StepLimitExceeded: the text is too long.
        """
        known = self._start
        for piece in self._mark_all(pieces):
            budget.spend(1 + len(piece) // CHARS_PER_STEP + piece.count(EDGE) // 4 + self._take_looked_up())
            for number in piece:
                following = known.moves.get(number)
                if following is None:
                    following = self._learn(known, number)
                if following.entry >= 0:
                    return following.entry
                known = following
        return None

    def _learn(self, known: KnownState, number: str) -> KnownState:
        """Compute what follows a state, and put it into a cache of bounded size."""
        found = self._next.get(ord(number) * self._stride + known.state)
        state = self._shorter(known.state, ord(number)) if found is None else found
        if self._remembered > MOST_REMEMBERED:
            self._forget()
        self._remembered += 1
        following = self._known.get(state)
        if following is None:
            following = self._known[state] = KnownState(state, self._entries[state])
        known.moves[number] = following
        return following

    def _forget(self) -> None:
        for known in self._known.values():
            known.moves.clear()  # they refer to each other, and only the garbage collector would free them
        self._start = KnownState(0, -1)
        self._known = {0: self._start}
        self._remembered = 0

    def _mark_all(self, pieces: Iterable[str]) -> Iterable[str]:
        """Map the pieces of a text to numbers, with word boundaries. The end of a piece need not be one."""
        ended = False
        for piece in pieces:
            marked = self._mark(piece)
            if not self._words:
                yield marked
                continue
            if ended:
                marked = marked[1:] if marked[:1] == EDGE else EDGE + marked
            ended = marked[-1:] == EDGE
            yield marked[:-1] if ended else marked
        if ended:
            yield EDGE

    def _mark(self, text: str) -> str:
        numbers = text.translate(self._numbers)
        return self._words.sub(between_edges, numbers) if self._words else numbers

    def _take_looked_up(self) -> int:
        looked_up, self._numbers.looked_up = self._numbers.looked_up, 0
        return looked_up

    def _add(self, entry: int, phrase: str) -> None:
        state = 0
        for char in phrase:
            key = ord(char) * self._stride + state
            if key not in self._next:
                self._next[key] = len(self._entries)
                self._fallback.append(0)
                self._entries.append(-1)
            state = self._next[key]
        if self._entries[state] < 0:
            self._entries[state] = entry

    def _link(self) -> None:
        """Link each state to its longest proper suffix that begins a phrase, breadth first."""
        children: dict[int, list[tuple[int, int]]] = {}
        for key, state in self._next.items():
            number, parent = divmod(key, self._stride)
            children.setdefault(parent, []).append((number, state))
        waiting = deque([0])
        while waiting:
            parent = waiting.popleft()
            for number, state in children.get(parent, ()):
                waiting.append(state)
                fallback = self._fallback[state] = self._shorter(parent, number)
                inherited = self._entries[fallback]
                # A phrase can end with another one. The first in the list is reported, whichever is longer.
                if inherited >= 0 and not 0 <= self._entries[state] < inherited:
                    self._entries[state] = inherited

    def _shorter(self, state: int, number: int) -> int:
        """Return the state of the longest proper suffix that continues with a number."""
        while state:
            state = self._fallback[state]
            found = self._next.get(number * self._stride + state)
            if found is not None:
                return found
        return 0
