"""The model that a caller probably means by an unknown id.

Callers choose the id, and the ids that they register, and a comparison costs the product of two lengths. So long ids
are not compared, and not more than `MOST`. The configured ones are the first.
"""

from collections.abc import Callable, Container, Sequence
from difflib import get_close_matches
from itertools import chain, islice

from stint.domain.llama_stack.registrations import ModelType
from stint.services.registry.catalogue import Catalogue
from stint.services.registry.model_ids import full_id_of

LONGEST = 64
MOST = 50


def names_of(catalogue: Catalogue, allows: Callable[[str], bool], types: Container[ModelType] = ("llm",)) -> list[str]:
    """Return ids of models of some types that the caller may use."""
    listed = (
        name for name, model in catalogue.models.items() if model.model_type in types and allows(full_id_of(model))
    )
    unlisted = filter(allows, catalogue.unlisted if "llm" in types else ())
    return [*islice(chain(unlisted, listed), MOST)]


def did_you_mean(model_id: str, names: Sequence[str]) -> str:
    """Return a sentence that names the most similar name; empty if none is similar."""
    near = None if model_id in names else find_near(model_id, names)
    return f"Did you mean {near!r}?" if near else ""


def find_near(model_id: str, names: Sequence[str]) -> str | None:
    """Return the most similar name, or None.

    Names of the same provider are compared without it, and others also without theirs.
    """
    provider, found, own = model_id.partition("/")
    same = {short_of(name): name for name in names if found and name.startswith(f"{provider}/")}
    others = {name: name for name in names if name not in same.values()}
    return match(own, same) or match(model_id, {short_of(name): name for name in others} | others)


def short_of(name: str) -> str:
    return name.partition("/")[2] or name


def match(word: str, names: dict[str, str]) -> str | None:
    """Return the name whose text, the key, resembles a word most."""
    texts = {text.lower(): name for text, name in names.items() if len(text) <= LONGEST}
    found = get_close_matches(word.lower(), texts, 1) if len(word) <= LONGEST else []
    return texts[found[0]] if found else None
