"""A shield that needs nobody: words, phrases and regular expressions that must not be said."""

import asyncio
import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stint.domain.errors import InvalidRequest, ShieldFailed
from stint.domain.inference import ModelMessage
from stint.domain.steps import SafetyViolation
from stint.regex.budget import Budget, OutOfSteps
from stint.regex.patterns import Patterns
from stint.shields.port import REFUSAL, Shield, Touchpoint
from stint.shields.texts import is_in_word, spoken, strings

LONGEST_PHRASE = 200
MOST_STEPS = 2_000_000
"""Steps of the patterns in one check, some seconds."""


class DenyListParams(BaseModel):
    """What a deny list forbids.

    `phrases` are words or phrases as they are written, `patterns` regular expressions in the syntax of `re` without
    look-around and references to groups, because they are matched in a time that grows with the text alone. Phrases
    are found in spite of other spaces, full-width letters and invisible characters. With `whole_words` (the default)
    "art" is not found in "start".
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
    """A deny list ready to be looked up."""

    params: DenyListParams
    phrases: tuple[str, ...]
    patterns: Patterns

    def find(self, text: str, budget: Budget) -> str | None:
        """Name the first entry that a text contains, by its place in the list."""
        folded = fold(text, case=self.params.case_sensitive)
        for place, phrase in enumerate(self.phrases):
            if contains(folded, phrase, whole_words=self.params.whole_words):
                return f"phrases[{place}]"
        entry = self.patterns.search(text, budget) if self.params.patterns else None
        return None if entry is None else f"patterns[{entry}]"


class DenyList:
    """Looks for forbidden words. A violation names the entry by its place, and does not repeat what was forbidden."""

    asks_model = False

    def validate(self, shield: Shield) -> None:
        """Check a shield's registration; see the port."""
        rules_of(shield)

    async def check(
        self,
        shield: Shield,
        messages: Sequence[ModelMessage],
        touchpoint: Touchpoint,  # noqa: ARG002 - the same words are forbidden to both sides
    ) -> SafetyViolation | None:
        """Check what was said last; see the port. In a thread: a long text takes tens of milliseconds."""
        try:
            rules = rules_of(shield)
        except InvalidRequest as error:
            raise ShieldFailed(error.message) from error
        texts = [text for message in spoken(messages) for text in strings(message)]
        try:
            entry = await asyncio.to_thread(find_first, rules, texts)
        except OutOfSteps:
            raise ShieldFailed(
                f"Shield {shield.shield_id!r} could not check the text with a bounded effort: simplify its patterns."
            ) from None
        if entry is None:
            return None
        return SafetyViolation(
            violation_level=rules.params.violation_level,
            user_message=rules.params.user_message,
            metadata={"violation_type": "deny_list", "entry": entry},
        )


def find_first(rules: Rules, texts: Iterable[str]) -> str | None:
    budget = Budget(MOST_STEPS)
    return next((entry for text in texts if (entry := rules.find(text, budget))), None)


def rules_of(shield: Shield) -> Rules:
    """Read a shield's parameters.

    Raises:
        InvalidRequest: names the parameter at fault.
    """
    try:
        return compile_rules(json.dumps(shield.params, sort_keys=True))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in ("params", *problem["loc"]))
        raise InvalidRequest(f"Shield {shield.shield_id!r}: {where}: {problem['msg']}.", param=where) from None
    except ValueError as error:
        message, entry = error.args
        where = f"params.patterns[{entry}]"
        raise InvalidRequest(f"Shield {shield.shield_id!r}: {where}: {message}.", param=where) from None


@lru_cache(maxsize=32)
def compile_rules(params_json: str) -> Rules:
    params = DenyListParams.model_validate_json(params_json)
    phrases = tuple(fold(phrase, case=params.case_sensitive).strip() for phrase in params.phrases)
    return Rules(params, phrases, Patterns(params.patterns, ignore_case=not params.case_sensitive))


def fold(text: str, *, case: bool) -> str:
    """Bring a text to a form in which what looks alike is alike; with `case`, letters keep theirs."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    text = " ".join(text.split())
    return text if case else text.casefold()


def contains(text: str, phrase: str, *, whole_words: bool) -> bool:
    """Tell whether a folded text contains a folded phrase; an empty one is nowhere."""
    place = text.find(phrase) if phrase else -1
    while place >= 0:
        if not whole_words or not (runs_on(text, place) or runs_on(text, place + len(phrase))):
            return True
        place = text.find(phrase, place + 1)
    return False


def runs_on(text: str, place: int) -> bool:
    """Tell whether a word runs on at a place of a text."""
    return 0 < place < len(text) and is_in_word(text[place - 1]) and is_in_word(text[place])
