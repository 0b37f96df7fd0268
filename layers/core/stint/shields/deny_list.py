"""A shield that blocks words, phrases and regular expressions, without a provider.

Callers write both the lists and the texts, and several callers share a process. So a check must end in linear time, for
every list and every text: phrases are found by an automaton in one pass (`phrases.py`), patterns by an engine without
backtracking (`stint.regex`). Both spend steps of one budget. A text that uses it up is not checked to its end, and so
it is not passed.

Words are hidden by letters that look alike, so phrases and texts are folded to one form first (`folding.py`). Patterns
see the text as it was written: folding would change what `\\s` and character classes mean.

    longer than MOST_CHARACTERS, of a user      TooLarge: the caller can send less
    longer than MOST_CHARACTERS, of a model     ShieldFailed: the caller cannot know why
    over MOST_STEPS                             ShieldFailed
    an entry is found                           a violation with the entry's place, and without its words

A check runs in a thread, because half a second would stop the event loop for all others. Compiled lists are kept by
their parameters: a list is the same in each turn of an agent.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, ShieldFailed, TooLarge
from stint.domain.inference import ModelMessage
from stint.domain.steps import SafetyViolation
from stint.domain.validation import message_of
from stint.regex.budget import Budget, StepLimitExceeded
from stint.regex.patterns import Patterns
from stint.shields.folding import fold, fold_pieces
from stint.shields.phrases import Phrases
from stint.shields.port import REFUSAL, Shield, Touchpoint
from stint.shields.texts import last_messages, message_texts

LONGEST_PHRASE = 200
MOST_CHARACTERS = 1_000_000
"""Maximum characters of one check."""
MOST_STEPS = 450_000
"""Maximum steps of one check, about 0.4 s. The longest text in plain English takes about 0.3 s."""


class DenyListParams(BaseModel):
    """The entries of a deny list.

    `phrases` are literal words or phrases. `patterns` are regular expressions in the syntax of `re` without look-around
    and references to groups, so that they match in linear time. Phrases match in spite of other spaces, full-width
    letters and invisible characters. With `whole_words` (the default), "art" does not match in "start".
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)

    phrases: list[Annotated[str, Field(max_length=LONGEST_PHRASE)]] = Field(default_factory=list, max_length=1000)
    patterns: list[str] = Field(default_factory=list, max_length=100)
    case_sensitive: bool = False
    whole_words: bool = True
    violation_level: Literal["info", "warn", "error"] = "error"
    user_message: str = Field(default=REFUSAL, min_length=1)


@dataclass(frozen=True, slots=True)
class Rules:
    """A compiled deny list."""

    params: DenyListParams
    phrases: Phrases
    patterns: Patterns

    def find(self, text: str, budget: Budget) -> str | None:
        """Return the location of the first entry that a text contains: a phrase, or else a pattern."""
        if self.params.phrases:
            place = self.phrases.find(bound(fold_pieces(text, case=self.params.case_sensitive)), budget)
            if place is not None:
                return f"phrases[{place}]"
        entry = self.patterns.search(text, budget) if self.params.patterns else None
        return None if entry is None else f"patterns[{entry}]"


class DenyList:
    """Finds forbidden words. A violation has the entry's location and does not repeat the words."""

    asks_model = False

    def __init__(self) -> None:
        # One thread: several lists at once are not faster, and one at a time needs less memory.
        self._thread = ThreadPoolExecutor(1, "deny-list")

    def validate(self, shield: Shield) -> None:
        """Check a shield's registration; see the port."""
        rules_of(shield)

    async def check(
        self,
        shield: Shield,
        messages: Sequence[ModelMessage],
        touchpoint: Touchpoint,
    ) -> SafetyViolation | None:
        """Check the last messages; see the port. It runs in a thread, because a long text takes half a second."""
        try:
            rules = rules_of(shield)
        except InvalidRequest as error:
            raise ShieldFailed(error.message) from error
        texts = [text for message in last_messages(messages) for text in message_texts(message)]
        refuse_long(shield, sum(map(len, texts)), touchpoint)
        try:
            entry = await asyncio.get_running_loop().run_in_executor(
                self._thread, copy_context().run, find_first, rules, texts
            )
        except StepLimitExceeded:
            raise ShieldFailed(
                f"Shield {shield.shield_id!r} could not check the text within its step limit. Simplify its patterns."
            ) from None
        if entry is None:
            return None
        return SafetyViolation(
            violation_level=rules.params.violation_level,
            user_message=rules.params.user_message,
            metadata={"violation_type": "deny_list", "entry": entry},
        )


def refuse_long(shield: Shield, characters: int, touchpoint: Touchpoint) -> None:
    if characters > MOST_CHARACTERS:
        message = f"Shield {shield.shield_id!r} checks at most {MOST_CHARACTERS} characters; the text has {characters}."
        raise TooLarge(message) if touchpoint == "user-input" else ShieldFailed(message)


def bound(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the pieces of a text. Raises StepLimitExceeded if compatible characters expand it over the limit."""
    characters = 0
    for piece in pieces:
        characters += len(piece)
        if characters > MOST_CHARACTERS:
            raise StepLimitExceeded
        yield piece


def find_first(rules: Rules, texts: Iterable[str]) -> str | None:
    budget = Budget(MOST_STEPS)
    return next((entry for text in texts if (entry := rules.find(text, budget))), None)


def rules_of(shield: Shield) -> Rules:
    """Read a shield's parameters.

    Raises:
        InvalidRequest: a parameter is invalid; the message names it.
    """
    try:
        return compile_rules(json.dumps(shield.params, sort_keys=True))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in ("params", *problem["loc"]))
        raise InvalidRequest(f"Shield {shield.shield_id!r}: {where}: {message_of(problem)}.", param=where) from None
    except ValueError as error:
        message, *entry = error.args
        where = f"params.patterns[{entry[0]}]" if entry else "params.phrases"
        raise InvalidRequest(f"Shield {shield.shield_id!r}: {where}: {message}.", param=where) from None


@lru_cache(maxsize=8)
def compile_rules(params_json: str) -> Rules:
    params = DenyListParams.model_validate_json(params_json)
    phrases = [fold(phrase, case=params.case_sensitive) for phrase in params.phrases]
    return Rules(
        params,
        Phrases(phrases, whole_words=params.whole_words),
        Patterns(params.patterns, ignore_case=not params.case_sensitive),
    )
