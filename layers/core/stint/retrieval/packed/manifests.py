"""Reads and writes of manifests, which concurrent writers replace by compare and swap.

The manifest is one object, and it alone decides which blocks an index has. A writer replaces it only if its ETag is
still the one that the writer has read; if not, the change is made again on the newer manifest. So no lock is held, and
no change is lost.

    answer to a replacement   then
    a new ETag                the change is made
    none: another ETag        read the manifest, and try again after a random wait
    lost, and repeated by     the revision of the change is among the manifest's `recent` ones: it was made
    the client

A process remembers the manifests that it has read. A read asks the bucket only whether the ETag is still the same, and
gets the body only if it is another. A write begins with the remembered manifest, without a read.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable

from stint.dataclasses import dataclass, field
from stint.domain.errors import NotFound, StoreUnavailable
from stint.retrieval.objects import ObjectStore
from stint.retrieval.packed.block import Mask
from stint.retrieval.packed.manifest import Manifest, decode_manifest

ATTEMPTS, LONGEST_WAIT = 60, 0.4
"""Attempts to replace a manifest that others replace, and the longest wait between two, in seconds."""
HELD = 256
"""Manifests that a process remembers."""
PREFIX = "packed/"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A manifest as it was read, and the rows of its blocks that are not hidden, as far as they are known."""

    manifest: Manifest
    etag: str
    alive: dict[str, Mask] = field(default_factory=dict)


class Manifests:
    """The manifests of indexes. The last known version of each is remembered, and revalidated by its ETag."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._known: OrderedDict[str, Snapshot] = OrderedDict()

    async def create(self, index: str, manifest: Manifest) -> Manifest:
        """Write the manifest of an index, unless it has one, and return the stored one."""
        etag = await self._objects.create(manifest_key(index), manifest.encode())
        return self._remember(index, manifest, etag).manifest if etag else (await self.read(index)).manifest

    async def read(self, index: str) -> Snapshot:
        """Return the current manifest. Raises NotFound."""
        known = self._known.get(index)
        try:
            found = await self._objects.read(manifest_key(index), known.etag if known else "")
        except NotFound:
            self.forget(index)
            raise NotFound("Vector index", index) from None
        # The bucket has answered that the ETag is still this one.
        if found is None and known:
            return known
        body, etag = found or (b"", "")
        return self._remember(index, decode_manifest(body), etag)

    async def last_known(self, index: str) -> Snapshot:
        """Return the manifest that was read or written last, which may be outdated."""
        return self._known.get(index) or await self.read(index)

    async def change(self, index: str, do: Callable[[Manifest], Manifest | None]) -> Manifest | None:
        """Replace a manifest by what `do` returns for the current one; if that is None, leave it.

        `do` is called again for the newer manifest if another writer replaced it. Raises NotFound and StoreUnavailable.
        """
        snapshot = await self.last_known(index)
        for attempt in range(ATTEMPTS):
            changed = do(snapshot.manifest)
            if changed is None:
                return None
            etag = await self._objects.replace(manifest_key(index), changed.encode(), snapshot.etag)
            if etag:
                return self._remember(index, changed, etag).manifest
            snapshot = await self.read(index)
            # Else the retry would add the same blocks twice.
            if changed.revision in snapshot.manifest.recent:  # an earlier attempt succeeded, but its answer was lost
                return snapshot.manifest
            # Random, because writers that met once would meet again after equal waits.
            await asyncio.sleep(random.uniform(0, min(LONGEST_WAIT, 0.01 * 2**attempt)))  # noqa: S311
        raise StoreUnavailable(f"Vector index {index!r} is written by too many requests at once. Try again.")

    async def delete(self, index: str) -> None:
        self.forget(index)
        await self._objects.delete([manifest_key(index)])

    def forget(self, index: str) -> None:
        self._known.pop(index, None)

    def _remember(self, index: str, manifest: Manifest, etag: str) -> Snapshot:
        self._known[index] = Snapshot(manifest, etag)
        self._known.move_to_end(index)
        while len(self._known) > HELD:
            self._known.popitem(last=False)
        return self._known[index]


def manifest_key(index: str) -> str:
    return f"{PREFIX}{index}/manifest"


def block_key(index: str, name: str) -> str:
    return f"{PREFIX}{index}/{name}"
