"""The names of entities that link the documents of a graph bank."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated
from unicodedata import normalize

from pydantic import Field

from stint.domain.errors import InvalidRequest
from stint.domain.json_text import parse_json

MOST_ENTITIES = 50
"""Maximum entities of a document. Further ones that a model finds are ignored."""

MOST_NAMED = 20
"""Maximum entities that a query names."""

LONGEST_NAME = 100
"""Maximum characters of an entity's name."""

LONGEST_PHRASE, MOST_WORDS = 4, 40
"""Maximum words of an entity that is recognized in a query, and of the query that are compared."""

EntityNames = Annotated[list[Annotated[str, Field(max_length=LONGEST_NAME)]], Field(max_length=MOST_NAMED)]
"""The names of the entities of a query."""

WORD = re.compile(r"[^\W_]+")


def entity_of(name: str) -> str:
    """Return a name in the form in which names are compared: its words in lower case."""
    return " ".join(WORD.findall(normalize("NFKC", name[:LONGEST_NAME]).casefold()))[:LONGEST_NAME].strip()


def entities_of(names: Iterable[str], limit: int = MOST_ENTITIES) -> list[str]:
    """Return the first different entities with names. A name without letters and digits is ignored."""
    return list(islice(dict.fromkeys(filter(None, map(entity_of, names))), limit))


def phrases_of(text: str) -> list[str]:
    """Return the phrases of a text that may be the names of entities, the longest first."""
    # Bounded before phrases are made: there are up to four for each word.
    words = list(islice((found.group() for found in WORD.finditer(normalize("NFKC", text).casefold())), MOST_WORDS))
    return list(dict.fromkeys(each_phrase(words)))


def each_phrase(words: list[str]) -> Iterator[str]:
    for length in range(min(LONGEST_PHRASE, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            yield " ".join(words[start : start + length])[:LONGEST_NAME].strip()


def entities_in_metadata(metadata: Mapping[str, object], param: str) -> list[str] | None:
    """Return the entities that a document's metadata names; None if it does not say. Raises InvalidRequest."""
    names = metadata.get("entities")
    if names is None:
        return None
    if not is_list_of_names(names, MOST_ENTITIES):
        message = f"{param} must be a list of at most {MOST_ENTITIES} names with up to {LONGEST_NAME} characters."
        raise InvalidRequest(message, param=param)
    return entities_of(map(str, names if isinstance(names, list) else []))


def is_list_of_names(names: object, limit: int) -> bool:
    """Return whether a value is a list of names of entities."""
    return (
        isinstance(names, list)
        and len(names) <= limit
        and all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in names)
    )


def entities_in_answer(answer: str) -> list[str]:
    """Return the entities in a model's answer, which should be a JSON list of names. Anything else is ignored."""
    # Models write a sentence or a code fence around the list.
    first, last = answer.find("["), answer.rfind("]")
    try:
        names = parse_json(answer[first : last + 1]) if 0 <= first < last else []
    except ValueError:
        return []
    return entities_of(name for name in names if isinstance(name, str) and len(name) <= LONGEST_NAME)
