"""Parts that are imported and made when first used.

A cold start is a user's wait, so a function loads no module that its first request may not need. A part's name is
`module:Name`, as of an entry point. The type checker takes the class from the annotation, and checks the arguments of
its constructor; it does not read the name, which tests/unit/test_lazy.py compares with the annotation.

https://packaging.python.org/en/latest/specifications/entry-points/
"""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Lazy(cached_property[T], Generic[S, T]):
    """A cached property of a class `S`, whose value is a `T`."""


def lazy(name: str, make: Callable[[S, type[T]], T]) -> Lazy[S, T]:
    """Return a cached property. `make` receives the object and the class of this name, and makes the part."""
    return Lazy(lambda owner: make(owner, load(name)))


def load(name: str) -> Any:
    """Return what has a name. Raises ImportError or AttributeError if nothing has."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
