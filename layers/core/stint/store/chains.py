"""Chains of responses: a response and those that it continues.

A header names up to 100 responses before it, so a long chain is read in rounds of as many. Known responses are only
checked for a deletion, and reading ends where the rest does not fit, or was compacted.

Without these names, each link would have to be read before the one before it is known: 100 links, 100 round trips one
after the other. If each header named all links, headers would grow with the chain. So the names end at the last
response before it whose depth, the number of responses before it, is a multiple of 100. That one names the 100 before:

    depth of a response         0      1    2      100       101    102        200
    depths of its `ancestors`   none   0    1, 0   99 to 0   100    101, 100   199 to 100

A response that ended never changes, except that it may be deleted, which makes the whole chain unusable (404). So a
process that knows a link needs to know only whether it still exists.
"""

from collections.abc import Sequence
from typing import Protocol

from stint.dataclasses import dataclass, replace
from stint.domain.errors import NotFound
from stint.domain.ids import pack_name, unpack_name
from stint.domain.openai.stored_responses import ResponseHeader, StoredResponse
from stint.store.log import LogItems
from stint.store.parallel import gather_both
from stint.store.response_logs import ResponseLogs

MAX_ANCESTORS = 100
"""Maximum ids in a header, which take a write unit more from about the 40th on. That many responses are one round."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The ids of a response and of those that it continues, oldest first. `complete`: none was omitted.

    `read` has those that were not known to the caller. `compacted`: the first one replaces those before it, which count
    as none. `sizes` are in bytes of JSON.
    """

    ids: list[str]
    sizes: list[int]
    read: dict[str, StoredResponse]
    complete: bool
    compacted: bool = False

    def cut(self, max_bytes: int) -> "Chain":
        """Return a chain that was too long without its older part; see `choose_first`."""
        from stint.domain.history_cut import choose_first  # noqa: PLC0415 - few histories are too long

        first = choose_first(self.ids, self.sizes, max_bytes)
        return replace(self, ids=self.ids[first:], sizes=self.sizes[first:])

    @property
    def links(self) -> list[StoredResponse]:
        """Return the responses that were read."""
        return [self.read[link] for link in self.ids if link in self.read]


class KnownLinks(Protocol):
    """The ended responses that a caller knows, which need not be read again unless they were deleted."""

    def size_of(self, response_id: str, /) -> int | None:
        """Return a response's bytes of JSON, or None if it must be read."""

    def previous_of(self, response_id: str, /) -> str | None:
        """Return the response that one continues, or None if there is none or it is not known."""

    def compacts(self, response_id: str, /) -> bool:
        """Return whether a known response replaces those before it."""

    def forget(self, response_id: str, /) -> None:
        """Drop a response that was deleted."""


class NoLinks:
    """The known responses of a caller that reads all of them."""

    def size_of(self, _: str, /) -> int | None:
        return None

    def previous_of(self, _: str, /) -> str | None:
        return None

    def compacts(self, _: str, /) -> bool:
        return False

    def forget(self, _: str, /) -> None:
        pass


NO_LINKS = NoLinks()


class ChainReader:
    """Reads one chain of a tenant.

    With `max_bytes`, which is for a model, large generated images are left out, and what was compacted.
    """

    def __init__(self, logs: ResponseLogs, tenant: str, max_bytes: int | None, known: KnownLinks) -> None:
        self._logs = logs
        self._tenant = tenant
        self._known = known
        self._left, self._brief = max_bytes, max_bytes is not None
        self._ids: list[str] = []
        self._sizes: list[int] = []
        self._found: dict[str, LogItems] = {}
        self._compacted = False

    async def read(self, response_id: str, /) -> Chain:
        """Read a response and those before it, as far as they fit. Raises NotFound with the id of a deleted one."""
        wanted, complete = [response_id], True
        while wanted and complete:
            self._extend(wanted)
            complete = await self._read_round(wanted)
            wanted = await self._ancestors() if complete and not self._compacted else []
        ids = self._ids[::-1]
        found = [self._found[link] for link in ids if link in self._found]
        read = await self._logs.read(found, brief=self._brief)
        return Chain(
            ids, self._sizes[::-1], {stored.header.response_id: stored for stored in read}, complete, self._compacted
        )

    def _extend(self, wanted: list[str]) -> None:
        """Add the ids of known responses, up to one that does not fit, and of the one before these."""
        left = self._left
        while (left is None or left >= 0) and (previous := self._known.previous_of(wanted[-1])) is not None:
            if self._brief and self._known.compacts(wanted[-1]):
                break
            wanted.append(previous)
            left = None if left is None else left - (self._known.size_of(previous) or 0)

    async def _read_round(self, wanted: Sequence[str]) -> bool:
        """Look up responses, newest first, and return whether all fit."""
        sizes = {link: size for link in wanted if (size := self._known.size_of(link)) is not None}
        unknown = [link for link in wanted if link not in sizes]
        live, logs = await gather_both(
            self._logs.find_live(self._tenant, list(sizes)), self._logs.find_many(self._tenant, unknown, self._left)
        )
        found = dict(zip(unknown, logs, strict=False))  # those that cannot fit are omitted
        for link in wanted:
            log = found.get(link)
            # A chain with a hole would be a wrong history, so it is refused as a whole.
            if log is None and link not in live:
                self._known.forget(link)
                raise NotFound("Response", link)
            size = sizes[link] if log is None else log.needed_size
            if not self._fits(size):
                return False
            self._ids.append(link)
            self._sizes.append(size)
            if log is not None:
                self._found[link] = log
            if self._brief and (self._known.compacts(link) if log is None else log.compacts):
                self._compacted = True
                break
        return True

    def _fits(self, size: int) -> bool:
        """Count a response, and return whether it fits. The first one always does."""
        if self._left is None:
            return True
        self._left -= size
        return self._left >= 0 or not self._ids

    async def _ancestors(self) -> list[str]:
        """Return the ids before the oldest response. Those before a known one were looked up with it."""
        log = self._found.get(self._ids[-1])
        if log is None:
            return []
        return [unpack_name("resp", link) for link in (await self._logs.read_header(log)).ancestors]


def place_after_response(header: ResponseHeader) -> tuple[list[str], int]:
    """Return the ancestors and the depth of a response that continues another one.

    The ancestors are the other one, its previous one, and so on, newest first, up to one whose depth is a multiple of
    MAX_ANCESTORS. That one lists the next ones, so that headers do not grow with the chain.
    """
    packed = pack_name(header.response_id)
    # That one has listed its own 100, so the names begin anew.
    if header.depth % MAX_ANCESTORS == 0:
        return [packed], header.depth + 1
    return [packed, *header.ancestors], header.depth + 1


def place_after_chain(ids: Sequence[str]) -> tuple[list[str], int]:
    """Return the same as `place_after_response` for the last response of a whole chain."""
    count = (len(ids) - 1) % MAX_ANCESTORS + 1
    return [pack_name(link) for link in reversed(ids[-count:])], len(ids)
