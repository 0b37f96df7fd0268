"""Reading of whole responses, logs and their documents, and of chains of responses, which `ChainReader` describes.

A foreground response has no process that would note its death. Whoever reads one decides whether it still runs: it does
until its lease ends, which is the `until` of its header, or the `lease_until` of its lease record after a renewal. If
the clock of its process was ahead, that end is too late, so `_settle` also counts the lease time by this process's own
clock, as `stint.store.lease` describes. It changes only the response that it returns. Nothing is written: a reader that
then ends the response writes the ending to its log, and is refused if the process is alive and has written before.
"""

from collections.abc import Sequence
from typing import Protocol

from stint.dataclasses import dataclass, replace
from stint.domain.errors import NotFound
from stint.domain.ids import pack_name, unpack_name
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.store import keys
from stint.store.documents import MANY_ITEMS, Documents
from stint.store.keys import Key
from stint.store.lease import is_unrenewed
from stint.store.log import ENDS, LogItems, response_log
from stint.store.parallel import gather_both, map_concurrently
from stint.store.records import is_live
from stint.store.table import Table, take

ROUND = 16
"""Responses of a list to read before their sizes are looked at."""

CALLS = 32
"""Maximum concurrent Queries. More do not make it faster, because a call takes processor time."""

LIVE = "deleted_at, expires_at"
"""The attributes that show whether a response exists."""


class ResponseLogs:
    """Reads whole responses without their stored streams, with one Query per MB of each."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    async def find(self, tenant: str, response_id: str) -> LogItems | None:
        """Find a response; None if it does not exist or is deleted."""
        pk = keys.response_records(tenant, response_id)
        log = response_log([item async for item in self._table.query(pk, before=keys.AFTER_RECORDS)])
        return log if is_live(log.header) else None

    async def read_rest(self, tenant: str, response_id: str, start: int) -> list[ResponseRecord]:
        """Read the records of a log from an index on. Raises NotFound if it was sealed there for its deletion."""
        if start > keys.LAST_INDEX:
            return []
        pk, first = keys.response_record(tenant, response_id, start)
        log = response_log([item async for item in self._table.query(pk, since=first, before=keys.AFTER_INDEXES)])
        # The read begins at `start`, so an ended log without records begins with the seal of a deletion.
        if log.ended and not log.records:
            raise NotFound("Response", response_id)
        return [ResponseRecord.model_validate_json(raw) for raw in await self._documents.read(log.records)]

    async def find_many(self, tenant: str, ids: Sequence[str], max_bytes: int | None = None) -> list[LogItems | None]:
        """Find responses, up to CALLS concurrently; None for those that do not exist.

        Those at the end may be omitted if the ones after the first have more than `max_bytes` of JSON without them.
        """
        total = 0

        async def find(response_id: str) -> list[LogItems | None]:
            nonlocal total
            if max_bytes is not None and total > max(max_bytes, 0):
                return []
            log = await self.find(tenant, response_id)
            # The first response does not count: a chain has it in any case.
            total += log.context_size if log and response_id != ids[0] else 0
            return [log]

        return [log for found in await map_concurrently(find, ids, calls=CALLS) for log in found]

    async def ended_as(self, tenant: str, response_id: str) -> str | None:
        """Return the status of a response's ending; None if it has none, or does not exist. One call for one record."""
        pk = keys.response_records(tenant, response_id)
        query = self._table.query(pk, before=keys.AFTER_INDEXES, newest_first=True, attributes=ENDS, page=1)
        newest = await take(query, 1)
        return newest[0].get("ended_as") if newest else None

    async def find_live(self, tenant: str, ids: Sequence[str]) -> set[str]:
        """Return those responses that exist and are not deleted, with one call for 100."""
        wanted = {response_id: keys.response(tenant, response_id) for response_id in ids}
        found = await self._table.get_many(list(wanted.values()), attributes=LIVE)
        return {response_id for response_id, key in wanted.items() if is_live(found.get(key))}

    async def read(self, found: Sequence[LogItems], *, brief: bool = False) -> list[StoredResponse]:
        """Read the documents of logs, with those in S3 concurrently; `brief`: without large generated images."""
        documents = iter(await self._documents.read([item for log in found for item in log.items], brief=brief))
        return [
            self._settle(
                StoredResponse(
                    header=read_header(next(documents)),
                    records=[ResponseRecord.model_validate_json(next(documents)) for _ in log.records],
                    size=log.context_size,
                    taken_up=bool(log.lease and log.lease.get("attempts")),
                    lease_until=log.lease.get("lease_until") if log.lease else None,
                    skipped=log.skipped,
                ),
                log,
            )
            for log in found
        ]

    def _settle(self, stored: StoredResponse, log: LogItems) -> StoredResponse:
        """Return a response. The lease of one in the foreground lapses if it is not renewed; see `is_unrenewed`."""
        if stored.header.background or stored.ending is not None or log.header is None:
            return stored
        # `until` is in seconds, `lease_until` in milliseconds. Both are by the clock of the response's process.
        first, header = round(stored.header.until * 1000), stored.header
        until, seconds = first, header.until - header.created_at
        if log.lease is not None and (stored.lease_until or 0) > first:
            until, seconds = int(log.lease["lease_until"]), log.lease.get("lease_seconds", seconds)
        if is_unrenewed(self._table, Key(log.header["pk"], log.header["sk"]), until, seconds):
            header.until, stored.lease_until = 0, 0
        return stored

    async def read_header(self, log: LogItems) -> ResponseHeader:
        [raw] = await self._documents.read(log.items[:1])
        return read_header(raw)


def read_header(raw: bytes) -> ResponseHeader:
    """Parse a header. The items of a long input share the names of their fields."""
    header = ResponseHeader.model_validate_json(raw)
    if len(header.input) > MANY_ITEMS:
        from stint.domain.field_names import FieldNames  # noqa: PLC0415 - few inputs are long

        names = FieldNames()
        header.input = [names.share(item) for item in header.input]
    return header


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

    A header names up to 100 responses before it, so a long chain is read in rounds of as many. Known responses are only
    checked for a deletion, and reading ends where the rest does not fit, or was compacted.

    Without these names, each link would have to be read before the one before it is known: 100 links, 100 round trips
    one after the other. If each header named all links, headers would grow with the chain. So the names end at the last
    response before it whose depth, the number of responses before it, is a multiple of 100. That one names the 100
    before:

        depth of a response         0      1    2      100       101    102        200
        depths of its `ancestors`   none   0    1, 0   99 to 0   100    101, 100   199 to 100

    A response that ended never changes, except that it may be deleted, which makes the whole chain unusable (404). So a
    process that knows a link needs to know only whether it still exists.
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
            ids,
            self._sizes[::-1],
            {stored.header.response_id: stored for stored in read},
            complete,
            compacted=self._compacted,
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
