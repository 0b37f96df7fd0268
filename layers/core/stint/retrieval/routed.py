"""Several indexes of chunks, of which a vector store names one."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound, StoreUnavailable
from stint.domain.filters import Attributes
from stint.retrieval.port import Entry, Hit, IndexQuery, VectorIndex


@dataclass(frozen=True, slots=True)
class RoutedIndex:
    """A VectorIndex that writes to and searches in the index that a name begins with: `PROVIDER/NAME`.

    Other names are those of the `default` provider. Deletions and changes of attributes are sent to all `indexes`, so
    that they need not know which one has the chunks.
    """

    indexes: Mapping[str, VectorIndex]
    default: str

    def route(self, index: str) -> tuple[VectorIndex, str]:
        """Return the index with chunks, and its own name. Raises StoreUnavailable if it is not configured."""
        provider, divider, name = index.rpartition("/")
        found = self.indexes.get(provider if divider else self.default)
        if found is None:
            raise StoreUnavailable(
                f"The vector store is in the index {provider!r}, which is not configured. Set SecondVectorIndex."
            )
        return found, name

    async def create(self, index: str, dimension: int) -> None:
        """Create an index; see the port."""
        found, name = self.route(index)
        await found.create(name, dimension)

    async def upsert(self, index: str, entries: Sequence[Entry]) -> None:
        """Write chunks; see the port."""
        found, name = self.route(index)
        await found.upsert(name, entries)

    async def get(self, index: str, keys: Sequence[str]) -> dict[str, Hit]:
        """Return chunks by their keys; see the port."""
        found, name = self.route(index)
        return await found.get(name, keys)

    async def query(self, index: str, query: IndexQuery) -> list[Hit]:
        """Search in an index; see the port."""
        found, name = self.route(index)
        return await found.query(name, query)

    async def update_attributes(self, index: str, keys: Sequence[str], attributes: Attributes) -> None:
        """Replace the attributes of chunks, wherever they are; see the port."""
        name = index.rpartition("/")[2]
        for each in self.indexes.values():
            # A store has chunks in one of the indexes.
            with suppress(NotFound):
                await each.update_attributes(name, keys, attributes)

    async def delete(self, index: str, keys: Sequence[str]) -> None:
        """Delete chunks, wherever they are; see the port."""
        name = index.rpartition("/")[2]
        for each in self.indexes.values():
            with suppress(NotFound):
                await each.delete(name, keys)

    async def drop(self, index: str) -> None:
        """Delete an index, wherever it is; see the port."""
        name = index.rpartition("/")[2]
        await asyncio.gather(*(each.drop(name) for each in self.indexes.values()))
