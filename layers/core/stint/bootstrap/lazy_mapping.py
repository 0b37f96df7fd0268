"""A mapping of adapters that are made when first read."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


class LazyMapping(Mapping[str, T]):
    """A mapping whose values are made when first read."""

    def __init__(self, factories: Mapping[str, Callable[[], T]]) -> None:
        self._factories = factories
        self._values: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._values:
            self._values[name] = self._factories[name]()
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)
